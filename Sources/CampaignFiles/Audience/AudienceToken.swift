/// One word, literal or sign of an audience expression, with its place in the text.
struct AudienceToken: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A field, a function or a word of the language.
        case word(String)
        /// Between quotes, without them.
        case text(String)
        /// Digits and points as written, so that `4.10` stays a version.
        case number(String)
        /// Brackets, comma and comparisons; `==` is read as `=`.
        case sign(String)
        case end
    }

    var kind: Kind
    /// In Unicode scalars from the start of the text.
    var offset: Int
    var length: Int

    /// As a diagnostic names it.
    var found: String {
        switch kind {
        case .word(let word): quoted(word)
        case .text(let text): "the text \(quoted(text))"
        case .number(let number): "the number \(number)"
        case .sign(let sign): quoted(sign)
        case .end: "the end of the expression"
        }
    }

    /// True for this word of the language, in any case.
    func isWord(_ word: String) -> Bool {
        if case .word(let own) = kind { own.lowercased() == word } else { false }
    }

    func isSign(_ sign: String) -> Bool { kind == .sign(sign) }
}

/// What is wrong with an audience expression, and at which part of its text.
package struct AudienceProblem: Hashable, Sendable {
    /// In Unicode scalars from the start of the text, as `length` is.
    package var offset: Int
    package var length: Int
    package var what: String
    /// What to do; may be empty.
    package var advice: String
}
