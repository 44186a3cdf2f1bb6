import Model

/// The text of a YAML file, changed value by value. Everything else stays as a person wrote it: comments, order, quotes
/// and line breaks.
package struct YAMLText: Sendable {
    /// A change of one value.
    package struct Edit: Hashable, Sendable {
        /// The keys that lead to the value.
        package var path: [String]
        /// `nil` removes the value, and each object that becomes empty.
        package var value: YAMLValue?

        package init(_ path: [String], _ value: YAMLValue?) {
            self.path = path
            self.value = value
        }
    }

    package enum Fault: Error, Hashable, Sendable {
        /// The text is not YAML, or has a key twice.
        case unreadable
        /// There are too many edits for a text of this size.
        case tooMany
        /// The value at this path is written in a form that only a person can change, such as an alias.
        case unsuitable(path: String)
    }

    /// The maximum number of edits of a text.
    package static let editsMax = 300
    /// The maximum number of bytes that all edits together read. Each one reads the text again.
    private static let bytesMax = 4 << 20

    package internal(set) var text: String
    private let isCRLF: Bool
    private let order: [String: [String]]
    var scalars: [Unicode.Scalar] = []

    /// - Parameter order: the usual order of the keys, by the path of their object. `""` is the whole file, and `*` in
    ///   a path is any key. A new key goes behind the nearest key that usually precedes it.
    package init(_ text: String, order: [String: [String]] = [:]) {
        isCRLF = text.contains("\r\n")
        self.text = isCRLF ? text.replacing("\r\n", with: "\n") : text
        self.order = order
    }

    /// Changes the values. The text is unchanged if this throws.
    package mutating func apply(_ edits: [Edit]) throws(Fault) {
        guard edits.count <= Self.editsMax, edits.count * text.utf8.count <= Self.bytesMax else { throw .tooMany }
        let before = self
        // A line break of another kind would be lost, or move to another line.
        guard !text.contains("\r"), var wanted = Self.tree(text) else { throw .unreadable }
        for edit in edits {
            guard wanted.contains(edit.path) || edit.value != nil else { continue }
            guard let changed = wanted.setting(edit.path[...], to: edit.value?.tree) else {
                throw .unsuitable(path: edit.path.joined(separator: "."))
            }
            guard changed != wanted else { continue }
            wanted = changed
            do {
                try put(edit)
            } catch {
                self = before
                throw .unsuitable(path: edit.path.joined(separator: "."))
            }
            // An alias, an anchor or an unusual form can change more than the edit meant.
            guard Self.tree(text) == wanted else {
                self = before
                throw .unsuitable(path: edit.path.joined(separator: "."))
            }
        }
    }

    /// The text with the line ends of the original.
    package var written: String { isCRLF ? text.replacing("\n", with: "\r\n") : text }

    static func tree(_ text: String) -> YAMLTree? {
        let collector = DiagnosticCollector(path: "", text: text)
        guard let node = YAMLDocument.read(text, into: collector), !collector.hasErrors else { return nil }
        return YAMLTree(node)
    }
}

// MARK: One edit

extension YAMLText {
    struct Unsuitable: Error {}

    /// A value in the text, with the objects around it.
    private struct Place {
        /// The objects from the root to the innermost one that exists.
        var objects: [YAMLSpan]
        /// The members that lead to them, and to the value if it exists.
        var members: [YAMLSpan.Member]
    }

    private mutating func put(_ edit: Edit) throws {
        scalars = Array(text.unicodeScalars)
        guard let root = try YAMLSpanReader.root(of: text, scalars), root.members != nil else { throw Unsuitable() }
        let place = place(of: edit.path, in: root)
        switch (edit.value, place.members.count == edit.path.count) {
        case (let value?, true): try replace(place, with: value)
        case (let value?, false): try insert(value, at: edit.path, place)
        case (nil, true): try remove(place)
        case (nil, false): break
        }
        text = String(String.UnicodeScalarView(scalars))
    }

    private func place(of path: [String], in root: YAMLSpan) -> Place {
        var place = Place(objects: [root], members: [])
        for (depth, name) in path.enumerated() {
            guard let member = place.objects[depth].members?.first(where: { $0.name == name }) else { break }
            place.members.append(member)
            guard depth < path.count - 1 else { break }
            // An empty value becomes an object.
            guard member.value.members != nil else { break }
            place.objects.append(member.value)
        }
        return place
    }

    // MARK: Replacing

    private mutating func replace(_ place: Place, with value: YAMLValue) throws {
        guard let member = place.members.last else { throw Unsuitable() }
        let old = member.value
        let isInside = place.objects.contains { !$0.isBlock }
        if case .scalar = old.content {
            let comment = old.isBlock ? headComment(of: old.range) : ""
            let end = lineEnd(from: old.range.upperBound)
            let indentation = String(repeating: " ", count: column(of: member.key.lowerBound) + 2)
            if !isInside, let lines = blockLines(value, instead: old) {
                let rest = old.isBlock ? comment : textOf(old.range.upperBound..<end)
                guard rest.trimmingPrefix(while: { $0 == " " }).isEmpty || rest.contains(" #") else {
                    throw Unsuitable()
                }
                let block = lines.map { $0.isEmpty ? "" : indentation + $0 }.joined(separator: "\n")
                let head = blockHead(value) + rest
                return substitute(
                    old.range.lowerBound..<(old.isBlock ? old.range.upperBound : end),
                    by: space(before: old) + head + "\n" + block)
            }
            return substitute(old.range, by: space(before: old) + inline(value, instead: old) + comment)
        }
        guard !old.isBlock else {
            // The value begins on the lines behind the key.
            let colon = try self.colon(behind: member)
            return substitute(colon..<old.range.upperBound, by: " " + inline(value, instead: nil))
        }
        substitute(old.range, by: inline(value, instead: nil))
    }

    /// Returns the position behind the colon of a member's key.
    func colon(behind member: YAMLSpan.Member) throws -> Int {
        var index = member.key.upperBound
        while index < scalars.count, scalars[index] == " " { index += 1 }
        guard index < scalars.count, scalars[index] == ":" else { throw Unsuitable() }
        return index + 1
    }

    /// A value that is missing stands directly behind its colon.
    private func space(before old: YAMLSpan) -> String {
        old.range.isEmpty && old.range.lowerBound > 0 && scalars[old.range.lowerBound - 1] == ":" ? " " : ""
    }

    /// Returns the comment behind the head of a block, such as ` # why`.
    private func headComment(of range: Range<Int>) -> String {
        let head = textOf(range.lowerBound..<min(lineEnd(from: range.lowerBound), range.upperBound))
        guard let hash = head.place(of: " #") else { return "" }
        return " " + head[hash.lowerBound...]
    }

    func inline(_ value: YAMLValue, instead old: YAMLSpan?) -> String {
        switch value {
        case .word(let word): return YAMLScalar.canBePlain(word, isText: false) ? word : YAMLScalar.double(word)
        case .folded(let lines):
            let text = lines.joined(separator: " ")
            return YAMLScalar.canBePlain(text, isText: true) ? text : quoted(text, like: old)
        case .list(let items): return "[\(items.map { inline(.word($0), instead: nil) }.joined(separator: ", "))]"
        case .text(let text): return quoted(text, like: old)
        }
    }

    /// Keeps the quotes of the old value if they can hold the text.
    private func quoted(_ text: String, like old: YAMLSpan?) -> String {
        guard let old, !old.isBlock, !old.range.isEmpty else { return YAMLScalar.double(text) }
        if scalars[old.range.lowerBound] == "'", let single = YAMLScalar.single(text) { return single }
        if old.isPlain, YAMLScalar.canBePlain(text, isText: true) { return text }
        return YAMLScalar.double(text)
    }

    private func blockLines(_ value: YAMLValue, instead old: YAMLSpan?) -> [String]? {
        switch value {
        case .folded(let lines):
            lines.count > 1 || !lines[0].isEmpty && !YAMLScalar.canBePlain(lines[0], isText: true) ? lines : nil
        case .text(let text): YAMLScalar.literalLines(text)
        case .word, .list: nil
        }
    }

    private func blockHead(_ value: YAMLValue) -> String {
        if case .folded = value { ">-" } else { "|-" }
    }

    // MARK: Inserting

    private mutating func insert(_ value: YAMLValue, at path: [String], _ place: Place) throws {
        let missing = Array(path[place.members.count...])
        if place.members.count >= place.objects.count {
            // The last member has a value that is not an object: only nothing can become one.
            guard let member = place.members.last, member.value.range.isEmpty, place.objects.allSatisfy(\.isBlock)
            else {
                throw Unsuitable()
            }
            let indentation = column(of: member.key.lowerBound) + 2
            let colon = try self.colon(behind: member)
            let end = lineEnd(from: colon)
            let rest = textOf(colon..<end)
            guard rest.allSatisfy({ $0 == " " }) || rest.contains(" #") else { throw Unsuitable() }
            return substitute(end..<end, by: "\n" + lines(missing, value, indentation: indentation))
        }
        guard let object = place.objects.last, let members = object.members else { throw Unsuitable() }
        let before = predecessor(of: missing[0], among: members, at: Array(path[..<place.members.count]))
        if object.isBlock {
            try insertLines(missing, value, into: members, behind: before)
        } else {
            insertInBrackets(missing, value, into: object, members, behind: before)
        }
    }

    private mutating func insertLines(
        _ names: [String], _ value: YAMLValue, into members: [YAMLSpan.Member], behind before: Int?
    ) throws {
        guard let first = members.first else { throw Unsuitable() }
        let indentation = column(of: first.key.lowerBound)
        let isInBrackets = names.count > 1 && members.contains { $0.value.isFlowObject }
        let new =
            isInBrackets
            ? String(repeating: " ", count: indentation) + "\(YAMLScalar.key(names[0])): "
                + brackets(Array(names.dropFirst()), value)
            : lines(names, value, indentation: indentation)
        guard let before else {
            let start = first.key.lowerBound - indentation
            guard textOf(start..<first.key.lowerBound).allSatisfy({ $0 == " " }) else { throw Unsuitable() }
            return substitute(start..<start, by: new + "\n")
        }
        let end = lineEnd(from: members[before].value.range.upperBound)
        substitute(end..<end, by: "\n" + new)
    }

    private mutating func insertInBrackets(
        _ names: [String], _ value: YAMLValue, into object: YAMLSpan, _ members: [YAMLSpan.Member],
        behind before: Int?
    ) {
        let new = member(names, value)
        guard let first = members.first else {
            return substitute(object.range, by: "{\(new)}")
        }
        if let before {
            let end = members[before].value.range.upperBound
            substitute(end..<end, by: ", " + new)
        } else {
            substitute(first.key.lowerBound..<first.key.lowerBound, by: new + ", ")
        }
    }

    /// Returns the index of the member behind which a new one goes; `nil` to go before all.
    private func predecessor(of name: String, among members: [YAMLSpan.Member], at path: [String]) -> Int? {
        let usual = order.first { Self.matches($0.key, path) }?.value ?? []
        guard let own = usual.firstIndex(of: name) else { return members.indices.last }
        let ranks = members.map { member in member.name.flatMap { usual.firstIndex(of: $0) } }
        if let behind = ranks.lastIndex(where: { $0.map { $0 < own } ?? false }) { return behind }
        return ranks.contains { $0 != nil } ? nil : members.indices.last
    }

    private static func matches(_ pattern: String, _ path: [String]) -> Bool {
        let parts = pattern.isEmpty ? [] : pattern.split(separator: ".").map(String.init)
        return parts.count == path.count && zip(parts, path).allSatisfy { $0 == "*" || $0 == $1 }
    }

    private func lines(_ names: [String], _ value: YAMLValue, indentation: Int) -> String {
        let margin = String(repeating: " ", count: indentation)
        let key = margin + YAMLScalar.key(names[0]) + ":"
        if names.count > 1 {
            return key + "\n" + lines(Array(names.dropFirst()), value, indentation: indentation + 2)
        }
        guard let block = blockLines(value, instead: nil) else { return key + " " + inline(value, instead: nil) }
        return key + " " + blockHead(value) + "\n"
            + block.map { $0.isEmpty ? "" : margin + "  " + $0 }.joined(separator: "\n")
    }

    private func member(_ names: [String], _ value: YAMLValue) -> String {
        "\(YAMLScalar.key(names[0])): "
            + (names.count > 1 ? brackets(Array(names.dropFirst()), value) : inline(value, instead: nil))
    }

    private func brackets(_ names: [String], _ value: YAMLValue) -> String { "{\(member(names, value))}" }

    // MARK: Removing

    private mutating func remove(_ place: Place) throws {
        var depth = place.members.count - 1
        // An object that becomes empty goes, too.
        while depth > 0, place.objects[depth].members?.count == 1 { depth -= 1 }
        let (member, object) = (place.members[depth], place.objects[depth])
        guard let members = object.members, members.count > 1 else { throw Unsuitable() }
        guard object.isBlock else {
            guard let index = members.firstIndex(where: { $0.key == member.key }) else { throw Unsuitable() }
            if index + 1 < members.count {
                return substitute(member.key.lowerBound..<members[index + 1].key.lowerBound, by: "")
            }
            return substitute(
                members[index - 1].value.range.upperBound..<member.value.range.upperBound, by: "")
        }
        let start = member.key.lowerBound - column(of: member.key.lowerBound)
        guard textOf(start..<member.key.lowerBound).allSatisfy({ $0 == " " }) else { throw Unsuitable() }
        let end = lineEnd(from: max(member.key.upperBound, member.value.range.upperBound))
        substitute(start..<min(end + 1, scalars.count), by: "")
    }

    // MARK: The text

    func textOf(_ range: Range<Int>) -> String { String(String.UnicodeScalarView(scalars[range])) }

    /// Returns the position of the next line end, or the end of the text.
    func lineEnd(from position: Int) -> Int {
        scalars[min(position, scalars.count)...].firstIndex(of: "\n") ?? scalars.count
    }

    func column(of position: Int) -> Int {
        var start = position
        while start > 0, scalars[start - 1] != "\n" { start -= 1 }
        return position - start
    }

    mutating func substitute(_ range: Range<Int>, by new: String) {
        scalars.replaceSubrange(range, with: new.unicodeScalars)
    }
}

extension YAMLTree {
    fileprivate func contains(_ path: [String]) -> Bool {
        var tree = self
        for name in path {
            guard case .object(let members) = tree, let inner = members[name] else { return false }
            tree = inner
        }
        return true
    }
}
