extension ValueKind {
    /// An object with known keys, turned into a value by `build`.
    static func object(_ shape: ObjectShape, _ build: @escaping @Sendable (ObjectReader) -> Value?) -> ValueKind {
        ValueKind(shape: .object(shape)) { field in ObjectReader(field, shape).flatMap(build) }
    }

    /// A list; elements that do not fit are reported and left out.
    static func list<Element>(of element: ValueKind<Element>) -> ValueKind where Value == [Element] {
        let shape = ValueShape.list(element.shape)
        return ValueKind(shape: shape) { field in
            guard case .list(let nodes) = field.node.content else {
                field.refuse(shape)
                return nil
            }
            return nodes.compactMap { node in
                element.read(Field(name: field.name, node: node, findings: field.findings))
            }
        }
    }
}
