import Model

/// A new item at the end of a list of objects, such as the apps of a configuration. Everything else stays as a person
/// wrote it.
extension YAMLText {
    /// Appends an object to the list of a key of the whole file. A missing or empty list is written anew. The text is
    /// unchanged if this throws.
    ///
    /// - Parameter item: the object's values, in the order to write them. Of two values with a common beginning of
    ///   their paths, the second directly follows the first.
    package mutating func append(_ item: [Edit], to key: String) throws(Fault) {
        guard !text.contains("\r"), let before = Self.tree(text), case .object(let members) = before else {
            throw .unreadable
        }
        var object: YAMLTree = .object([:])
        for edit in item { object = object.setting(edit.path[...], to: edit.value?.tree) ?? object }
        var values: [YAMLTree] = []
        if case .list(let known) = members[key] { values = known }
        let wanted = before.setting([key], to: .list(values + [object]))
        let old = self
        do {
            try appendLines(item, to: key)
        } catch {
            self = old
            throw .unsuitable(path: key)
        }
        guard Self.tree(text) == wanted else {
            self = old
            throw .unsuitable(path: key)
        }
    }

    private mutating func appendLines(_ item: [Edit], to key: String) throws {
        scalars = Array(text.unicodeScalars)
        guard let root = try YAMLSpanReader.root(of: text, scalars), root.isBlock, let members = root.members else {
            throw Unsuitable()
        }
        defer { text = String(String.UnicodeScalarView(scalars)) }
        guard let member = members.first(where: { $0.name == key }) else {
            let end = text.hasSuffix("\n") ? "" : "\n"
            return substitute(
                scalars.count..<scalars.count, by: end + "\(key):\n" + lines(of: item, indentation: 2) + "\n")
        }
        guard case .list(let values) = member.value.content, let last = values.last else {
            // An empty list in brackets, or nothing.
            let colon = try colon(behind: member)
            let old = max(colon, member.value.range.upperBound)
            guard textOf(colon..<old).allSatisfy({ " []".contains($0) }) else { throw Unsuitable() }
            let end = lineEnd(from: old)
            let comment = textOf(old..<end)
            return substitute(colon..<end, by: comment + "\n" + lines(of: item, indentation: 2))
        }
        guard member.value.isBlock, let first = values.first else { throw Unsuitable() }
        // The value begins behind its dash.
        var dash = first.range.lowerBound
        while dash > 0, scalars[dash] != "-" { dash -= 1 }
        let indentation = column(of: dash)
        let end = endWithComments(lineEnd(from: last.range.upperBound), deeperThan: indentation)
        substitute(end..<end, by: "\n" + lines(of: item, indentation: indentation))
    }

    /// Returns the end of the comments that follow a list's last item and belong to it, since they are indented more
    /// deeply than the list.
    private func endWithComments(_ end: Int, deeperThan indentation: Int) -> Int {
        var (last, next) = (end, end)
        while next < scalars.count {
            let lineEnd = lineEnd(from: next + 1)
            let line = textOf(next + 1..<max(next + 1, lineEnd))
            let margin = line.prefix { $0 == " " }.count
            guard margin == line.count || margin > indentation && line.dropFirst(margin).hasPrefix("#") else { break }
            if margin < line.count { last = lineEnd }
            next = max(next + 1, lineEnd)
        }
        return last
    }

    private func lines(of item: [Edit], indentation: Int) -> String {
        var (lines, open) = ([String](), [String]())
        for edit in item {
            guard let value = edit.value, let name = edit.path.last else { continue }
            let parents = Array(edit.path.dropLast())
            let common = zip(open, parents).prefix { $0 == $1 }.count
            for (depth, parent) in parents.enumerated().dropFirst(common) {
                lines.append(String(repeating: "  ", count: depth) + YAMLScalar.key(parent) + ":")
            }
            open = parents
            lines.append(
                String(repeating: "  ", count: parents.count)
                    + "\(YAMLScalar.key(name)): \(inline(value, instead: nil))")
        }
        let margin = String(repeating: " ", count: indentation)
        return lines.enumerated().map { margin + ($0 == 0 ? "- " : "  ") + $1 }.joined(separator: "\n")
    }
}
