/// The text of a statement, with `$1`, `$2` and so on for its values.
///
/// A literal statement is prepared on its first use and kept by the connection. Use `.once(text)` for a text that is
/// built for one run or audience, so that it is not kept.
package struct SQLStatement: ExpressibleByStringInterpolation, Hashable, Sendable {
    package let text: String
    package let isKept: Bool

    package init(stringLiteral text: String) {
        self.text = text
        isKept = true
    }

    private init(once text: String) {
        self.text = text
        isKept = false
    }

    package static func once(_ text: String) -> SQLStatement { SQLStatement(once: text) }
}
