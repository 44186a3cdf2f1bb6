import Model

/// Writes one locale of a template as JSON, with separate pieces for device fields (`ProviderProtocol` section 5).
struct PayloadWriter {
    private let variables: [String: String]
    private let fields: [AudienceField]
    /// The badge of the push. A placeholder for ``Model/AudienceField/badge`` has the same number.
    private var badge: Template.Badge?
    var json = JSONBytes()
    private(set) var pieces: [PayloadPrototype.Piece] = []
    /// The number of bytes in ``pieces``.
    private var closed = 0
    /// The size from which no more variables are filled in. It is far above the limit of APNs, so the payload is
    /// refused anyway.
    private static let sizeMax = 1 << 16

    private var size: Int { closed + json.count }

    init(variables: [String: String], fields: [AudienceField]) {
        self.variables = variables
        self.fields = fields
    }

    /// Writes the whole body. The check of the template file has already limited the keys.
    ///
    /// - Parameter hasReference: whether the body has the reference for feedback.
    mutating func write(_ template: Template, _ pushType: PushType, localeIndex: Int?, hasReference: Bool) {
        badge = pushType == .alert ? template.badge : nil
        json.raw("{")
        var isFirst = true
        switch pushType {
        case .mdm: write("mdm", template.pushMagic, isFirst: &isFirst)
        // The system reads the app's keys at the top level and ignores `aps`.
        case .fileprovider: break
        default:
            json.key("aps", isFirst: &isFirst)
            json.raw("{")
            writeAPS(template, pushType, localeIndex: localeIndex)
            json.raw("}")
        }
        for member in template.custom {
            json.key(member.key, isFirst: &isFirst)
            write(member.value)
        }
        if hasReference {
            json.key(CampaignFeedback.payloadKey, isFirst: &isFirst)
            json.raw("{\"r\":")
            closePiece()
            pieces.append(.reference)
            json.raw("}")
        }
        json.raw("}")
    }

    mutating func finish(plannedSeconds: Int64) -> PayloadPrototype {
        closePiece()
        return PayloadPrototype(pieces: pieces, plannedSeconds: plannedSeconds)
    }

    mutating func write(_ badge: Template.Badge) {
        switch badge {
        case .number(let number):
            json.raw("\(number)")
        case .increment:
            closePiece()
            pieces.append(.badge)
        }
    }

    mutating func write(_ sound: Template.Sound) {
        switch sound {
        case .named(let name):
            write(name)
        case .critical(let name, let volume):
            json.raw("{\"critical\":1,\"name\":")
            write(name)
            if let volume { json.raw(",\"volume\":\(volume)") }
            json.raw("}")
        }
    }

    mutating func write(_ key: String, _ text: TemplateText?, isFirst: inout Bool) {
        guard let text else { return }
        json.key(key, isFirst: &isFirst)
        write(text)
    }

    mutating func write(_ key: String, _ value: TemplateValue?, isFirst: inout Bool) {
        guard let value else { return }
        json.key(key, isFirst: &isFirst)
        write(value)
    }

    mutating func write(_ key: String, _ number: Int64, isFirst: inout Bool) {
        write(key, .integer(number), isFirst: &isFirst)
    }

    mutating func write(_ key: String, _ moment: LiveActivity.Moment?, isFirst: inout Bool) {
        guard let moment else { return }
        json.key(key, isFirst: &isFirst)
        write(moment)
    }

    mutating func write(_ moment: LiveActivity.Moment) {
        switch moment {
        case .at(let time): json.raw("\(time.seconds)")
        case .afterSending(let duration):
            closePiece()
            pieces.append(.secondsAfterSending(duration.wholeMilliseconds / 1000))
        }
    }

    mutating func write(_ value: TemplateValue) {
        switch value {
        case .null: json.raw("null")
        case .boolean(let flag): json.raw(flag ? "true" : "false")
        case .integer(let number): json.raw("\(number)")
        case .number(let number): json.raw(number.isFinite ? "\(number)" : "null")
        case .text(let text): write(text)
        case .array(let values):
            json.raw("[")
            for (index, value) in values.enumerated() {
                if index > 0 { json.raw(",") }
                write(value)
            }
            json.raw("]")
        case .object(let members):
            json.raw("{")
            var isFirst = true
            for member in members { write(member.key, member.value, isFirst: &isFirst) }
            json.raw("}")
        }
    }

    mutating func write(_ text: TemplateText) {
        json.raw("\"")
        for part in text.parts {
            switch part {
            case .literal(let literal): json.escaped(literal)
            case .variable(let name) where size < Self.sizeMax: json.escaped(variables[name, default: ""])
            case .variable: break
            case .device(.badge): write(badge ?? .increment(0))
            case .device(let field):
                guard let index = fields.firstIndex(of: field) else { continue }
                closePiece()
                pieces.append(.field(index))
            }
        }
        json.raw("\"")
    }

    private mutating func closePiece() {
        let bytes = json.takeBytes()
        closed += bytes.count
        if !bytes.isEmpty { pieces.append(.bytes(bytes)) }
    }
}

/// JSON written directly into bytes.
struct JSONBytes {
    private var bytes: [UInt8] = []

    var count: Int { bytes.count }

    /// Appends text unescaped: punctuation and numbers.
    mutating func raw(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    mutating func key(_ name: String, isFirst: inout Bool) {
        if !isFirst { raw(",") }
        isFirst = false
        string(name)
        raw(":")
    }

    mutating func string(_ text: String) {
        JSONEscaping.appendQuoted(text, to: &bytes)
    }

    /// Appends the inside of a JSON string, without the quotes.
    mutating func escaped(_ text: String) {
        JSONEscaping.append(text, to: &bytes)
    }

    mutating func takeBytes() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }
}
