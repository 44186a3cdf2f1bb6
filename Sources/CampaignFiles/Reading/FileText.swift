import Foundation
package import Model

/// Reads a whole file that a person wrote. Reports a clear diagnostic if that is not possible.
package enum FileText {
    /// The maximum size, 1 MiB. No campaign, template or configuration is that large.
    package static let bytesMax = 1 << 20

    /// - Parameter takesPipes: whether pipes are allowed. Set it only for a file that a person names for this call.
    package static func load(_ path: String, takesPipes: Bool = false) -> (text: String?, diagnostics: [Diagnostic]) {
        func refused(_ what: String, _ advice: String) -> (String?, [Diagnostic]) {
            (nil, [Diagnostic(path: path, what: what, advice: advice)])
        }
        do throws(RegularFile.Fault) {
            let data = try RegularFile.read(path, takesPipes: takesPipes)
            guard let text = String(validating: data, as: UTF8.self) else {
                return refused("is not UTF-8 text", "save it as UTF-8")
            }
            return (text, [])
        } catch {
            return refused(error.what, error.advice)
        }
    }

    /// Returns the text without the byte order mark that some editors add.
    static func withoutMark(_ text: String) -> String {
        guard text.unicodeScalars.first == "\u{FEFF}" else { return text }
        return String(text.unicodeScalars.dropFirst())
    }

    /// Returns the root object of a file. If there is none, reports the reason to `collector` and returns `nil`.
    static func root(of text: String, into collector: DiagnosticCollector, advice: String) -> Field? {
        guard let node = YAMLDocument.read(text, into: collector), !node.isNothing else {
            if !collector.hasErrors {
                collector.error("the file is empty", advice, at: SourceLocation(line: 1, column: 1))
            }
            return nil
        }
        return Field(name: "", node: node, collector: collector)
    }
}

/// The text of a file by lines, for finding the location of a character inside a scalar.
///
/// Finding one position costs no more than a binary search. The characters of a scalar are matched to the source once,
/// for any number of its positions.
final class SourceLines {
    private let scalars: [Unicode.Scalar]
    /// The index in ``scalars`` of each line's first character. Lines end as in YAML 1.1.
    private let starts: [Int]
    /// The last matched scalar: its start, its characters, and the index in ``scalars`` of each character and of the
    /// end.
    private var walked: (start: Int, text: [Unicode.Scalar], sources: [Int]) = (-1, [], [])

    /// The last examined sequence of blanks.
    private var blanks = 0..<0

    init(_ text: String) {
        let scalars = Array(text.unicodeScalars)
        var starts = [0]
        for index in scalars.indices where Self.endsLine(scalars, index) { starts.append(index + 1) }
        self.scalars = scalars
        self.starts = starts
    }

    func index(of location: SourceLocation) -> Int? {
        guard starts.indices.contains(location.line - 1), location.column > 0 else { return nil }
        let index = starts[location.line - 1] + location.column - 1
        return scalars.indices.contains(index) ? index : nil
    }

    func line(_ number: Int) -> String {
        guard starts.indices.contains(number - 1) else { return "" }
        let end = number < starts.count ? starts[number] : scalars.count
        return String(String.UnicodeScalarView(scalars[starts[number - 1]..<end]))
    }

    /// Returns the location of the `offset`-th Unicode scalar of `text`, which is the value of a YAML scalar at
    /// `start`. Source and value are matched through quotes, escapes and folded lines. Returns `start` if they do not
    /// match.
    func location(ofScalar offset: Int, of text: String, from start: SourceLocation) -> SourceLocation {
        guard let first = index(of: start) else { return start }
        if walked.start != first { walk(text, from: first) }
        let value = walked.text
        let source = walked.sources[min(offset, value.count)]
        guard source < scalars.count, offset >= value.count || scalars[source] == value[offset] else { return start }
        return location(at: source)
    }

    private func walk(_ text: String, from first: Int) {
        let value = Array(text.unicodeScalars)
        let quote = scalars[first]
        var source = first
        if quote == "\"" || quote == "'" { source += 1 }
        if quote == "|" || quote == ">" { source = firstOfBlock(after: source) }
        var sources = [source]
        sources.reserveCapacity(value.count + 1)
        for scalar in value {
            source = advance(source, past: scalar, quote: quote)
            sources.append(source)
        }
        walked = (first, value, sources)
    }

    private func location(at index: Int) -> SourceLocation {
        var (low, high) = (0, starts.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if starts[middle] <= index { low = middle } else { high = middle }
        }
        return SourceLocation(line: low + 1, column: index - starts[low] + 1)
    }

    private func firstOfBlock(after header: Int) -> Int {
        var index = header
        while index < scalars.count, !Self.endsLine(scalars, index) { index += 1 }
        return skipBlanks(from: index)
    }

    private func skipBlanks(from start: Int) -> Int {
        var index = start
        while index < scalars.count, scalars[index].properties.isWhitespace { index += 1 }
        return index
    }

    private func advance(_ index: Int, past value: Unicode.Scalar, quote: Unicode.Scalar) -> Int {
        guard index < scalars.count else { return index }
        let here = scalars[index]
        if quote == "\"", here == "\\" { return index + escapeLength(at: index) }
        if quote == "'", here == "'" { return index + 2 }
        let fold = (value == " " || value == "\n") && endsLineSoon(from: index)
        if fold { return skipBlanks(from: index) }
        return here == value ? index + 1 : index
    }

    /// Tells whether only blanks follow on the line, so that YAML folds the line end.
    private func endsLineSoon(from start: Int) -> Bool {
        var index = blanks.contains(start) ? blanks.upperBound : start
        while index < scalars.count, scalars[index] == " " || scalars[index] == "\t" { index += 1 }
        blanks = min(start, index)..<index
        return index < scalars.count && (scalars[index] == "\r" || Self.endsLine(scalars, index))
    }

    private func escapeLength(at index: Int) -> Int {
        guard index + 1 < scalars.count else { return 1 }
        switch scalars[index + 1] {
        case "x": return 4
        case "u": return 6
        case "U": return 10
        default: return 2
        }
    }

    private static func endsLine(_ scalars: [Unicode.Scalar], _ index: Int) -> Bool {
        switch scalars[index] {
        case "\n", "\u{85}", "\u{2028}", "\u{2029}": true
        case "\r": index + 1 == scalars.count || scalars[index + 1] != "\n"
        default: false
        }
    }
}
