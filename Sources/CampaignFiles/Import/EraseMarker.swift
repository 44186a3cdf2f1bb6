/// The text `\N` in place of a value, which removes a known device's value. An empty cell leaves the value unchanged.
/// A real value that consists of backslashes and a final `N` is written with one more backslash.
package enum EraseMarker {
    package static let text = #"\N"#

    /// Returns a value as it must be written in a file.
    package static func escaped(_ value: String) -> String {
        let bytes = Array(value.utf8)
        return isLike(bytes, bytes.indices) ? #"\"# + value : value
    }

    /// Tells whether the bytes are the marker itself.
    static func isMarker(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        range.count == 2 && isLike(bytes, range)
    }

    /// Returns the range of the value, without the backslash that distinguishes it from the marker.
    static func value(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
        range.count > 2 && isLike(bytes, range) ? range.lowerBound + 1..<range.upperBound : range
    }

    /// Tells whether the bytes are one or more backslashes and an `N`.
    private static func isLike(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        guard range.count > 1, bytes[range.lowerBound] == UInt8(ascii: "\\"),
            bytes[range.upperBound - 1] == UInt8(ascii: "N")
        else { return false }
        return bytes[range.dropLast()].allSatisfy { $0 == UInt8(ascii: "\\") }
    }
}
