import Foundation
import Model

extension ValueDecoder where Value == Audience {
    private static var doubtsMax: Int { 20 }

    /// Returns the position of the first literal with this value, in Unicode scalars; 0 if it is written in another
    /// way.
    private static func place(of value: String, in text: String) -> Int {
        let found = ["\"", "'"].compactMap { text.range(of: $0 + value + $0, options: .literal)?.lowerBound }.min()
        return found.map { text.unicodeScalars.distance(from: text.startIndex, to: $0) } ?? 0
    }

    static var audience: ValueDecoder {
        let shape = ValueShape.text(
            summary: "an audience expression", example: "segment(\"fans\") and locale in (\"de\")",
            form: .pattern(#"^[\s\S]*\S[\s\S]*$"#))
        return ValueDecoder(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            let (expression, problems) = AudienceParser.parse(text)
            for problem in problems {
                field.collector.error(problem.what, problem.advice, at: field.location(ofScalar: problem.offset))
            }
            for doubt in expression?.doubts(atMost: Self.doubtsMax) ?? [] {
                field.collector.warning(
                    doubt.what, doubt.advice, at: field.location(ofScalar: place(of: doubt.value, in: text)))
            }
            return expression.map { Audience(source: text, expression: $0) }
        }
    }
}

/// Decodes `audience_sql`. Only the form is checked here. The store decides what the statement may read.
extension ValueDecoder where Value == String {
    static var audienceSQL: ValueDecoder {
        let example = "SELECT id FROM device_view WHERE country = 'DE'"
        let shape = ValueShape.text(
            summary: "one SELECT statement", example: example, form: .pattern(#"^[\s\S]*\S[\s\S]*$"#))
        return ValueDecoder(shape: shape) { $0.text(shape) }
            .checked { text, field in
                guard let problem = SQLShape.problem(in: text) else { return }
                field.collector.error(
                    "audience_sql: \(problem.what)", problem.advice, at: field.location(ofScalar: problem.offset))
            }
    }
}

/// The check that a text is one SELECT statement: quotes, comments and brackets are closed, and nothing follows.
enum SQLShape {
    struct Problem {
        var what: String
        var advice: String
        /// The position in Unicode scalars from the start of the text.
        var offset: Int
    }

    static func problem(in text: String) -> Problem? {
        var scanner = SQLScanner(text)
        var first: String?
        var brackets: [Int] = []
        var end: Int?
        while let token = scanner.next() {
            if end != nil {
                return Problem(
                    what: "more than one statement", advice: "write one SELECT and nothing behind it",
                    offset: token.offset)
            }
            switch token.kind {
            case .unclosed(let sign):
                return Problem(
                    what: "\(sign) is not closed", advice: "close it", offset: token.offset)
            case .sign("("): brackets.append(token.offset)
            case .sign(")"):
                guard brackets.popLast() != nil else {
                    return Problem(
                        what: "a bracket is closed but was never opened", advice: "remove it", offset: token.offset)
                }
            case .sign(";"): end = token.offset
            case .sign: break
            case .word(let word) where first == nil:
                first = word.uppercased()
                if first != "SELECT", first != "WITH" { return notSelect(word, at: token.offset) }
            case .word: break
            }
            if first == nil { return notSelect(nil, at: token.offset) }
        }
        if let open = brackets.last {
            return Problem(what: "this bracket is not closed", advice: "close it", offset: open)
        }
        return first == nil ? notSelect(nil, at: 0) : nil
    }

    private static func notSelect(_ word: String?, at offset: Int) -> Problem {
        Problem(
            what: word.map { "expected SELECT, found \(quoted($0))" } ?? "expected SELECT",
            advice: "write one SELECT of device ids; an audience is read, never changed", offset: offset)
    }
}

/// Splits SQL into words and signs. Texts in quotes and comments are skipped.
private struct SQLScanner {
    enum Kind: Equatable {
        case word(String)
        case sign(Unicode.Scalar)
        case unclosed(String)
    }

    private let scalars: [Unicode.Scalar]
    private var index = 0

    init(_ text: String) {
        scalars = Array(text.unicodeScalars)
    }

    mutating func next() -> (kind: Kind, offset: Int)? {
        while index < scalars.count {
            let start = index
            let scalar = scalars[index]
            index += 1
            switch scalar {
            case "'", "\"", "`":
                guard skip(past: scalar) else { return (.unclosed("a text"), start) }
                return (.sign(scalar), start)
            case "[":
                guard skip(past: "]") else { return (.unclosed("a name"), start) }
                return (.sign(scalar), start)
            case "-" where peek == "-":
                while index < scalars.count, scalars[index] != "\n" { index += 1 }
            case "/" where peek == "*":
                index += 1
                guard skipComment() else { return (.unclosed("a comment"), start) }
            case _ where scalar.properties.isWhitespace: break
            case _ where isPartOfWord(scalar):
                while index < scalars.count, isPartOfWord(scalars[index]) { index += 1 }
                return (.word(String(String.UnicodeScalarView(scalars[start..<index]))), start)
            default: return (.sign(scalar), start)
            }
        }
        return nil
    }

    private var peek: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

    /// Skips a quoted text or a comment. A doubled quote inside a text counts as the end of one text and the start of
    /// another, which has the same result.
    private mutating func skip(past end: Unicode.Scalar) -> Bool {
        while index < scalars.count {
            index += 1
            if scalars[index - 1] == end { return true }
        }
        return false
    }

    private mutating func skipComment() -> Bool {
        while index + 1 < scalars.count {
            if scalars[index] == "*", scalars[index + 1] == "/" {
                index += 2
                return true
            }
            index += 1
        }
        return false
    }

    private func isPartOfWord(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "_" || scalar.properties.isAlphabetic || scalar.properties.numericType != nil
    }
}
