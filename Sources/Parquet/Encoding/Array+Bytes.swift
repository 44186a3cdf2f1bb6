/// The output primitives of all encodings.
extension Array<UInt8> {
    /// Appends 7 bits per byte, the lowest first (ULEB128).
    mutating func append(variableLength value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    mutating func append(littleEndian value: UInt32) {
        append(addingCapacity: 4) { output in
            var rest = value
            for _ in 0..<4 {
                output.append(UInt8(truncatingIfNeeded: rest))
                rest >>= 8
            }
        }
    }

    mutating func append(copying bytes: Span<UInt8>) {
        append(addingCapacity: bytes.count) { output in
            for index in bytes.indices { output.append(bytes[index]) }
        }
    }
}
