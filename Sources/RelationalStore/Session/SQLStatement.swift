/// The text of a statement, with `$1`, `$2` for its values.
///
/// What is written as a literal is prepared on its first use and kept by the connection. A text that is put together for
/// one run or audience is not worth that: `.once(text)`.
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
