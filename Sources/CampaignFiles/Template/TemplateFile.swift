package import Model
import Platform

/// A template with the locations of its keys and placeholders, for checks that need more than the one file.
package struct TemplateSource: Sendable {
    package var path: String
    package var template: Template
    /// The SHA-256 in hex of the text that the template was read from.
    package let hash: String
    /// The location of each key of the file.
    package var locations: [String: SourceLocation]
    /// The uses of variables, in the order of the file.
    package var variableUses: [VariableUse]
    /// Keys that should have a value and have no readable one. Checks that depend on them are skipped.
    var unread: Set<String> = []
    /// Whether the file itself has no error. If false, `template` contains only the readable part of the file.
    package var isRight = true
}

/// Reads template files. All problems of a file are reported together. There is a value only if none is an error.
package enum TemplateFile {
    /// Returns only the template.
    package static func read(text: String, path: String) -> (Template?, [Diagnostic]) {
        let (source, diagnostics) = source(text: text, path: path)
        return (source?.template, diagnostics)
    }

    /// Reads the file at `path`, at most 1 MiB of UTF-8.
    package static func load(path: String) -> (TemplateSource?, [Diagnostic]) {
        let (draft, diagnostics) = loadDraft(path: path)
        return (right(draft), diagnostics)
    }

    /// Returns the template with the locations of its keys and placeholders.
    package static func source(text: String, path: String) -> (TemplateSource?, [Diagnostic]) {
        let (draft, diagnostics) = draft(text: text, path: path)
        return (right(draft), diagnostics)
    }

    /// Reads a file as ``load(path:)`` does, and also returns the readable part of an invalid file, to check it against
    /// its campaign.
    ///
    /// - Parameter unsaved: the unsaved text of the file. `nil` to read the file.
    static func loadDraft(path: String, unsaved: String? = nil) -> (TemplateSource?, [Diagnostic]) {
        if let unsaved { return draft(text: unsaved, path: path) }
        let (text, diagnostics) = FileText.load(path)
        guard let text else { return (nil, diagnostics) }
        return known.value(of: text, at: path) { draft(text: text, path: path) }
    }

    /// A cache, because a page of a campaign reads each file several times, and files seldom change.
    private static let known = TextMemo<(TemplateSource?, [Diagnostic])>()

    private static func right(_ draft: TemplateSource?) -> TemplateSource? {
        draft.flatMap { $0.isRight ? $0 : nil }
    }

    private static func draft(text: String, path: String) -> (TemplateSource?, [Diagnostic]) {
        let hash = Digest.sha256Hex(Array(text.utf8))
        let text = FileText.withoutMark(text)
        let collector = DiagnosticCollector(path: path, text: text)
        guard let root = FileText.root(of: text, into: collector, advice: "write template: and a name"),
            let reader = ObjectReader(APSObject.removed(from: root), TemplateKeys.shape)
        else { return (nil, collector.diagnostics) }
        let (template, unread) = build(reader)
        let uses = collector.variableUses.sorted {
            ($0.location.line, $0.location.column) < ($1.location.line, $1.location.column)
        }
        let source = TemplateSource(
            path: path, template: template, hash: hash, locations: locations(reader), variableUses: uses,
            unread: unread, isRight: !collector.hasErrors)
        return (source, collector.diagnostics)
    }

    /// Returns the locations of the file's keys, and of the texts by language as `alert.pt-BR.title`.
    private static func locations(_ reader: ObjectReader) -> [String: SourceLocation] {
        var locations = reader.locations
        guard case .object(let blocks)? = reader.field("alert")?.node.content else { return locations }
        for block in blocks {
            guard case .object(let parts) = block.value.content, let tag = LocaleTag(block.key) else { continue }
            for part in parts { locations["alert.\(tag).\(part.key)"] = part.value.location }
        }
        return locations
    }

    private static func build(_ reader: ObjectReader) -> (Template, unread: Set<String>) {
        let name = reader[TemplateKeys.name]
        var template = Template(name: name ?? "")
        template.defaultLocale = reader[TemplateKeys.defaultLocale]
        template.alert = reader[TemplateKeys.alert]
        template.sound = reader[TemplateKeys.sound]
        template.badge = reader[TemplateKeys.badge]
        template.category = reader[TemplateKeys.category]
        template.threadID = reader[TemplateKeys.threadID]
        template.targetContentID = reader[TemplateKeys.targetContentID]
        template.filterCriteria = reader[TemplateKeys.filterCriteria]
        template.launchImage = reader[TemplateKeys.launchImage]
        template.contentAvailable = reader[TemplateKeys.contentAvailable] ?? false
        template.mutableContent = reader[TemplateKeys.mutableContent] ?? false
        template.interruptionLevel = reader[TemplateKeys.interruptionLevel]
        template.relevanceScore = reader[TemplateKeys.relevanceScore]
        template.custom = reader[TemplateKeys.custom] ?? []
        template.liveActivity = LiveActivityDecoder.activity(reader)
        template.pushMagic = reader[TemplateKeys.mdm]
        template.isTest = reader[TemplateKeys.test] == true ? true : nil
        template.lintAllowed = reader[TemplateKeys.lint].map { $0.map(\.rawValue) }
        checkRelevance(of: template, reader)
        checkDefaultLocale(of: template, reader)
        let unread = reader.unread([
            ("template", name != nil), ("alert", template.alert != nil), ("sound", template.sound != nil),
            ("badge", template.badge != nil), ("custom", !template.custom.isEmpty),
            ("mdm", template.pushMagic != nil), ("event", template.liveActivity != nil),
        ])
        return (template, unread)
    }

    private static func checkRelevance(of template: Template, _ reader: ObjectReader) {
        guard let score = template.relevanceScore, template.liveActivity == nil, !(0...1).contains(score) else {
            return
        }
        reader.field("relevance_score")?.refuse(.number(0...1))
    }

    private static func checkDefaultLocale(of template: Template, _ reader: ObjectReader) {
        let locales = template.locales
        guard let location = reader.field("default_locale")?.location else {
            if let first = locales.first, locales.count > 1 {
                reader.collector.warning(
                    "no default_locale: a device in a language not listed gets \(first)",
                    "add default_locale: \(first)", at: reader.keyLocation("alert") ?? reader.location)
            }
            return
        }
        guard let locale = template.defaultLocale, !locales.contains(locale) else { return }
        let list = locales.map(\.description)
        if list.isEmpty {
            guard reader.keyLocation("alert") == nil || template.alert != nil else { return }
            reader.collector.error(
                "default_locale without texts by language", "remove it, or write texts under alert", at: location)
        } else {
            let nearest = Suggestion.nearest(to: locale.description, among: list).map { "did you mean \(quoted($0))?" }
            reader.collector.error(
                "default_locale \(locale) is not among the languages of alert",
                nearest ?? "use one of \(list.joined(separator: ", "))", at: location)
        }
    }
}

/// Decodes the keys of a Live Activity, which are at the file's top level.
enum LiveActivityDecoder {
    /// Returns `nil` if the template has none of the keys.
    static func activity(_ reader: ObjectReader) -> LiveActivity? {
        let names = TemplateKeys.Activity.shapes.map(\.name)
        guard let first = names.compactMap(reader.keyLocation).min(by: { ($0.line, $0.column) < ($1.line, $1.column) })
        else { return nil }
        guard reader.keyLocation("event") != nil else {
            reader.collector.error(
                "a Live Activity without event", "add event: start, update or end", at: first)
            return nil
        }
        let event = reader[TemplateKeys.Activity.event]
        // Read the keys even if the event is invalid, so that every mistake is reported.
        var activity = LiveActivity(event: event ?? .update)
        activity.contentState = reader[TemplateKeys.Activity.contentState]
        activity.attributesType = reader[TemplateKeys.Activity.attributesType]
        activity.attributes = reader[TemplateKeys.Activity.attributes]
        activity.inputPushToken = reader[TemplateKeys.Activity.inputPushToken] ?? false
        activity.inputPushChannel = reader[TemplateKeys.Activity.inputPushChannel]
        activity.staleDate = reader[TemplateKeys.Activity.staleDate]
        activity.dismissalDate = reader[TemplateKeys.Activity.dismissalDate]
        if let event { check(event, reader) }
        return event == nil ? nil : activity
    }

    /// Checks the keys that an event requires, and those that only a start or an end may have (`ProviderProtocol`
    /// section 5).
    private static func check(_ event: LiveActivity.Event, _ reader: ObjectReader) {
        let required: [String] =
            switch event {
            case .start: ["content_state", "attributes_type", "attributes", "alert"]
            case .update: ["content_state"]
            case .end: []
            }
        for name in required where reader.keyLocation(name) == nil {
            reader.collector.error(
                "event \(event.rawValue) without \(name)", "add \(name)",
                at: reader.keyLocation("event") ?? reader.location)
        }
        guard event != .start else { return }
        for name in ["attributes_type", "attributes", "input_push_token", "input_push_channel"] {
            guard let location = reader.keyLocation(name) else { continue }
            reader.collector.error(
                "\(quoted(name)) with event \(event.rawValue)", "remove it; it belongs to event start", at: location)
        }
        if event == .update, let location = reader.keyLocation("dismissal_date") {
            reader.collector.warning(
                "dismissal_date with event update does nothing", "remove it, or write event: end", at: location)
        }
    }
}

/// Checks that depend on the push type a template is for (`ProviderProtocol` sections 4 and 5).
package enum TemplateRules {
    /// Checks the allowed and required contents of a push of this type.
    package static func check(_ source: TemplateSource, for pushType: PushType) -> [Diagnostic] {
        let collector = DiagnosticCollector(path: source.path)
        let content = PushContent(pushType)
        for key in TemplateKeys.shape.keys.map(\.name) where !content.allowed.contains(key) {
            guard let location = source.locations[key] else { continue }
            collector.error("\(quoted(key)) in the template of a \(content.name)", content.advice, at: location)
        }
        checkRequired(source, pushType, collector)
        return collector.diagnostics
    }

    private static func checkRequired(_ source: TemplateSource, _ pushType: PushType, _ collector: DiagnosticCollector)
    {
        let template = source.template
        let location = source.locations["template"] ?? SourceLocation()
        func lacks(_ keys: String...) -> Bool {
            keys.allSatisfy { source.locations[$0] == nil && !source.unread.contains($0) }
        }
        switch pushType {
        case .alert where lacks("alert", "sound", "badge"):
            collector.error(
                "template \(quoted(template.name)) shows nothing, but its push_type is alert",
                "add alert, sound or badge, or use push_type background", at: location)
        case .liveactivity where TemplateKeys.Activity.shapes.allSatisfy { lacks($0.name) }:
            collector.error(
                "template \(quoted(template.name)) has no event, but its push_type is liveactivity",
                "add event: start, update or end, and content_state", at: location)
        case .liveactivity:
            if template.alert?.hasSubtitle == true {
                collector.error(
                    "a subtitle in the alert of a Live Activity",
                    "remove it; Apple supports only title, body and sound there",
                    at: source.locations["alert"] ?? location)
            }
            guard lacks("alert"), let sound = source.locations["sound"] else { break }
            collector.error(
                "\"sound\" without \"alert\" in the template of a Live Activity",
                "add alert; the sound is played with it", at: sound)
        case .mdm where lacks("mdm"):
            collector.error(
                "template \(quoted(template.name)) has no mdm, but its push_type is mdm",
                "add mdm: \"{{device.attributes.push_magic}}\"", at: location)
        case .fileprovider where !template.custom.contains { $0.key == "container-identifier" } && source.isRight:
            collector.error(
                "template \(quoted(template.name)) does not say what has changed, but its push_type is fileprovider",
                "add custom: {container-identifier: …, domain: …}", at: source.locations["custom"] ?? location)
        default: break
        }
    }
}

extension Template.Alert {
    fileprivate var hasSubtitle: Bool {
        switch self {
        case .localized(let blocks): blocks.contains { $0.subtitle != nil }
        case .byApp(let keys): keys.subtitleLocKey != nil
        }
    }
}

/// The keys of a template that a push type can carry.
private struct PushContent {
    let name: String
    let allowed: Set<String>
    /// The advice for any other key.
    let advice: String

    private static let always: Set<String> = ["template", "default_locale", "test", "lint"]
    private static let activity = Set(TemplateKeys.Activity.shapes.map(\.name))
    private static let onlyCustom: Set<String> = always.union(["custom"])

    init(_ pushType: PushType) {
        switch pushType {
        case .alert:
            name = "visible push"
            allowed = Set(TemplateKeys.shape.keys.map(\.name)).subtracting(Self.activity).subtracting(["mdm"])
            advice = "remove it, or use push_type liveactivity or mdm"
        case .background:
            name = "background push"
            allowed = Self.onlyCustom
            advice =
                "remove it, only custom is allowed: Apple requires aps to hold only content-available, or the push "
                + "is not silent; use push_type alert to show something"
        case .liveactivity:
            name = "Live Activity"
            allowed = Self.onlyCustom.union(Self.activity).union(["alert", "sound", "relevance_score"])
            advice = "remove it; a Live Activity has alert, sound, relevance_score and keys such as event"
        case .mdm:
            name = "device-management push"
            allowed = Self.always.union(["mdm"])
            advice = "remove it; such a push holds mdm and nothing else"
        case .widgets, .controls:
            name = "push to \(pushType.rawValue)"
            allowed = Self.always
            advice = "remove it; such a push only says that the content has changed"
        case .location, .voip, .complication, .fileprovider, .pushtotalk:
            name = "\(pushType.rawValue) push"
            allowed = Self.onlyCustom
            advice = "put what the app needs under custom; the system shows nothing for such a push"
        }
    }
}
