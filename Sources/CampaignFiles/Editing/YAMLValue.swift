import Model

/// A value to write into a YAML text.
package enum YAMLValue: Hashable, Sendable {
    /// A text, in quotes unless the value that it replaces had none and needs none.
    case text(String)
    /// A number, a word or a time, without quotes if YAML allows it.
    case word(String)
    /// A long text that YAML joins from lines, such as an audience. There is at least one line.
    case folded([String])
    /// A list of words on one line.
    case list([String])

    /// The content that a reader finds.
    var tree: YAMLTree {
        switch self {
        case .text(let text), .word(let text): .scalar(text)
        case .folded(let lines): .scalar(lines.joined(separator: " "))
        case .list(let items): .list(items.map(YAMLTree.scalar))
        }
    }
}

/// The writing of scalars.
enum YAMLScalar {
    /// Words that other YAML parsers, or the readers of `custom`, do not take for a text.
    private static let reserved: Set<String> = [
        "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n",
    ]

    /// Whether a text can stand without quotes, on one line and also inside brackets.
    static func canBePlain(_ text: String, isText: Bool) -> Bool {
        let scalars = Array(text.unicodeScalars)
        guard let first = scalars.first, let last = scalars.last else { return false }
        guard scalars.allSatisfy({ isWordCharacter($0) || "+./:@ -%".unicodeScalars.contains($0) }) else {
            return false
        }
        guard isWordCharacter(first) || first == "+" || first == "/" || first == "." else { return false }
        guard last != " ", last != ":" else { return false }
        guard !text.contains(": "), !text.contains("  ") else { return false }
        return !isText || !(reserved.contains(text.lowercased()) || looksNumeric(text))
    }

    static func double(_ text: String) -> String {
        var written = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": written += "\\\""
            case "\\": written += "\\\\"
            case "\n": written += "\\n"
            case "\t": written += "\\t"
            case "\r": written += "\\r"
            case _ where isUnprintable(scalar): written += escape(scalar)
            default: written.unicodeScalars.append(scalar)
            }
        }
        return written + "\""
    }

    static func single(_ text: String) -> String? {
        guard !text.unicodeScalars.contains(where: { isUnprintable($0) || $0 == "\n" || $0 == "\t" || $0 == "\r" })
        else { return nil }
        return "'\(text.replacingSign("'", with: "''"))'"
    }

    /// Returns the lines of a literal block, or `nil` if the text needs quotes.
    static func literalLines(_ text: String) -> [String]? {
        guard text.contains("\n"), !text.hasSuffix("\n"), !text.hasPrefix("\n"), !text.hasPrefix(" ") else {
            return nil
        }
        guard !text.unicodeScalars.contains(where: { isUnprintable($0) || $0 == "\r" || $0 == "\t" }) else {
            return nil
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        // Spaces at the end of a line cannot be seen, and a line of spaces changes the indentation.
        return lines.contains { $0.hasSuffix(" ") } ? nil : lines
    }

    static func key(_ name: String) -> String {
        canBePlain(name, isText: true) && !name.contains(" ") && !name.contains(":") ? name : double(name)
    }

    private static func isWordCharacter(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "_" || (scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil))
    }

    private static func looksNumeric(_ text: String) -> Bool {
        guard let first = text.utf8.first else { return false }
        return (0x30...0x39).contains(first) || first == UInt8(ascii: "+") || first == UInt8(ascii: ".")
            || first == UInt8(ascii: "-")
    }

    /// Characters that YAML allows only escaped, or that a person would not see.
    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0A, 0x09, 0x0D, 0x20...0x7E: false
        case 0..<0xA0, 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF: true
        default: false
        }
    }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        let hex = String(scalar.value, radix: 16, uppercase: true)
        return scalar.value <= 0xFF
            ? "\\x" + String(repeating: "0", count: 2 - hex.count) + hex
            : "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
    }
}

/// The content of a YAML text, without its form.
indirect enum YAMLTree: Hashable {
    case scalar(String)
    case list([YAMLTree])
    case object([String: YAMLTree])

    /// Returns `nil` if a key occurs twice.
    init?(_ node: FileNode) {
        switch node.content {
        case .scalar(let text): self = .scalar(text)
        case .list(let values):
            let trees = values.compactMap(YAMLTree.init)
            guard trees.count == values.count else { return nil }
            self = .list(trees)
        case .object(let members):
            var object: [String: YAMLTree] = [:]
            for member in members {
                guard let value = YAMLTree(member.value), object.updateValue(value, forKey: member.key) == nil else {
                    return nil
                }
            }
            self = .object(object)
        }
    }

    /// Returns the tree with another value at a path. `nil` removes the value, and each object that becomes empty.
    func setting(_ path: ArraySlice<String>, to value: YAMLTree?) -> YAMLTree? {
        guard let name = path.first else { return value }
        var members: [String: YAMLTree] = [:]
        if case .object(let known) = self { members = known }
        let inner = members[name] ?? (path.count > 1 && value != nil ? .object([:]) : nil)
        members[name] = path.count == 1 ? value : inner?.setting(path.dropFirst(), to: value)
        return members.isEmpty ? nil : .object(members)
    }
}
