import Model

/// Writes the members of `aps`, by push type (`ProviderProtocol` sections 4 and 5).
extension PayloadWriter {
    mutating func writeAPS(_ template: Template, _ pushType: PushType, localeIndex: Int?) {
        var isFirst = true
        switch pushType {
        case .alert: writeVisible(template, localeIndex: localeIndex, isFirst: &isFirst)
        case .liveactivity: writeLiveActivity(template, localeIndex: localeIndex)
        case .background, .location: write("content-available", 1, isFirst: &isFirst)
        case .widgets, .controls: write("content-changed", .boolean(true), isFirst: &isFirst)
        // The system passes these to the app unchanged. Their content is outside `aps`.
        case .voip, .complication, .pushtotalk, .fileprovider, .mdm: break
        }
    }

    private mutating func writeVisible(_ template: Template, localeIndex: Int?, isFirst: inout Bool) {
        if let alert = template.alert {
            json.key("alert", isFirst: &isFirst)
            write(alert, of: template, localeIndex: localeIndex)
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
        if template.contentAvailable { write("content-available", 1, isFirst: &isFirst) }
        if template.mutableContent { write("mutable-content", 1, isFirst: &isFirst) }
        write("target-content-id", template.targetContentID, isFirst: &isFirst)
        let level = template.interruptionLevel.map { TemplateText(literal: $0.rawValue) }
        write("interruption-level", level, isFirst: &isFirst)
        write("relevance-score", template.relevanceScore.map { .number($0) }, isFirst: &isFirst)
        write("filter-criteria", template.filterCriteria, isFirst: &isFirst)
    }

    private mutating func writeLiveActivity(_ template: Template, localeIndex: Int?) {
        guard let activity = template.liveActivity else { return }
        var isFirst = true
        json.key("timestamp", isFirst: &isFirst)
        write(.afterSending(.zero))
        write("event", TemplateText(literal: activity.event.rawValue), isFirst: &isFirst)
        write("content-state", activity.contentState.map { .object($0) }, isFirst: &isFirst)
        write("attributes-type", activity.attributesType.map { TemplateText(literal: $0) }, isFirst: &isFirst)
        write("attributes", activity.attributes.map { .object($0) }, isFirst: &isFirst)
        if activity.inputPushToken { write("input-push-token", 1, isFirst: &isFirst) }
        write("input-push-channel", activity.inputPushChannel, isFirst: &isFirst)
        if let alert = template.alert {
            json.key("alert", isFirst: &isFirst)
            writeActivityAlert(alert, of: template, localeIndex: localeIndex)
        }
        write("stale-date", activity.staleDate, isFirst: &isFirst)
        write("dismissal-date", activity.dismissalDate, isFirst: &isFirst)
        write("relevance-score", template.relevanceScore.map { .number($0) }, isFirst: &isFirst)
    }

    /// Writes the alert of a Live Activity. Title and body may be objects with keys of the app's string tables. The
    /// sound is inside the alert.
    private mutating func writeActivityAlert(_ alert: Template.Alert, of template: Template, localeIndex: Int?) {
        json.raw("{")
        var isFirst = true
        switch alert {
        case .localized(let blocks):
            let block = blocks[localeIndex ?? 0]
            write("title", block.title, isFirst: &isFirst)
            write("body", block.body, isFirst: &isFirst)
        case .byApp(let keys):
            writeActivityText("title", keys.titleLocKey, keys.titleLocArgs, isFirst: &isFirst)
            writeActivityText("body", keys.locKey, keys.locArgs, isFirst: &isFirst)
        }
        if let sound = template.sound {
            json.key("sound", isFirst: &isFirst)
            write(sound)
        }
        json.raw("}")
    }

    private mutating func writeActivityText(
        _ name: String, _ key: String?, _ arguments: [TemplateText], isFirst: inout Bool
    ) {
        guard let key else { return }
        var members = [TemplateValue.Member("loc-key", .text(TemplateText(literal: key)))]
        if !arguments.isEmpty { members.append(.init("loc-args", .array(arguments.map { .text($0) }))) }
        write(name, .object(members), isFirst: &isFirst)
    }

    private mutating func write(_ alert: Template.Alert, of template: Template, localeIndex: Int?) {
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
        write("launch-image", template.launchImage, isFirst: &isFirst)
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
}
