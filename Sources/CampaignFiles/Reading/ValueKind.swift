/// How one kind of value is read from a file, beside its shape.
struct ValueKind<Value>: Sendable {
    let shape: ValueShape
    /// Nil when it does not fit; then the reason was reported.
    let read: @Sendable (Field) -> Value?
}

/// A key with the kind of its value: the one declaration that readers, messages and a schema share.
struct Key<Value>: Sendable {
    let shape: KeyShape
    let kind: ValueKind<Value>

    init(
        _ name: String, _ kind: ValueKind<Value>, required: Bool = false, _ doc: String
    ) {
        shape = KeyShape(name: name, value: kind.shape, isRequired: required, doc: doc)
        self.kind = kind
    }
}

/// A value under its key, with the collection its problems go to.
struct Field {
    /// The key, or for an element of a list the list's key; empty for the file as a whole.
    var name: String
    var node: FileNode
    var findings: Findings

    var place: Place { node.place }

    func error(_ what: String, _ advice: String = "") {
        findings.error(what, advice, at: place)
    }

    /// Reports that the value is not what the shape asks for.
    func refuse(_ shape: ValueShape) {
        if node.isNothing {
            error("\(quoted(name)) has no value", "give it \(shape.words) or remove the key")
        } else {
            let example = shape.example.isEmpty ? "" : "write for example \(shape.example)"
            let subject = name.isEmpty ? "" : "\(quoted(name)): "
            error("\(subject)expected \(shape.words), found \(node.found)", example)
        }
    }

    /// The text of a scalar as written; nil after reporting for anything else.
    func text(_ shape: ValueShape) -> String? {
        guard let text = node.text, !node.isNothing else {
            refuse(shape)
            return nil
        }
        return text
    }

    /// The place of a character of this scalar, counted in Unicode scalars from 0.
    func place(ofScalar offset: Int) -> Place {
        guard place.source == nil, let text = node.text else { return place }
        return findings.lines.place(ofScalar: offset, of: text, from: place)
    }
}
