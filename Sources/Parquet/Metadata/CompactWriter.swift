/// Writes structures in the compact protocol of Thrift. The fields of a structure must be written in ascending order.
struct CompactWriter {
    enum ElementType: UInt8 {
        case int32 = 5
        case binary = 8
        case structure = 12
    }

    private(set) var bytes: [UInt8] = []
    private var lastField = 0

    mutating func field(_ id: Int, _ value: Bool) { header(id, type: value ? 1 : 2) }

    mutating func field(_ id: Int, _ value: Int32) {
        header(id, type: 5)
        append(zigzag: Int64(value))
    }

    mutating func field(_ id: Int, _ value: Int64) {
        header(id, type: 6)
        append(zigzag: value)
    }

    mutating func field(_ id: Int, _ value: String) { field(id, Array(value.utf8)) }

    mutating func field(_ id: Int, _ value: [UInt8]) {
        header(id, type: 8)
        append(binary: value)
    }

    mutating func field(_ id: Int, _ body: (inout CompactWriter) -> Void) {
        header(id, type: ElementType.structure.rawValue)
        structure(body)
    }

    /// Writes a list field. `body` writes each element.
    mutating func field<Element>(
        _ id: Int, _ elements: [Element], of type: ElementType, _ body: (inout CompactWriter, Element) -> Void
    ) {
        header(id, type: 9)
        if elements.count < 15 {
            bytes.append(UInt8(elements.count) << 4 | type.rawValue)
        } else {
            bytes.append(0xF0 | type.rawValue)
            bytes.append(variableLength: UInt64(elements.count))
        }
        for element in elements { body(&self, element) }
    }

    /// Writes a structure with its end, as the whole message or as an element of a list.
    mutating func structure(_ body: (inout CompactWriter) -> Void) {
        let outer = lastField
        lastField = 0
        body(&self)
        bytes.append(0)
        lastField = outer
    }

    mutating func append(binary value: [UInt8]) {
        bytes.append(variableLength: UInt64(value.count))
        bytes += value
    }

    mutating func append(zigzag value: Int64) {
        bytes.append(variableLength: UInt64(bitPattern: value << 1 ^ value >> 63))
    }

    private mutating func header(_ id: Int, type: UInt8) {
        let delta = id - lastField
        if (1...15).contains(delta) {
            bytes.append(UInt8(delta) << 4 | type)
        } else {
            bytes.append(type)
            append(zigzag: Int64(id))
        }
        lastField = id
    }
}
