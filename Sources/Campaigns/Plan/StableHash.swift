import Foundation
import Model

/// Short hashes of values that stay the same from one process, machine and version to the next: FNV-1a, 64 bits, over
/// the value's JSON with sorted keys, folded to 32 bits and written as 8 hex digits.
///
/// It tells people that something changed since they looked; it does not keep out somebody who wants a match.
enum StableHash {
    static func text(of value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let hash = FNV1a.hash(String(decoding: try encoder.encode(value), as: UTF8.self))
        let digits = String(UInt32(truncatingIfNeeded: hash ^ (hash >> 32)), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}
