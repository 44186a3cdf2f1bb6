/// The text of an `audience_sql`, as far as the rules are the same for every database: one query of a bounded length.
/// Each store decides what the query may read and call.
///
/// The text is read by Unicode scalars. Read by characters, a quote and a combining mark after it would be one
/// character, and the quote would be missed.
package struct AudienceSQLText {
    /// The longest time that a query may run.
    package static let timeLimit: Duration = .seconds(10)
    package static let bytesMax = 16_384

    package enum Token: Hashable, Sendable {
        /// A keyword, or a name without quotes.
        case word(String)
        /// A name in double quotes, without the quotes.
        case name(String)
        /// A text in single quotes, without the quotes.
        case literal(String)
        /// A parameter, with its colon.
        case parameter(String)
        /// `::`
        case cast
        /// Any other character, including a digit.
        case symbol(Unicode.Scalar)
        /// Blanks, or a comment.
        case blank
    }

    /// The query, without the semicolon at its end.
    package let tokens: [Token]

    /// Throws `StoreError.audienceSQL`.
    package init(_ text: String) throws {
        guard text.utf8.count <= Self.bytesMax else {
            throw StoreError.audienceSQL(.invalid("it is longer than \(Self.bytesMax) bytes"))
        }
        guard !text.unicodeScalars.contains("\0") else { throw StoreError.audienceSQL(.refused("U+0000")) }
        let all = try Self.tokens(of: text)
        guard let last = all.lastIndex(where: { !Self.isNothing($0) }) else {
            throw StoreError.audienceSQL(.invalid("it is empty"))
        }
        tokens = Array(all[...last])
        let first = tokens.first { !Self.isNothing($0) }
        if case .word(let word) = first, !["SELECT", "WITH", "VALUES"].contains(word.uppercased()) {
            throw StoreError.audienceSQL(.refused(word.uppercased()))
        }
        guard !tokens.contains(.symbol(";")) else { throw StoreError.audienceSQL(.severalStatements) }
    }

    /// Returns whether the text holds only blanks, comments and semicolons.
    package static func isBlank(_ text: String) -> Bool { (try? tokens(of: text))?.allSatisfy(isNothing) ?? false }

    private static func isNothing(_ token: Token) -> Bool { token == .blank || token == .symbol(";") }

    private static func tokens(of text: String) throws -> [Token] {
        var scanner = AudienceSQLScanner(text)
        var tokens: [Token] = []
        while let token = try scanner.next() { tokens.append(token) }
        return tokens
    }
}

private struct AudienceSQLScanner {
    private static let blanks: Set<Unicode.Scalar> = [" ", "\t", "\n", "\r", "\u{0C}"]

    private var rest: Substring.UnicodeScalarView

    init(_ text: String) { rest = text[...].unicodeScalars }

    /// Returns `nil` at the end.
    mutating func next() throws -> AudienceSQLText.Token? {
        guard let first = rest.first else { return nil }
        if Self.blanks.contains(first) {
            rest = rest.drop { Self.blanks.contains($0) }
            return .blank
        }
        if begins(with: "--") {
            rest = rest.drop { $0 != "\n" && $0 != "\r" }
            return .blank
        }
        if begins(with: "/*") {
            try skipComment()
            return .blank
        }
        if Self.beginsName(first) { return .word(takeName()) }
        switch first {
        case "'": return .literal(try take(quotedBy: first))
        case "\"": return .name(try take(quotedBy: first))
        case ":": return takeColon()
        default:
            guard (0x21..<0x7F).contains(first.value) else {
                throw StoreError.audienceSQL(.refused("U+\(Self.hex(first)) outside of quotes"))
            }
            return .symbol(rest.removeFirst())
        }
    }

    private func begins(with text: String) -> Bool { rest.starts(with: text.unicodeScalars) }

    /// Skips a comment. Nested comments are not recognised, as in SQLite. PostgreSQL never receives a comment.
    private mutating func skipComment() throws {
        rest = rest.dropFirst(2)
        while !rest.isEmpty {
            if begins(with: "*/") {
                rest = rest.dropFirst(2)
                return
            }
            rest.removeFirst()
        }
        throw StoreError.audienceSQL(.invalid("a comment is not closed"))
    }

    /// Returns the text before the closing quote. A doubled quote stands for one.
    private mutating func take(quotedBy quote: Unicode.Scalar) throws -> String {
        var inside = String.UnicodeScalarView()
        rest.removeFirst()
        while let scalar = rest.popFirst() {
            if scalar == quote {
                guard rest.first == quote else { return String(inside) }
                rest.removeFirst()
            }
            inside.append(scalar)
        }
        throw StoreError.audienceSQL(.invalid("a quote is not closed"))
    }

    private mutating func takeColon() -> AudienceSQLText.Token {
        rest.removeFirst()
        guard let next = rest.first else { return .symbol(":") }
        if next == ":" {
            rest.removeFirst()
            return .cast
        }
        return Self.beginsName(next) ? .parameter(":" + takeName()) : .symbol(":")
    }

    private mutating func takeName() -> String {
        let name = rest.prefix { Self.beginsName($0) || Self.isDigit($0) }
        rest = rest[name.endIndex...]
        return String(String.UnicodeScalarView(name))
    }

    private static func beginsName(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "_" || (scalar.isASCII && scalar.properties.isAlphabetic)
    }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    private static func hex(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
