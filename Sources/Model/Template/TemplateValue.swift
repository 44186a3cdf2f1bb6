/// Any JSON value a template author may write under `custom`; texts may hold placeholders, keys keep their order.
package indirect enum TemplateValue: Hashable, Sendable, Codable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    case text(TemplateText)
    case array([TemplateValue])
    case object([Member])

    package struct Member: Hashable, Sendable, Codable {
        package var key: String
        package var value: TemplateValue

        package init(_ key: String, _ value: TemplateValue) {
            self.key = key
            self.value = value
        }
    }

    /// Every text anywhere inside.
    package var texts: [TemplateText] {
        switch self {
        case .text(let text): [text]
        case .array(let values): values.flatMap(\.texts)
        case .object(let members): members.flatMap(\.value.texts)
        case .null, .boolean, .integer, .number: []
        }
    }
}
