/// A file with localized content: what a push says, apart from who gets it and when.
///
/// It is stored as JSON inside ``RunDefinition``: its coding keys, and those of every type it holds, never change.
package struct Template: Hashable, Sendable, Codable {
    package var name: String
    package var defaultLocale: LocaleTag?
    package var alert: Alert?
    package var sound: Sound?
    package var badge: Badge?
    package var category: TemplateText?
    package var threadID: TemplateText?
    package var targetContentID: TemplateText?
    package var filterCriteria: TemplateText?
    package var launchImage: TemplateText?
    package var mutableContent: Bool
    /// Wakes the app in the background besides showing the alert.
    package var contentAvailable: Bool
    package var interruptionLevel: InterruptionLevel?
    /// 0 to 1; any number for a Live Activity.
    package var relevanceScore: Double?
    /// The keys beside `aps`, in the order written.
    package var custom: [TemplateValue.Member]
    package var liveActivity: LiveActivity?
    /// The whole of an MDM push: the secret that the device gave at enrolment.
    package var pushMagic: TemplateText?
    /// What ``LintRule`` finds here and is meant, by the names of the rules. Nil: none.
    package var lintAllowed: [String]?
    /// It goes out by test sends alone, never by a run. Nil: no.
    package var isTest: Bool?

    private enum CodingKeys: String, CodingKey {
        case name = "name", defaultLocale = "defaultLocale", alert = "alert", sound = "sound", badge = "badge"
        case category = "category", threadID = "threadID", targetContentID = "targetContentID"
        case filterCriteria = "filterCriteria", launchImage = "launchImage", mutableContent = "mutableContent"
        case contentAvailable = "contentAvailable", interruptionLevel = "interruptionLevel"
        case relevanceScore = "relevanceScore", custom = "custom", liveActivity = "liveActivity"
        case pushMagic = "pushMagic", lintAllowed = "lintAllowed", isTest = "isTest"
    }

    package init(name: String) {
        self.name = name
        mutableContent = false
        contentAvailable = false
        custom = []
    }

    package enum Alert: Hashable, Sendable, Codable {
        /// Rendered by Fanfare in the device's language; at least one, in the order written.
        case localized([LocalizedAlert])
        /// Rendered by the app from its own string tables.
        case byApp(LocKeyAlert)

        private enum CodingKeys: String, CodingKey {
            case localized = "localized", byApp = "byApp"
        }
    }

    package struct LocalizedAlert: Hashable, Sendable, Codable {
        package var locale: LocaleTag
        package var title: TemplateText?
        package var subtitle: TemplateText?
        package var body: TemplateText?

        private enum CodingKeys: String, CodingKey {
            case locale = "locale", title = "title", subtitle = "subtitle", body = "body"
        }

        package init(locale: LocaleTag, title: TemplateText?, subtitle: TemplateText?, body: TemplateText?) {
            self.locale = locale
            self.title = title
            self.subtitle = subtitle
            self.body = body
        }

        package var texts: [TemplateText] { [title, subtitle, body].compactMap(\.self) }
    }

    package struct LocKeyAlert: Hashable, Sendable, Codable {
        package var locKey: String?
        package var locArgs: [TemplateText]
        package var titleLocKey: String?
        package var titleLocArgs: [TemplateText]
        package var subtitleLocKey: String?
        package var subtitleLocArgs: [TemplateText]

        private enum CodingKeys: String, CodingKey {
            case locKey = "locKey", locArgs = "locArgs", titleLocKey = "titleLocKey"
            case titleLocArgs = "titleLocArgs", subtitleLocKey = "subtitleLocKey"
            case subtitleLocArgs = "subtitleLocArgs"
        }

        package init(
            locKey: String? = nil, locArgs: [TemplateText] = [], titleLocKey: String? = nil,
            titleLocArgs: [TemplateText] = [], subtitleLocKey: String? = nil, subtitleLocArgs: [TemplateText] = []
        ) {
            self.locKey = locKey
            self.locArgs = locArgs
            self.titleLocKey = titleLocKey
            self.titleLocArgs = titleLocArgs
            self.subtitleLocKey = subtitleLocKey
            self.subtitleLocArgs = subtitleLocArgs
        }
    }

    package enum Sound: Hashable, Sendable, Codable {
        case named(TemplateText)
        /// A critical alert: plays through the mute switch; volume 0 to 1.
        case critical(name: TemplateText, volume: Double?)

        private enum CodingKeys: String, CodingKey {
            case named = "named", critical = "critical"
        }

        private enum CriticalCodingKeys: String, CodingKey {
            case name = "name", volume = "volume"
        }
    }

    package enum Badge: Hashable, Sendable, Codable {
        case number(Int)
        /// Added to the count kept per device.
        case increment(Int)

        private enum CodingKeys: String, CodingKey {
            case number = "number", increment = "increment"
        }
    }

    package enum InterruptionLevel: String, Hashable, Sendable, Codable, CaseIterable {
        case passive, active, critical
        case timeSensitive = "time-sensitive"
    }
}

extension Template {
    /// The languages Fanfare renders, in the order written; empty when the text does not depend on the language.
    package var locales: [LocaleTag] {
        if case .localized(let blocks) = alert { blocks.map(\.locale) } else { [] }
    }

    /// A block of ``locales``, and how well it suits a device.
    package struct LocaleChoice: Hashable, Sendable {
        package enum Fit: Hashable, Sendable {
            /// The device understands it, see ``LanguageRange``: an audience that asks for this language selects the
            /// device.
            case understood
            /// It is for the region that stands for the device's language in its script.
            case standIn
            /// It is the default: in the device's language there is nothing.
            case fallback
        }

        package var index: Int
        package var fit: Fit
    }

    /// Returns the block that a device gets: its own tag as written, the nearest that it understands, the one that stands
    /// for its script, then `default_locale`, and the first block if that is not set. `nil` when nothing is localized.
    package func localeChoice(for tag: LocaleTag?) -> LocaleChoice? {
        let locales = locales
        guard !locales.isEmpty else { return nil }
        if let tag {
            if let index = locales.firstIndex(of: tag) { return LocaleChoice(index: index, fit: .understood) }
            let ranges = locales.map { LanguageRange($0) }
            for range in tag.understood {
                if let index = ranges.firstIndex(of: range) { return LocaleChoice(index: index, fit: .understood) }
            }
            if let index = tag.standIn(among: locales) { return LocaleChoice(index: index, fit: .standIn) }
        }
        return LocaleChoice(index: defaultLocale.flatMap { locales.firstIndex(of: $0) } ?? 0, fit: .fallback)
    }

    /// Every text anywhere in the template.
    package var texts: [TemplateText] {
        alertTexts + soundTexts
            + [category, threadID, targetContentID, filterCriteria, launchImage, pushMagic].compactMap(\.self)
            + (liveActivity?.texts ?? []) + custom.flatMap(\.value.texts)
    }

    package var variables: Set<String> { texts.reduce(into: []) { $0.formUnion($1.variables) } }

    /// Returns the variables that it uses and that have no value, in order. A value of spaces and invisible signs is none:
    /// nobody sees it in a notification.
    package func unset(in values: [String: String]) -> [String] {
        variables.filter { !values[$0, default: ""].hasVisibleSign }.sorted()
    }

    package var deviceFields: Set<AudienceField> { texts.reduce(into: []) { $0.formUnion($1.deviceFields) } }

    private var alertTexts: [TemplateText] {
        switch alert {
        case .localized(let blocks): blocks.flatMap(\.texts)
        case .byApp(let keys): keys.locArgs + keys.titleLocArgs + keys.subtitleLocArgs
        case nil: []
        }
    }

    private var soundTexts: [TemplateText] {
        switch sound {
        case .named(let name), .critical(let name, _): [name]
        case nil: []
        }
    }
}

/// What a push to a Live Activity says besides its alert (`ProviderProtocol` section 5).
package struct LiveActivity: Hashable, Sendable, Codable {
    package enum Event: String, Hashable, Sendable, Codable, CaseIterable {
        case start, update, end
    }

    /// A date in the payload, in whole seconds there.
    package enum Moment: Hashable, Sendable, Codable {
        case at(Timestamp)
        /// So long after the push is sent.
        case afterSending(Duration)

        private enum CodingKeys: String, CodingKey {
            case at = "at", afterSending = "afterSending"
        }
    }

    package var event: Event
    /// Must decode as the app's `ContentState`; required but for `end`.
    package var contentState: [TemplateValue.Member]?
    /// With `start` only, as `attributes`, `inputPushToken` and `inputPushChannel` are.
    package var attributesType: String?
    package var attributes: [TemplateValue.Member]?
    /// Asks the device for a token for later updates.
    package var inputPushToken: Bool
    /// The broadcast channel to listen on, base64.
    package var inputPushChannel: TemplateText?
    package var staleDate: Moment?
    /// When the ended activity leaves the screen; a moment in the past: at once.
    package var dismissalDate: Moment?

    private enum CodingKeys: String, CodingKey {
        case event = "event", contentState = "contentState", attributesType = "attributesType"
        case attributes = "attributes", inputPushToken = "inputPushToken", inputPushChannel = "inputPushChannel"
        case staleDate = "staleDate", dismissalDate = "dismissalDate"
    }

    package init(event: Event) {
        self.event = event
        inputPushToken = false
    }

    /// Every text anywhere inside.
    package var texts: [TemplateText] {
        ((contentState ?? []) + (attributes ?? [])).flatMap(\.value.texts) + [inputPushChannel].compactMap(\.self)
    }
}
