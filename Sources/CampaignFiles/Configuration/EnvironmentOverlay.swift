import Model

/// Puts values from environment variables over those of the file: `FANFARE_HTTP_LISTEN` over `http.listen`,
/// `FANFARE_APPS_0_KEY_PATH` over `key_path` of the first app. An empty variable counts as not set.
struct EnvironmentOverlay {
    static let prefix = "FANFARE"

    let environment: [String: String]
    private(set) var used: Set<String> = []

    init(_ environment: [String: String]) {
        self.environment = environment.filter { $0.key.hasPrefix("\(Self.prefix)_") && !$0.value.isEmpty }
    }

    mutating func apply(_ shape: ObjectShape, to node: FileNode?, prefix: String = prefix) -> FileNode? {
        guard hasVariable(under: prefix) else { return node }
        var members: [FileNode.Member] = []
        if let node {
            guard case .object(let own) = node.content else { return node }
            members = own
        }
        for key in shape.keys {
            let name = "\(prefix)_\(key.name.uppercased())"
            let index = members.firstIndex { $0.key == key.name }
            let value = overlay(key.value, over: index.map { members[$0].value }, name: name)
            guard let value else { continue }
            if let index {
                members[index].value = value
            } else {
                members.append(FileNode.Member(key: key.name, place: value.place, value: value))
            }
        }
        let place = node?.place ?? members.first?.place ?? Place(source: prefix)
        return FileNode(content: .object(members), place: place, isPlain: false)
    }

    private mutating func overlay(_ shape: ValueShape, over node: FileNode?, name: String) -> FileNode? {
        switch shape {
        case .object(let object): return apply(object, to: node, prefix: name)
        case .list(.object(let element)): return list(of: element, over: node, name: name)
        case .text, .integer, .number, .boolean, .choice:
            guard let text = environment[name] else { return node }
            used.insert(name)
            return FileNode(content: .scalar(text), place: Place(source: name), isPlain: true)
        case .list, .map, .either, .anything: return node
        }
    }

    private mutating func list(of element: ObjectShape, over node: FileNode?, name: String) -> FileNode? {
        var elements: [FileNode] = []
        if let node {
            guard case .list(let own) = node.content else { return node }
            elements = own
        }
        for index in elements.indices {
            elements[index] = apply(element, to: elements[index], prefix: "\(name)_\(index)") ?? elements[index]
        }
        while let added = apply(element, to: nil, prefix: "\(name)_\(elements.count)") { elements.append(added) }
        guard node != nil || !elements.isEmpty else { return nil }
        return FileNode(content: .list(elements), place: node?.place ?? Place(source: name), isPlain: false)
    }

    private func hasVariable(under prefix: String) -> Bool {
        environment.keys.contains { $0.hasPrefix("\(prefix)_") }
    }
}
