/// A file with localized content: the content of a push, independent of its audience and its time.
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
    /// Whether the push also wakes the app in the background.
    package var contentAvailable: Bool
    package var interruptionLevel: InterruptionLevel?
    /// A number from 0 to 1. For a Live Activity, any number.
    package var relevanceScore: Double?
    /// The keys beside `aps`, in the order written.
    package var custom: [TemplateValue.Member]
    package var liveActivity: LiveActivity?
    /// The only content of an MDM push: the secret that the device gave at enrolment.
    package var pushMagic: TemplateText?
    /// The names of the lint rules whose findings are intended here, see ``LintRule``. `nil` for none.
    package var lintAllowed: [String]?
    /// Whether only test sends may use the template, never a run. `nil` means no.
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
        /// Texts that Fanfare renders in the device's language. There is at least one, in the order written.
        case localized([LocalizedAlert])
        /// Texts that the app renders from its own string tables.
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
        /// A critical alert, which plays despite the mute switch. The volume is 0 to 1.
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
        /// A number to add to the stored count of the device.
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
    /// The languages that Fanfare renders, in the order written. Empty if the text does not depend on the language.
    package var locales: [LocaleTag] {
        if case .localized(let blocks) = alert { blocks.map(\.locale) } else { [] }
    }

    /// A block of ``locales``, and how well it suits a device.
    package struct LocaleChoice: Hashable, Sendable {
        package enum Fit: Hashable, Sendable {
            /// The device understands the block's language, see ``LanguageRange``. An audience with this language
            /// selects the device.
            case understood
            /// The block is for the region that stands for the device's language in its script.
            case standIn
            /// The block is the default, because no block suits the device's language.
            case fallback
        }

        package var index: Int
        package var fit: Fit
    }

    /// Returns the block for a device, or `nil` if nothing is localized. The order of preference is:
    ///
    /// - the device's own tag as written;
    /// - the nearest tag that the device understands;
    /// - the tag that stands for the device's language in its script;
    /// - `default_locale`, or the first block if it is not set.
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

    /// Returns the used variables that have no value, in order. A value of only spaces and invisible characters counts
    /// as none, because a notification does not show it.
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

/// The content of a Live Activity push besides its alert (`ProviderProtocol` section 5).
package struct LiveActivity: Hashable, Sendable, Codable {
    package enum Event: String, Hashable, Sendable, Codable, CaseIterable {
        case start, update, end
    }

    /// A date in the payload, where it is in whole seconds.
    package enum Moment: Hashable, Sendable, Codable {
        case at(Timestamp)
        /// A time after the push is sent.
        case afterSending(Duration)

        private enum CodingKeys: String, CodingKey {
            case at = "at", afterSending = "afterSending"
        }
    }

    package var event: Event
    /// Must decode as the app's `ContentState`. Required except for `end`.
    package var contentState: [TemplateValue.Member]?
    /// Allowed only with `start`, like `attributes`, `inputPushToken` and `inputPushChannel`.
    package var attributesType: String?
    package var attributes: [TemplateValue.Member]?
    /// Whether the device is asked for a token for later updates.
    package var inputPushToken: Bool
    /// The broadcast channel to listen on, in Base64.
    package var inputPushChannel: TemplateText?
    package var staleDate: Moment?
    /// The time when the ended activity leaves the screen. A moment in the past means immediately.
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
