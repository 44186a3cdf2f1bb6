import Model

/// The keys of a template file.
package enum TemplateKeys {
    static let name = Key("template", ValueKind<String>.name, required: true, "The template's name.")
    static let defaultLocale = Key(
        "default_locale", .locale, "The language for devices whose own is not among those of alert.")
    static let alert = Key("alert", .alert, "What the user reads, by language; or keys that the app translates.")
    static let sound = Key("sound", .sound, "default, a file of the app, or an object for critical alerts.")
    static let badge = Key("badge", .badge, "The number on the icon; +n adds to the one kept per device.")
    static let category = Key("category", .templateText, "The registered category that gives the buttons.")
    static let threadID = Key("thread_id", .templateText, "Groups notifications on the screen.")
    static let targetContentID = Key("target_content_id", .templateText, "The window to bring to the front.")
    static let filterCriteria = Key("filter_criteria", .templateText, "For Focus filters.")
    static let launchImage = Key("launch_image", .templateText, "The launch image or storyboard to open with.")
    static let contentAvailable = Key(
        "content_available", .boolean, "Wake the app in the background besides showing the alert.")
    static let mutableContent = Key(
        "mutable_content", .boolean, "Run the app's notification service extension before showing.")
    static let interruptionLevel = Key(
        "interruption_level", ValueKind<Template.InterruptionLevel>.word, "How much the push may disturb.")
    static let relevanceScore = Key(
        "relevance_score", .number(-1e9...1e9), "Order in the summary, 0 to 1; any number for a Live Activity.")
    static let custom = Key("custom", .custom, "The app's own keys, beside aps.")
    static let mdm = Key("mdm", .templateText, "The push magic of the device, the whole of an MDM push.")

    /// The whole template file, as data.
    package static let shape = ObjectShape(
        "template", "What a push says, apart from who gets it and when.",
        ownKeysAdvice: "put your own keys under custom, beside aps and not in it",
        [
            name.shape, defaultLocale.shape, alert.shape, sound.shape, badge.shape, category.shape, threadID.shape,
            targetContentID.shape, filterCriteria.shape, launchImage.shape, contentAvailable.shape,
            mutableContent.shape, interruptionLevel.shape, relevanceScore.shape, custom.shape,
        ] + Activity.shapes + [mdm.shape])

    /// What a push to a Live Activity says besides its alert.
    enum Activity {
        static let event = Key("event", ValueKind<LiveActivity.Event>.word, "What happens to the Live Activity.")
        static let contentState = Key("content_state", .members, "The new state, as the app's ContentState reads it.")
        static let attributesType = Key("attributes_type", ValueKind<String>.text, "The Swift type of attributes.")
        static let attributes = Key("attributes", .members, "What stays the same, with event: start.")
        static let staleDate = Key("stale_date", .moment, "When the state is out of date.")
        static let dismissalDate = Key(
            "dismissal_date", .moment, "When the ended activity leaves the screen; in the past: at once.")
        static let inputPushToken = Key(
            "input_push_token", .boolean, "Ask the device for a token for updates, with event: start.")
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
            ownKeysAdvice: "a language holds title, subtitle and body; put your own keys under custom",
            [title.shape, subtitle.shape, body.shape])
    }

    /// Texts that the app renders from its own string tables.
    enum ByApp {
        static let locKey = Key("loc_key", ValueKind<String>.text, "The key of the body.")
        static let locArgs = Key("loc_args", .list(of: .templateText), "Values for its %@.")
        static let titleLocKey = Key("title_loc_key", ValueKind<String>.text, "The key of the title.")
        static let titleLocArgs = Key("title_loc_args", .list(of: .templateText), "Values for its %@.")
        static let subtitleLocKey = Key("subtitle_loc_key", ValueKind<String>.text, "The key of the subtitle.")
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
