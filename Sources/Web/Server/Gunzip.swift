import CZlib

/// Unpacks bodies in the format of gzip (RFC 1952).
enum Gunzip {
    enum Result: Hashable, Sendable {
        case whole([UInt8])
        /// More bytes than allowed. Nothing beyond the limit was unpacked.
        case tooLarge
        case broken
    }

    static func bytes(_ bytes: [UInt8], max: Int) -> Result {
        // One byte more shows that the text does not end at the limit.
        var output = [UInt8](repeating: 0, count: max + 1)
        var isWhole: Int32 = 0
        let length = Int(fanfare_gunzip(bytes, UInt32(bytes.count), &output, UInt32(output.count), &isWhole))
        if length > max { return .tooLarge }
        return isWhole != 0 ? .whole(Array(output.prefix(length))) : .broken
    }
}
