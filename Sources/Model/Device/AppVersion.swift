/// A version of dotted numbers, compared component by component: `4.10` is newer than `4.9`, `4.2` equals `4.2.0`.
package struct AppVersion: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    package let components: [UInt64]

    /// Nil unless the text is 1 to 8 dotted numbers; a suffix after `-`, `+` or a blank (`4.2-beta`) is dropped.
    package init?(_ text: some StringProtocol) {
        let bare = text.prefix { $0 != "-" && $0 != "+" && $0 != " " }
        let parts = bare.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...8).contains(parts.count) else { return nil }
        var numbers: [UInt64] = []
        for part in parts {
            guard part.allSatisfy({ $0.isASCII && $0.isNumber }), let number = UInt64(part) else { return nil }
            numbers.append(number)
        }
        while numbers.count > 1, numbers.last == 0 { numbers.removeLast() }
        components = numbers
    }

    package var description: String { components.map(String.init).joined(separator: ".") }

    /// A text whose byte order is the order of versions, so that SQL compares versions by plain comparison:
    /// each number is preceded by a letter for its count of digits (`4.10` is `a4b10`).
    package var sortKey: String {
        components.map { number in
            let digits = String(number)
            let length = UnicodeScalar(UInt8(ascii: "a") + UInt8(digits.utf8.count - 1))
            return "\(length)\(digits)"
        }.joined()
    }

    package static func < (left: AppVersion, right: AppVersion) -> Bool {
        left.components.lexicographicallyPrecedes(right.components)
    }
}
