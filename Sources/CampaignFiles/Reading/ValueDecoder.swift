/// Reads one type of value from a file, and knows its shape.
struct ValueDecoder<Value>: Sendable {
    let shape: ValueShape
    /// Nil when it does not fit; then the reason was reported.
    let read: @Sendable (Field) -> Value?
}

/// A key with the decoder of its value: the one declaration that readers, messages and the schema share.
struct Key<Value>: Sendable {
    let shape: KeyShape
    let decoder: ValueDecoder<Value>

    init(
        _ name: String, _ decoder: ValueDecoder<Value>, required: Bool = false, _ doc: String
    ) {
        shape = KeyShape(name: name, value: decoder.shape, isRequired: required, doc: doc)
        self.decoder = decoder
    }
}

/// A value under its key, with the collector of its problems.
struct Field {
    /// The key, or for an element of a list the list's key; empty for the file as a whole.
    var name: String
    var node: FileNode
    var collector: DiagnosticCollector

    var location: SourceLocation { node.location }

    func error(_ what: String, _ advice: String = "") {
        collector.error(what, advice, at: location)
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

    /// The location of a character of this scalar, counted in Unicode scalars from 0.
    func location(ofScalar offset: Int) -> SourceLocation {
        guard location.source == nil, let text = node.text else { return location }
        return collector.lines.location(ofScalar: offset, of: text, from: location)
    }
}

extension ValueDecoder {
    /// An object with known keys, turned into a value by `build`.
    static func object(_ shape: ObjectShape, _ build: @escaping @Sendable (ObjectReader) -> Value?) -> ValueDecoder {
        ValueDecoder(shape: .object(shape)) { field in ObjectReader(field, shape).flatMap(build) }
    }

    /// A list; elements that do not fit are reported and left out.
    static func list<Element>(of element: ValueDecoder<Element>) -> ValueDecoder where Value == [Element] {
        let shape = ValueShape.list(element.shape)
        return ValueDecoder(shape: shape) { field in
            guard case .list(let nodes) = field.node.content else {
                field.refuse(shape)
                return nil
            }
            return nodes.compactMap { node in
                element.read(Field(name: field.name, node: node, collector: field.collector))
            }
        }
    }
}
