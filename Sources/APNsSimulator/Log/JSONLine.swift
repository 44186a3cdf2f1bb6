/// Writes one flat JSON object.
struct JSONLine {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    mutating func add(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        key(name)
        bytes.append(UInt8(ascii: "\""))
        for byte in value.utf8 { append(escaping: byte) }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func add(_ name: StaticString, _ value: (some FixedWidthInteger)?) {
        guard let value else { return }
        key(name)
        bytes.append(contentsOf: String(value).utf8)
    }

    mutating func add(_ name: StaticString, _ value: Bool) {
        key(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    func finished() -> [UInt8] { bytes + [UInt8(ascii: "}")] }

    private mutating func key(_ name: StaticString) {
        if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func append(escaping byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(byte)
        case 0..<0x20:
            bytes.append(contentsOf: "\\u00".utf8)
            bytes.append(Hex.digit(byte >> 4))
            bytes.append(Hex.digit(byte & 15))
        default: bytes.append(byte)
        }
    }
}
