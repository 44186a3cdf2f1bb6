import Model

/// The keys of a template file.
package enum TemplateKeys {
    static let name = Key("template", ValueDecoder<String>.name, required: true, "The template's name.")
    static let defaultLocale = Key(
        "default_locale", .locale, "The language for devices whose language is not listed under alert.")
    static let alert = Key("alert", .alert, "The visible texts, by language; or keys that the app translates.")
    static let sound = Key("sound", .sound, "The sound: default, a file of the app, or an object for critical alerts.")
    static let badge = Key("badge", .badge, "The number on the icon; +n adds to the number stored per device.")
    static let category = Key("category", .templateText, "The registered category that defines the buttons.")
    static let threadID = Key("thread_id", .templateText, "The group of the notification on the screen.")
    static let targetContentID = Key("target_content_id", .templateText, "The window to bring to the front.")
    static let filterCriteria = Key("filter_criteria", .templateText, "The criteria for Focus filters.")
    static let launchImage = Key("launch_image", .templateText, "The launch image or storyboard to open with.")
    static let contentAvailable = Key(
        "content_available", .boolean, "Wake the app in the background besides showing the alert.")
    static let mutableContent = Key(
        "mutable_content", .boolean, "Run the app's notification service extension before showing.")
    static let interruptionLevel = Key(
        "interruption_level", ValueDecoder<Template.InterruptionLevel>.word, "The interruption level.")
    static let relevanceScore = Key(
        "relevance_score", .number(-1e9...1e9), "The order in the summary, 0 to 1; any number for a Live Activity.")
    static let custom = Key("custom", .custom, "The app's own keys, beside aps.")
    static let mdm = Key("mdm", .templateText, "The push magic of the device, the only content of an MDM push.")
    static let test = Key(
        "test", .boolean, "true: only test-send may send this template, to single devices; a run with it is refused.")
    static let lint = Key("lint", .lint, "Warnings of `validate` to ignore for these texts.")

    /// The shape of the whole template file.
    package static let shape = ObjectShape(
        "template", "The content of a push, without its audience and time.",
        ownKeysAdvice: "put your own keys under custom: they are sent next to aps, not in it",
        [
            name.shape, defaultLocale.shape, alert.shape, sound.shape, badge.shape, category.shape, threadID.shape,
            targetContentID.shape, filterCriteria.shape, launchImage.shape, contentAvailable.shape,
            mutableContent.shape, interruptionLevel.shape, relevanceScore.shape, custom.shape,
        ] + Activity.shapes + [mdm.shape, test.shape, lint.shape])

    enum Lint {
        static let allow = Key(
            "allow", .list(of: ValueDecoder<LintRule>.word), required: true,
            "The rules whose warnings to ignore.")
        static let shape = ObjectShape("lint", "Warnings to ignore.", [allow.shape])
    }

    /// The content of a Live Activity push besides its alert.
    enum Activity {
        static let event = Key("event", ValueDecoder<LiveActivity.Event>.word, "The event of the Live Activity.")
        static let contentState = Key("content_state", .members, "The new state, as the app's ContentState.")
        static let attributesType = Key("attributes_type", ValueDecoder<String>.text, "The Swift type of attributes.")
        static let attributes = Key("attributes", .members, "The constant attributes, with event: start.")
        static let staleDate = Key("stale_date", .moment, "The time after which the state is out of date.")
        static let dismissalDate = Key(
            "dismissal_date", .moment,
            "When the ended activity leaves the screen; a time in the past means immediately.")
        static let inputPushToken = Key(
            "input_push_token", .boolean, "Request a token for updates from the device, with event: start.")
        static let inputPushChannel = Key(
            "input_push_channel", .templateText, "The broadcast channel to listen on, with event: start.")
        static let shapes = [
            event.shape, contentState.shape, attributesType.shape, attributes.shape, staleDate.shape,
            dismissalDate.shape, inputPushToken.shape, inputPushChannel.shape,
        ]
    }

    enum Localized {
        static let title = Key("title", .templateText, "The first line.")
        static let subtitle = Key("subtitle", .templateText, "The second line.")
        static let body = Key("body", .templateText, "The message.")
        static let shape = ObjectShape(
            "alert", "The texts in one language.",
            ownKeysAdvice: "a language has title, subtitle and body; put your own keys under custom",
            [title.shape, subtitle.shape, body.shape])
    }

    /// Texts that the app renders from its own string tables.
    enum ByApp {
        static let locKey = Key("loc_key", ValueDecoder<String>.text, "The key of the body.")
        static let locArgs = Key("loc_args", .list(of: .templateText), "Values for its %@.")
        static let titleLocKey = Key("title_loc_key", ValueDecoder<String>.text, "The key of the title.")
        static let titleLocArgs = Key("title_loc_args", .list(of: .templateText), "Values for its %@.")
        static let subtitleLocKey = Key("subtitle_loc_key", ValueDecoder<String>.text, "The key of the subtitle.")
        static let subtitleLocArgs = Key("subtitle_loc_args", .list(of: .templateText), "Values for its %@.")
        static let shape = ObjectShape(
            "alert", "Keys of the app's own string tables.",
            [
                locKey.shape, locArgs.shape, titleLocKey.shape, titleLocArgs.shape, subtitleLocKey.shape,
                subtitleLocArgs.shape,
            ])
    }

    enum CriticalSound {
        static let critical = Key("critical", .integer(1...1), required: true, "1: plays through the mute switch.")
        static let name = Key("name", .templateText, "default, or a file of the app.")
        static let volume = Key("volume", .number(0...1), "0 to 1.")
        static let shape = ObjectShape("sound", "A critical alert.", [critical.shape, name.shape, volume.shape])
    }
}

/// Apple's names for the keys of `aps` (`ProviderProtocol` section 5).
enum APSKey {
    /// Names that are unlikely as an app's own keys.
    static let onlyInside: Set<String> = [
        "alert", "badge", "sound", "thread-id", "content-available", "mutable-content", "target-content-id",
        "interruption-level", "relevance-score", "filter-criteria", "content-changed", "content-state", "stale-date",
        "dismissal-date", "attributes-type",
    ]
    static let all = onlyInside.union([
        "category", "event", "timestamp", "attributes", "input-push-channel", "input-push-token", "url-args",
    ])
    static let ofAlert: Set<String> = [
        "title", "subtitle", "body", "launch-image", "title-loc-key", "title-loc-args", "subtitle-loc-key",
        "subtitle-loc-args", "loc-key", "loc-args", "sound", "summary-arg", "summary-arg-count", "action",
        "action-loc-key",
    ]

    /// Returns the template's name for the same key.
    static func inTemplate(_ name: String) -> String { name.replacing("-", with: "_") }
}

/// An `aps` object, as written by authors who know Apple's JSON. It is refused with its own advice, and not as an
/// unknown key.
enum APSObject {
    /// Returns the file without `aps`, after reporting `aps` and every key in it that Apple does not define.
    static func removed(from root: Field) -> Field {
        guard case .object(let members) = root.node.content, let aps = members.first(where: { $0.key == "aps" }) else {
            return root
        }
        root.collector.error(
            "a template must not hold \"aps\"; Fanfare builds it from the keys of the template",
            "move its content up: alert by language, sound, badge, category, thread_id; your own keys go under custom",
            at: aps.location)
        refuseOwnKeys(in: aps.value, named: "aps", known: APSKey.all, root.collector)
        if case .object(let inside) = aps.value.content, let alert = inside.first(where: { $0.key == "alert" }) {
            refuseOwnKeys(in: alert.value, named: "aps.alert", known: APSKey.ofAlert, root.collector)
        }
        var root = root
        root.node.content = .object(members.filter { $0.key != "aps" })
        return root
    }

    private static func refuseOwnKeys(
        in node: FileNode, named name: String, known: Set<String>, _ collector: DiagnosticCollector
    ) {
        guard case .object(let members) = node.content else { return }
        // Underscores are the template's spelling of Apple's names.
        for member in members where !known.contains(member.key.replacing("_", with: "-")) {
            collector.error(
                "\(quoted(member.key)) inside \(name)",
                "move it under custom: Apple ignores unknown keys in aps", at: member.location)
        }
    }
}
