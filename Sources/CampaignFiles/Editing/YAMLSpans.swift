/// A value of a YAML text with the part of the text that it covers, in Unicode scalars. Aliases are not followed.
struct YAMLSpan {
    enum Content {
        case scalar
        case list([YAMLSpan])
        case object([Member])
    }

    struct Member {
        /// `nil` if the key is not a text.
        var name: String?
        var key: Range<Int>
        var value: YAMLSpan
    }

    var content: Content
    /// The part of the text from the first character to the last one, without comments behind it.
    var range: Range<Int>
    /// Whether the value is written on the indentation, not in brackets or quotes.
    var isBlock: Bool
    /// Whether a scalar is written without quotes.
    var isPlain = false

    var members: [Member]? {
        if case .object(let members) = content { members } else { nil }
    }

    var isFlowObject: Bool { !isBlock && members != nil }
}

/// Reads the spans of a text.
struct YAMLSpanReader {
    private let events: YAMLEvents
    private let scalars: [Unicode.Scalar]

    /// Returns the root's span, or `nil` if the text has no value, or several documents, or is nested too deeply.
    static func root(of text: String, _ scalars: [Unicode.Scalar]) throws(YAMLFault) -> YAMLSpan? {
        let reader = YAMLSpanReader(events: try YAMLEvents(text), scalars: scalars)
        _ = try reader.events.next()
        guard case .documentStart = try reader.events.next().kind else { return nil }
        guard let root = try reader.span(try reader.events.next(), depth: 0) else { return nil }
        _ = try reader.events.next()
        guard case .streamEnd = try reader.events.next().kind else { return nil }
        return root
    }

    private func span(_ event: YAMLEvent, depth: Int) throws(YAMLFault) -> YAMLSpan? {
        guard depth < YAMLDocument.depthMax else { return nil }
        switch event.kind {
        case .scalar(_, let isPlain):
            let range = event.isBlock ? trimmed(event.range) : event.range
            return YAMLSpan(content: .scalar, range: range, isBlock: event.isBlock, isPlain: isPlain)
        case .alias: return YAMLSpan(content: .scalar, range: event.range, isBlock: false)
        case .listStart: return try list(event, depth: depth)
        case .objectStart: return try object(event, depth: depth)
        default: return nil
        }
    }

    private func list(_ start: YAMLEvent, depth: Int) throws(YAMLFault) -> YAMLSpan? {
        var (values, end) = ([YAMLSpan](), start.range.upperBound)
        while true {
            let event = try events.next()
            if case .listEnd = event.kind {
                if !start.isBlock { end = event.range.upperBound }
                break
            }
            guard let value = try span(event, depth: depth + 1) else { return nil }
            values.append(value)
            end = value.range.upperBound
        }
        return YAMLSpan(content: .list(values), range: start.range.lowerBound..<end, isBlock: start.isBlock)
    }

    private func object(_ start: YAMLEvent, depth: Int) throws(YAMLFault) -> YAMLSpan? {
        var (members, end) = ([YAMLSpan.Member](), start.range.upperBound)
        while true {
            let event = try events.next()
            if case .objectEnd = event.kind {
                if !start.isBlock { end = event.range.upperBound }
                break
            }
            guard let key = try span(event, depth: depth + 1) else { return nil }
            guard let value = try span(try events.next(), depth: depth + 1) else { return nil }
            var name: String?
            if case .scalar(let text, _) = event.kind { name = text }
            members.append(.init(name: name, key: key.range, value: value))
            end = max(key.range.upperBound, value.range.upperBound)
        }
        return YAMLSpan(content: .object(members), range: start.range.lowerBound..<end, isBlock: start.isBlock)
    }

    /// Returns the range without the white space at its end.
    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var end = min(range.upperBound, scalars.count)
        while end > range.lowerBound, scalars[end - 1].properties.isWhitespace { end -= 1 }
        return range.lowerBound..<end
    }
}
