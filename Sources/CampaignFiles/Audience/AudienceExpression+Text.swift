package import Model

extension AudienceExpression {
    /// The expression as text, with keywords in lower case and the fewest brackets. Parsing the text returns the same
    /// expression.
    package var text: String { text(inside: .nothing) }

    private enum Surrounding: Int {
        case nothing, any, all, not
    }

    private func text(inside outer: Surrounding) -> String {
        switch self {
        case .everyone: "everyone"
        case .all(let parts): joined(parts, " and ", .all, inside: outer)
        case .any(let parts): joined(parts, " or ", .any, inside: outer)
        case .not(let part): negated(part)
        case .comparison(let field, let comparison, let value):
            "\(field.text) \(comparison.rawValue) \(value.text)"
        case .between(let field, let low, let high): "\(field.text) between \(low.text) and \(high.text)"
        case .oneOf(let field, let values): "\(field.text) in (\(values.map(\.text).joined(separator: ", ")))"
        case .isNull(let field): "\(field.text) is null"
        case .within(let field, let duration): "\(field.text) within \(AudienceSpan.text(duration))"
        case .segment(let name): "segment(\(expressionLiteral(name)))"
        case .tag(let name): "tag(\(expressionLiteral(name)))"
        }
    }

    private func joined(
        _ parts: [AudienceExpression], _ word: String, _ own: Surrounding, inside outer: Surrounding
    ) -> String {
        if parts.isEmpty { return "not everyone" }
        if parts.count == 1 { return parts[0].text(inside: outer) }
        let text = parts.map { $0.text(inside: own) }.joined(separator: word)
        return outer.rawValue >= own.rawValue ? "(\(text))" : text
    }

    private func negated(_ part: AudienceExpression) -> String {
        switch part {
        case .oneOf(let field, let values):
            "\(field.text) not in (\(values.map(\.text).joined(separator: ", ")))"
        case .isNull(let field): "\(field.text) is not null"
        case .between(let field, let low, let high): "\(field.text) not between \(low.text) and \(high.text)"
        default: "not \(part.text(inside: .not))"
        }
    }
}

extension AudienceField {
    fileprivate var text: String {
        if case .attribute(let key) = self { return "attribute(\(expressionLiteral(key)))" }
        return name
    }
}

extension AudienceValue {
    fileprivate var text: String {
        switch self {
        case .text(let text): expressionLiteral(text)
        case .number(let number): String(Int(number))
        case .boolean(let truth): truth ? "true" : "false"
        case .time(let time): expressionLiteral(time.iso8601)
        case .version(let version): expressionLiteral(version.description)
        case .locale(let tag): expressionLiteral(tag.description)
        }
    }
}

/// Returns a text in quotes, as an expression reads it: sign by sign, because a quote and a mark behind it may be one
/// character.
func expressionLiteral(_ text: String) -> String {
    "\"\(text.replacingSign("\\", with: "\\\\").replacingSign("\"", with: "\\\""))\""
}
