/// The encoding of definition levels and dictionary indices: runs of equal values, and groups of 8 bit-packed values.
enum HybridEncoder {
    /// Returns the number of equal values that take fewer bytes in a run of their own than bit-packed. It counts the
    /// header of the bit-packed run that follows.
    private static func shortestRun(_ bitWidth: Int) -> Int { bitWidth == 1 ? 32 : bitWidth == 2 ? 16 : 8 }

    static func append<Value: FixedWidthInteger & UnsignedInteger>(
        _ values: Span<Value>, bitWidth: Int, to bytes: inout [UInt8]
    ) {
        let shortestRun = shortestRun(bitWidth)
        var packedStart = 0
        var index = 0
        while index < values.count {
            let run = runLength(values, from: index)
            // A bit-packed run before another run must have a multiple of 8 values.
            let borrowed = (8 - (index - packedStart) % 8) % 8
            if run - borrowed >= shortestRun {
                appendPacked(values.extracting(packedStart..<(index + borrowed)), bitWidth: bitWidth, to: &bytes)
                appendRun(of: values[index], count: run - borrowed, bitWidth: bitWidth, to: &bytes)
                packedStart = index + run
            }
            index += run
        }
        appendPacked(values.extracting(packedStart..<values.count), bitWidth: bitWidth, to: &bytes)
    }

    private static func runLength<Value: FixedWidthInteger>(_ values: Span<Value>, from start: Int) -> Int {
        let value = values[start]
        var end = start + 1
        while end < values.count, values[end] == value { end += 1 }
        return end - start
    }

    private static func appendRun<Value: FixedWidthInteger & UnsignedInteger>(
        of value: Value, count: Int, bitWidth: Int, to bytes: inout [UInt8]
    ) {
        bytes.append(variableLength: UInt64(count) << 1)
        for byte in 0..<(bitWidth + 7) / 8 { bytes.append(UInt8(truncatingIfNeeded: value >> Value(8 * byte))) }
    }

    private static func appendPacked<Value: FixedWidthInteger & UnsignedInteger>(
        _ values: Span<Value>, bitWidth: Int, to bytes: inout [UInt8]
    ) {
        guard !values.isEmpty else { return }
        let groups = (values.count + 7) / 8
        bytes.append(variableLength: UInt64(groups) << 1 | 1)
        let end = bytes.count + groups * bitWidth
        BitPacking.append(values, bitWidth: bitWidth, to: &bytes)
        // The last group is filled with zeros.
        bytes.append(contentsOf: repeatElement(0, count: end - bytes.count))
    }
}

/// The values of a few bits each, one after the other, the lowest bit first.
enum BitPacking {
    static func append<Value: FixedWidthInteger & UnsignedInteger>(
        _ values: Span<Value>, bitWidth: Int, to bytes: inout [UInt8]
    ) {
        bytes.append(addingCapacity: (values.count * bitWidth + 7) / 8) { output in
            var bits: UInt64 = 0
            var count = 0
            for index in values.indices {
                bits |= UInt64(values[index]) << UInt64(count)
                count += bitWidth
                while count >= 8 {
                    output.append(UInt8(truncatingIfNeeded: bits))
                    bits >>= 8
                    count -= 8
                }
            }
            if count > 0 { output.append(UInt8(truncatingIfNeeded: bits)) }
        }
    }

    /// Returns the number of bits that every number from 0 to `largest` fits in. At least 1.
    static func width(of largest: Int) -> Int { max(1, Int.bitWidth - largest.leadingZeroBitCount) }
}
