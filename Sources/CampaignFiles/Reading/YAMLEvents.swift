import CYaml

/// One event of a YAML text, with its location.
struct YAMLEvent {
    enum Kind {
        case scalar(String, isPlain: Bool)
        case alias(String)
        case listStart, listEnd, objectStart, objectEnd
        case documentStart, documentEnd, streamStart, streamEnd
    }

    var kind: Kind
    var location: SourceLocation
    /// The Unicode scalars of the text that the event covers. The end of a list or an object in block style lies behind
    /// the comments that follow it.
    var range: Range<Int>
    /// Whether the value is written on the indentation, not in brackets or quotes.
    var isBlock = false
    /// The name by which aliases refer to the value.
    var anchor: String?
}

/// The reason why a text cannot be read as YAML from a location on.
struct YAMLFault: Error {
    enum Kind {
        /// A byte that YAML does not allow.
        case character
        /// A text that begins at the location and does not end.
        case unclosed
        case form
    }

    var kind: Kind
    var problem: String
    var location: SourceLocation
}

/// Reads YAML event by event. No other file imports the YAML library. The caller decides after each event whether to
/// continue, so that a text costs no more than the caller allows.
final class YAMLEvents {
    /// The maximum number of directives. No file needs one, because `%YAML` and `%TAG` have no effect here. The
    /// library compares each directive with all earlier ones, so a large number is slow.
    private static let directivesMax = 16

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let bytes: UnsafeMutableBufferPointer<UInt8>

    init(_ text: String) throws(YAMLFault) {
        var text = text
        let found: (line: Int, isFault: Bool) = text.withUTF8 { Self.directive($0, number: Self.directivesMax + 1) }
        if found.isFault {
            throw YAMLFault(
                kind: .form, problem: "more than \(Self.directivesMax) directives",
                location: SourceLocation(line: found.line, column: 1))
        }
        bytes = text.withUTF8 { source in
            let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, source.count))
            _ = copy.initialize(from: source)
            return UnsafeMutableBufferPointer(start: copy.baseAddress, count: source.count)
        }
        parser = .allocate(capacity: 1)
        parser.initialize(to: yaml_parser_t())
        yaml_parser_initialize(parser)
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
        bytes.baseAddress?.deallocate()
    }

    func next() throws(YAMLFault) -> YAMLEvent {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw fault }
        defer { yaml_event_delete(&event) }
        let mark = event.start_mark
        func found(_ kind: YAMLEvent.Kind, anchor: UnsafeMutablePointer<UInt8>? = nil) -> YAMLEvent {
            YAMLEvent(
                kind: kind, location: Self.location(mark),
                range: Int(mark.index)..<max(Int(mark.index), Int(event.end_mark.index)), isBlock: Self.isBlock(event),
                anchor: anchor.map { String(cString: $0) })
        }
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            // The value may contain NUL.
            let value = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            let isPlain = scalar.style == YAML_PLAIN_SCALAR_STYLE || scalar.style == YAML_ANY_SCALAR_STYLE
            return found(.scalar(String(decoding: value, as: UTF8.self), isPlain: isPlain), anchor: scalar.anchor)
        case YAML_ALIAS_EVENT: return found(.alias(String(cString: event.data.alias.anchor)))
        case YAML_SEQUENCE_START_EVENT: return found(.listStart, anchor: event.data.sequence_start.anchor)
        case YAML_SEQUENCE_END_EVENT: return found(.listEnd)
        case YAML_MAPPING_START_EVENT: return found(.objectStart, anchor: event.data.mapping_start.anchor)
        case YAML_MAPPING_END_EVENT: return found(.objectEnd)
        case YAML_DOCUMENT_START_EVENT: return found(.documentStart)
        case YAML_DOCUMENT_END_EVENT: return found(.documentEnd)
        case YAML_STREAM_START_EVENT: return found(.streamStart)
        default: return found(.streamEnd)
        }
    }

    private static func isBlock(_ event: yaml_event_t) -> Bool {
        switch event.type {
        case YAML_SCALAR_EVENT:
            let style = event.data.scalar.style
            return style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE
        case YAML_SEQUENCE_START_EVENT: return event.data.sequence_start.style != YAML_FLOW_SEQUENCE_STYLE
        case YAML_MAPPING_START_EVENT: return event.data.mapping_start.style != YAML_FLOW_MAPPING_STYLE
        default: return false
        }
    }

    private static func location(_ mark: yaml_mark_t) -> SourceLocation {
        SourceLocation(line: Int(mark.line) + 1, column: Int(mark.column) + 1)
    }

    private var fault: YAMLFault {
        let error = parser.pointee
        let problem = error.problem.map { String(cString: $0) } ?? "it cannot be read"
        if error.error == YAML_READER_ERROR {
            return YAMLFault(kind: .character, problem: problem, location: location(ofByte: Int(error.problem_offset)))
        }
        if error.error == YAML_SCANNER_ERROR, error.context != nil, problem.contains("end of stream") {
            return YAMLFault(kind: .unclosed, problem: problem, location: Self.location(error.context_mark))
        }
        return YAMLFault(kind: .form, problem: problem, location: Self.location(error.problem_mark))
    }

    private func location(ofByte offset: Int) -> SourceLocation {
        var location = SourceLocation(line: 1, column: 1)
        for byte in bytes.prefix(offset) {
            if byte == 0x0A {
                location.line += 1
                location.column = 1
            } else if byte & 0xC0 != 0x80 {
                location.column += 1
            }
        }
        return location
    }

    /// Returns the line of the directive with this number. Every line that begins with `%` counts as one.
    private static func directive(_ bytes: UnsafeBufferPointer<UInt8>, number: Int) -> (line: Int, isFault: Bool) {
        var (line, count) = (1, 0)
        var isStart = true
        for byte in bytes {
            if isStart, byte == UInt8(ascii: "%") { count += 1 }
            if count == number { return (line, true) }
            isStart = byte == 0x0A || byte == 0x0D
            if byte == 0x0A { line += 1 }
        }
        return (line, false)
    }
}
