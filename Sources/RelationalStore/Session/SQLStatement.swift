/// The text of a statement, with `$1`, `$2` for its values.
///
/// A literal statement is prepared on its first use and kept by the connection. A text that is built for one run or
/// audience is not kept: use `.once(text)`.
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
