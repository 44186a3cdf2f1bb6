import Model

/// Writes one locale of a template as JSON, leaving holes for device fields (`apns-protocol.md` section 5).
struct PayloadWriter {
    private let variables: [String: String]
    private let fields: [AudienceField]
    private var json = JSONBytes()
    private var pieces: [PayloadPrototype.Piece] = []

    init(variables: [String: String], fields: [AudienceField]) {
        self.variables = variables
        self.fields = fields
    }

    mutating func write(_ template: Template, localeIndex: Int?, isBackground: Bool) {
        json.raw("{\"aps\":{")
        var isFirst = true
        if isBackground {
            json.key("content-available", isFirst: &isFirst)
            json.raw("1")
        } else {
            writeVisible(template, localeIndex: localeIndex, isFirst: &isFirst)
        }
        json.raw("}")
        for member in template.custom {
            json.raw(",")
            write(member)
        }
        json.raw("}")
    }

    mutating func finish() -> PayloadPrototype {
        closePiece()
        return PayloadPrototype(pieces: pieces)
    }

    private mutating func writeVisible(_ template: Template, localeIndex: Int?, isFirst: inout Bool) {
        if let alert = template.alert {
            json.key("alert", isFirst: &isFirst)
            write(alert, localeIndex: localeIndex)
        }
        if let badge = template.badge {
            json.key("badge", isFirst: &isFirst)
            write(badge)
        }
        if let sound = template.sound {
            json.key("sound", isFirst: &isFirst)
            write(sound)
        }
        write("thread-id", template.threadID, isFirst: &isFirst)
        write("category", template.category, isFirst: &isFirst)
        if template.mutableContent {
            json.key("mutable-content", isFirst: &isFirst)
            json.raw("1")
        }
        write("target-content-id", template.targetContentID, isFirst: &isFirst)
        if let level = template.interruptionLevel {
            json.key("interruption-level", isFirst: &isFirst)
            json.string(level.rawValue)
        }
        if let score = template.relevanceScore {
            json.key("relevance-score", isFirst: &isFirst)
            json.raw("\(score)")
        }
        write("filter-criteria", template.filterCriteria, isFirst: &isFirst)
    }

    private mutating func write(_ alert: Template.Alert, localeIndex: Int?) {
        json.raw("{")
        var isFirst = true
        switch alert {
        case .localized(let blocks):
            let block = blocks[localeIndex ?? 0]
            write("title", block.title, isFirst: &isFirst)
            write("subtitle", block.subtitle, isFirst: &isFirst)
            write("body", block.body, isFirst: &isFirst)
        case .byApp(let keys):
            write("title-loc-key", keys.titleLocKey, arguments: keys.titleLocArgs, isFirst: &isFirst)
            write("subtitle-loc-key", keys.subtitleLocKey, arguments: keys.subtitleLocArgs, isFirst: &isFirst)
            write("loc-key", keys.locKey, arguments: keys.locArgs, isFirst: &isFirst)
        }
        json.raw("}")
    }

    private mutating func write(_ name: String, _ key: String?, arguments: [TemplateText], isFirst: inout Bool) {
        guard let key else { return }
        json.key(name, isFirst: &isFirst)
        json.string(key)
        guard !arguments.isEmpty else { return }
        json.key(String(name.dropLast("key".count)) + "args", isFirst: &isFirst)
        write(.array(arguments.map { .text($0) }))
    }

    private mutating func write(_ badge: Template.Badge) {
        switch badge {
        case .number(let number):
            json.raw("\(number)")
        case .increment:
            closePiece()
            pieces.append(.badge)
        }
    }

    private mutating func write(_ sound: Template.Sound) {
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

    private mutating func write(_ key: String, _ text: TemplateText?, isFirst: inout Bool) {
        guard let text else { return }
        json.key(key, isFirst: &isFirst)
        write(text)
    }

    private mutating func write(_ member: TemplateValue.Member) {
        json.string(member.key)
        json.raw(":")
        write(member.value)
    }

    private mutating func write(_ value: TemplateValue) {
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
            for (index, member) in members.enumerated() {
                if index > 0 { json.raw(",") }
                write(member)
            }
            json.raw("}")
        }
    }

    private mutating func write(_ text: TemplateText) {
        json.raw("\"")
        for part in text.parts {
            switch part {
            case .literal(let literal): json.escaped(literal)
            case .variable(let name): json.escaped(variables[name, default: ""])
            case .device(let field):
                guard let index = fields.firstIndex(of: field) else { continue }
                closePiece()
                pieces.append(.field(index))
            }
        }
        json.raw("\"")
    }

    private mutating func closePiece() {
        let bytes = json.take()
        if !bytes.isEmpty { pieces.append(.bytes(bytes)) }
    }
}
