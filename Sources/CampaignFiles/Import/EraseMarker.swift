/// The text `\N` in place of a value, which takes a field away from a known device: an empty cell leaves it as it is.
/// A value that is just that stands in a file with one more backslash, and so does one of several backslashes and an
/// `N`.
package enum EraseMarker {
    package static let text = #"\N"#

    /// A value as it stands in a file.
    package static func escaped(_ value: String) -> String {
        let bytes = Array(value.utf8)
        return isLike(bytes, bytes.indices) ? #"\"# + value : value
    }

    /// Whether the bytes are the marker itself.
    static func isMarker(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        range.count == 2 && isLike(bytes, range)
    }

    /// Returns where the value stands: without the backslash that tells it from the marker.
    static func value(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
        range.count > 2 && isLike(bytes, range) ? range.lowerBound + 1..<range.upperBound : range
    }

    /// One backslash or more, and an `N`.
    private static func isLike(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard range.count > 1, bytes[range.lowerBound] == UInt8(ascii: "\\"),
            bytes[range.upperBound - 1] == UInt8(ascii: "N")
        else { return false }
        return bytes[range.dropLast()].allSatisfy { $0 == UInt8(ascii: "\\") }
    }
}
