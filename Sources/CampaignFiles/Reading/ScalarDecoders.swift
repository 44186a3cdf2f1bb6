import Model

extension ValueDecoder {
    /// A scalar that `parse` accepts.
    static func parsed(
        _ summary: String, example: String, form: TextForm = .free, _ parse: @escaping @Sendable (String) -> Value?
    ) -> ValueDecoder {
        let shape = ValueShape.text(summary: summary, example: example, form: form)
        return ValueDecoder(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            guard form.accepts(field.node), let value = parse(text) else {
                field.refuse(shape)
                return nil
            }
            return value
        }
    }

    /// Returns the same decoder with one more check. `check` reports the problems that it finds.
    func checked(_ check: @escaping @Sendable (Value, Field) -> Void) -> ValueDecoder {
        ValueDecoder(shape: shape) { field in
            guard let value = read(field) else { return nil }
            check(value, field)
            return value
        }
    }
}

extension ValueDecoder where Value == String {
    static var text: ValueDecoder { parsed("a text", example: "") { $0 } }

    /// A path. A relative path in a file is relative to that file's folder. A relative path in an environment variable
    /// is relative to the current folder.
    static func path(_ example: String) -> ValueDecoder {
        let written = parsed("a path", example: example) { $0.isEmpty ? nil : $0 }
        return ValueDecoder(shape: written.shape) { field in
            guard let path = written.read(field) else { return nil }
            return path.hasPrefix("/") || field.location.source != nil ? path : field.collector.folder + path
        }
    }

    /// A path, or the URL of a database. No message repeats a part of the URL, because the part may belong to a
    /// password.
    static var store: ValueDecoder {
        let example = "/var/lib/fanfare/fanfare.sqlite"
        let path = path(example)
        let shape = ValueShape.text(summary: "the path of a SQLite file or a postgres:// URL", example: example)
        return ValueDecoder(shape: shape) { field in
            guard let url = field.node.text, StoreAddress(url).isURL else { return path.read(field) }
            do {
                _ = try PostgresAddress(url)
                return url
            } catch {
                // The error's text is the problem, a semicolon and the advice.
                let parts = "\(error)".split(separator: "; ", maxSplits: 1).map(String.init)
                field.error(parts[0], parts.count > 1 ? parts[1] : "")
                return nil
            }
        }
    }

    /// A name that is suitable for files, reports and command lines.
    static var name: ValueDecoder {
        let form = TextForm.patternOfPlain(ScalarPattern.name)
        return parsed("a name of letters, digits, - _ and . (at most 100)", example: "new-podcast", form: form) { $0 }
    }

    /// `host:port`, with an IPv6 address in brackets.
    static var hostAndPort: ValueDecoder {
        parsed("host:port", example: "\"127.0.0.1:8787\"", form: .pattern("^.+:[0-9]+$")) { text in
            guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
                return nil
            }
            let host = text[..<colon]
            let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
            let fits = !host.isEmpty && !host.contains(where: \.isWhitespace) && (isBracketed || !host.contains(":"))
            return fits && (port > 0 || text.hasSuffix(":0")) ? text : nil
        }
    }
}

extension ValueDecoder where Value: RawRepresentable<String> & CaseIterable & SendableMetatype {
    /// One of a fixed set of words.
    static var word: ValueDecoder {
        let values = Value.allCases.map(\.rawValue)
        let shape = ValueShape.choice(values)
        return ValueDecoder(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            if let value = Value(rawValue: text) { return value }
            let nearest = Suggestion.nearest(to: text, among: values).map { "did you mean \(quoted($0))?" } ?? ""
            field.error("\(quoted(field.name)): expected \(shape.summary), found \(field.node.found)", nearest)
            return nil
        }
    }
}

extension ValueDecoder where Value == Bool {
    static var boolean: ValueDecoder {
        ValueDecoder(shape: .boolean) { field in
            switch field.node.isPlain ? field.node.text : nil {
            case "true": return true
            case "false": return false
            default:
                field.refuse(.boolean)
                return nil
            }
        }
    }
}

extension ValueDecoder where Value == Int {
    /// Decimal digits. `_` is allowed between them.
    static func integer(_ range: ClosedRange<Int>) -> ValueDecoder {
        let shape = ValueShape.integer(range)
        return ValueDecoder(shape: shape) { field in
            guard field.node.isPlain, let text = field.node.text, TextForm.matches(text, ScalarPattern.integer),
                let number = Int(text.replacing("_", with: "")), range.contains(number)
            else {
                field.refuse(shape)
                return nil
            }
            return number
        }
    }
}

extension ValueDecoder where Value == Double {
    static func number(_ range: ClosedRange<Double>) -> ValueDecoder {
        let shape = ValueShape.number(range)
        return ValueDecoder(shape: shape) { field in
            guard field.node.isPlain, let text = field.node.text, TextForm.matches(text, ScalarPattern.number),
                let number = Double(text), range.contains(number)
            else {
                field.refuse(shape)
                return nil
            }
            return number
        }
    }

    /// `2%`, `0.5%`.
    static func percent(_ range: ClosedRange<Double>) -> ValueDecoder {
        let summary = ValueShape.number(range).summary.replacing("a number", with: "a percentage")
        return parsed(summary, example: "2%", form: .pattern(#"^[0-9]+(\.[0-9]+)?%$"#)) { text in
            guard text.hasSuffix("%"), let number = Double(text.dropLast()), range.contains(number) else { return nil }
            return number
        }
    }

    /// `5000/s` or `300/m`, as pushes per second.
    static var pushesPerSecond: ValueDecoder {
        let form = TextForm.pattern(#"^[0-9][0-9_]*(\.[0-9]+)?/[sm]$"#)
        return parsed("a rate per second or minute", example: "5000/s", form: form) { text in
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, let count = Double(parts[0].replacing("_", with: "")), count > 0, count <= 1e7,
                let seconds = ["s": 1.0, "m": 60.0][parts[1]]
            else { return nil }
            return count / seconds
        }
    }
}

extension ValueDecoder where Value == Duration {
    static func duration(_ range: ClosedRange<Duration>, example: String) -> ValueDecoder {
        let form = TextForm.patternOrZero("^(0|([0-9]+(ms|s|m|h|d|w))+)$")
        let shape = ValueShape.text(summary: "a duration", example: example, form: form)
        return ValueDecoder(shape: shape) { field in
            guard let text = field.text(shape) else { return nil }
            guard form.accepts(field.node), let duration = WrittenDuration.parse(text) else {
                field.refuse(shape)
                return nil
            }
            guard range.contains(duration) else {
                let least = WrittenDuration.text(range.lowerBound)
                let most = WrittenDuration.text(range.upperBound)
                field.error("\(quoted(field.name)) is \(quoted(text))", "it must be from \(least) to \(most)")
                return nil
            }
            return duration
        }
    }
}

extension UInt8 {
    /// Whether the byte is an ASCII letter or digit.
    var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
