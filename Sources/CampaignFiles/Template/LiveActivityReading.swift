import Model

/// The keys of a Live Activity, which stand beside the others and belong together.
enum LiveActivityReading {
    /// Nil when the template has none of them.
    static func activity(_ reader: ObjectReader) -> LiveActivity? {
        let names = TemplateKeys.Activity.shapes.map(\.name)
        guard let first = names.compactMap(reader.keyPlace).min(by: { ($0.line, $0.column) < ($1.line, $1.column) })
        else { return nil }
        guard reader.keyPlace("event") != nil else {
            reader.findings.error(
                "a Live Activity without event", "add event: start, update or end", at: first)
            return nil
        }
        let event = reader[TemplateKeys.Activity.event]
        // Read in any case, so that every mistake is reported.
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

    /// `apns-protocol.md` section 5: what a start must hold, and what only a start or an end may.
    private static func check(_ event: LiveActivity.Event, _ reader: ObjectReader) {
        let required: [String] =
            switch event {
            case .start: ["content_state", "attributes_type", "attributes", "alert"]
            case .update: ["content_state"]
            case .end: []
            }
        for name in required where reader.keyPlace(name) == nil {
            reader.findings.error(
                "event \(event.rawValue) without \(name)", "add \(name)", at: reader.keyPlace("event") ?? reader.place)
        }
        guard event != .start else { return }
        for name in ["attributes_type", "attributes", "input_push_token", "input_push_channel"] {
            guard let place = reader.keyPlace(name) else { continue }
            reader.findings.error(
                "\(quoted(name)) with event \(event.rawValue)", "remove it; it belongs to event start", at: place)
        }
        if event == .update, let place = reader.keyPlace("dismissal_date") {
            reader.findings.warning(
                "dismissal_date with event update does nothing", "remove it, or write event: end", at: place)
        }
    }
}
