/// One word, literal or sign of an audience expression, with its offset in the text.
struct AudienceToken: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A field, a function or a keyword.
        case word(String)
        /// A text between quotes, without the quotes.
        case text(String)
        /// Digits and points as written, so that `4.10` stays a version.
        case number(String)
        /// Brackets, comma and comparisons. `==` is read as `=`.
        case sign(String)
        case end
    }

    var kind: Kind
    /// The position in Unicode scalars from the start of the text.
    var offset: Int
    var length: Int

    /// The token's description for diagnostics.
    var found: String {
        switch kind {
        case .word(let word): quoted(word)
        case .text(let text): "the text \(quoted(text))"
        case .number(let number): "the number \(number)"
        case .sign(let sign): quoted(sign)
        case .end: "the end of the expression"
        }
    }

    /// Tells whether the token is this keyword, in any case.
    func isWord(_ word: String) -> Bool {
        if case .word(let own) = kind { own.lowercased() == word } else { false }
    }

    func isSign(_ sign: String) -> Bool { kind == .sign(sign) }
}

/// A problem of an audience expression, with its position in the text.
package struct AudienceProblem: Hashable, Sendable {
    /// The position in Unicode scalars from the start of the text. `length` is also in Unicode scalars.
    package var offset: Int
    package var length: Int
    package var what: String
    /// The advice. May be empty.
    package var advice: String
}

/// Splits an audience expression into tokens. A character that begins no token is reported and skipped.
struct AudienceLexer {
    /// The maximum number of reported problems. A text with more problems is probably no audience expression at all.
    static let problemsMax = 50

    private let scalars: [Unicode.Scalar]
    private var index = 0
    private(set) var problems: [AudienceProblem] = []

    init(_ text: String) {
        scalars = Array(text.unicodeScalars)
    }

    /// Returns all tokens. The last one is always `end`.
    mutating func tokens() -> [AudienceToken] {
        var tokens: [AudienceToken] = []
        while let token = next() { tokens.append(token) }
        tokens.append(AudienceToken(kind: .end, offset: scalars.count, length: 0))
        return tokens
    }

    private mutating func next() -> AudienceToken? {
        while index < scalars.count {
            let start = index
            let scalar = scalars[index]
            if scalar.properties.isWhitespace {
                index += 1
            } else if let kind = kind(startingWith: scalar) {
                return AudienceToken(kind: kind, offset: start, length: index - start)
            }
        }
        return nil
    }

    /// Returns `nil` after reporting an unreadable token. ``index`` has advanced in every case.
    private mutating func kind(startingWith scalar: Unicode.Scalar) -> AudienceToken.Kind? {
        switch scalar {
        case "\"", "'": return text(until: scalar)
        case "(", ")", ",":
            index += 1
            return .sign(String(scalar))
        case "=", "!", "<", ">": return comparison()
        default: break
        }
        if isDigit(scalar) || (scalar == "-" && index + 1 < scalars.count && isDigit(scalars[index + 1])) {
            let start = index
            index += 1
            while index < scalars.count, isDigit(scalars[index]) || scalars[index] == "." { index += 1 }
            return .number(slice(start..<index))
        }
        if scalar == "_" || scalar.properties.isAlphabetic {
            let start = index
            while index < scalars.count, isPartOfWord(scalars[index]) { index += 1 }
            return .word(slice(start..<index))
        }
        refuse(scalar)
        return nil
    }

    private mutating func text(until quote: Unicode.Scalar) -> AudienceToken.Kind? {
        let start = index
        var text = String.UnicodeScalarView()
        index += 1
        while index < scalars.count, scalars[index] != quote {
            if scalars[index] == "\\", index + 1 < scalars.count { index += 1 }
            text.append(scalars[index])
            index += 1
        }
        guard index < scalars.count else {
            report(at: start, length: 1, "this quoted text is not closed", "close it with \(quote)")
            return .text(String(text))
        }
        index += 1
        return .text(String(text))
    }

    private mutating func comparison() -> AudienceToken.Kind? {
        let start = index
        index += 1
        if index < scalars.count, scalars[index] == "=" { index += 1 }
        let sign = slice(start..<index)
        guard sign != "!" else {
            report(at: start, length: 1, "\"!\" is not an operator of this language", "write not")
            return nil
        }
        return .sign(sign == "==" ? "=" : sign)
    }

    private mutating func refuse(_ scalar: Unicode.Scalar) {
        let start = index
        while index < scalars.count, scalars[index] == scalar { index += 1 }
        let advice =
            switch scalar {
            case "&": "write and"
            case "|": "write or"
            case "“", "”", "„", "‘", "’", "«", "»": "use straight quotes: \" or '"
            default: "put text in quotes"
            }
        report(at: start, length: index - start, "unexpected \(quoted(slice(start..<index)))", advice)
    }

    private mutating func report(at offset: Int, length: Int, _ what: String, _ advice: String) {
        guard problems.count < Self.problemsMax else { return }
        problems.append(AudienceProblem(offset: offset, length: length, what: what, advice: advice))
    }

    private func slice(_ range: Range<Int>) -> String {
        String(String.UnicodeScalarView(scalars[range]))
    }

    private func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

    private func isPartOfWord(_ scalar: Unicode.Scalar) -> Bool {
        isDigit(scalar) || scalar == "_" || scalar == "-" || scalar == "." || scalar.properties.isAlphabetic
    }
}
