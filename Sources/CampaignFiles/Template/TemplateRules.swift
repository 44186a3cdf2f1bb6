package import Model

/// Checks that depend on the push type a template is for (`ProviderProtocol` sections 4 and 5).
package enum TemplateRules {
    /// What a push of this type may and must hold.
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
        switch pushType {
        case .alert where template.alert == nil && template.sound == nil && template.badge == nil:
            collector.error(
                "template \(quoted(template.name)) shows nothing, and its push_type is alert",
                "add alert, sound or badge, or use push_type background", at: location)
        case .liveactivity where template.liveActivity == nil:
            collector.error(
                "template \(quoted(template.name)) has no event, and its push_type is liveactivity",
                "add event: start, update or end, and content_state", at: location)
        case .liveactivity:
            if template.alert?.hasSubtitle == true {
                collector.error(
                    "a subtitle in the alert of a Live Activity", "remove it; Apple knows title, body and sound there",
                    at: source.locations["alert"] ?? location)
            }
            guard template.alert == nil, let sound = source.locations["sound"] else { break }
            collector.error(
                "\"sound\" without \"alert\" in the template of a Live Activity",
                "add alert; the sound is played with it", at: sound)
        case .mdm where template.pushMagic == nil:
            collector.error(
                "template \(quoted(template.name)) has no mdm, and its push_type is mdm",
                "add mdm: \"{{device.attributes.push_magic}}\"", at: location)
        case .fileprovider where !template.custom.contains { $0.key == "container-identifier" }:
            collector.error(
                "template \(quoted(template.name)) does not say what has changed, and its push_type is fileprovider",
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

/// Which keys of a template a type of push can carry.
private struct PushContent {
    let name: String
    let allowed: Set<String>
    /// What to do about any other.
    let advice: String

    private static let always: Set<String> = ["template", "default_locale"]
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
                "remove it, only custom is allowed: Apple wants aps to hold nothing but content-available, or the push "
                + "is not silent; use push_type alert to show something"
        case .liveactivity:
            name = "Live Activity"
            allowed = Self.onlyCustom.union(Self.activity).union(["alert", "sound", "relevance_score"])
            advice = "remove it; a Live Activity has alert, sound, relevance_score and keys such as event"
        case .mdm:
            name = "push to device management"
            allowed = Self.always.union(["mdm"])
            advice = "remove it; such a push holds mdm and nothing else"
        case .widgets, .controls:
            name = "push to \(pushType.rawValue)"
            allowed = Self.always
            advice = "remove it; such a push only says that the content has changed"
        case .location, .voip, .complication, .fileprovider, .pushtotalk:
            name = "\(pushType.rawValue) push"
            allowed = Self.onlyCustom
            advice = "put what the app needs under custom; the system shows nothing of such a push by itself"
        }
    }
}
