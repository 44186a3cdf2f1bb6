/// A campaign file: its audience, its template, its schedule and its limits.
///
/// It is stored as JSON inside ``RunDefinition``: its coding keys, and those of every type it holds, never change.
package struct Campaign: Hashable, Sendable, Codable {
    package var name: String
    /// The app's bundle id, without the push type's suffix.
    package var topic: String
    package var pushType: PushType
    package var priority: PushPriority
    /// The class that the app's frequency caps use for this campaign. `nil` for ``FrequencyCap/usualClass``.
    package var ownClass: String?
    package var template: String
    package var audience: Audience
    /// A SELECT of device ids over the store's documented views, in place of `audience`.
    package var audienceSQL: String?
    /// The unit that gets one copy. `nil` means the same as `all`: each device.
    package var dedupe: Dedupe?
    /// The variables with their default values. A variable with an empty default must be set when the run is started.
    package var variables: [String: String]
    package var schedule: Schedule?
    /// The feed whose new items are occurrences, in place of a time in `schedule`.
    package var feed: FeedTrigger?
    /// The time from the planned time to `apns-expiration`. `nil` leaves storage to APNs' policy. Zero means one
    /// attempt and no storage.
    package var expiresAfter: Duration?
    package var collapse: Collapse
    package var pace: Pace?
    package var guards: Guards
    package var onUnknown: OnUnknown
    /// Attempts per delivery, the first included.
    package var maxAttempts: Int
    /// The percentage of the audience in the holdout, from 0 to 100. A stable hash chooses its devices.
    package var holdoutPercent: Double?
    package var variants: [Variant]
    /// The stages in order, the last one with all remaining devices. `nil` sends to all devices together.
    package var stages: [Stage]?
    /// The template for a correction, which replaces a faulty push.
    package var correction: String?
    /// What the app is asked to report. `nil` for nothing: the pushes then carry no reference.
    package var feedback: CampaignFeedback?
    /// The event of the app that the campaign is for.
    package var conversion: Conversion?

    private enum CodingKeys: String, CodingKey {
        case name = "name", topic = "topic", pushType = "pushType", priority = "priority", template = "template"
        case audience = "audience", audienceSQL = "audienceSQL", dedupe = "dedupe", variables = "variables", schedule =
            "schedule"
        case feed = "feed", expiresAfter = "expiresAfter", collapse = "collapse", pace = "pace"
        case guards = "guards", onUnknown = "onUnknown", maxAttempts = "maxAttempts"
        case holdoutPercent = "holdoutPercent", variants = "variants", stages = "stages"
        case correction = "correction", feedback = "feedback", conversion = "conversion"
        case ownClass = "class"
    }

    package init(name: String, topic: String, pushType: PushType, template: String) {
        self.name = name
        self.topic = topic
        self.pushType = pushType
        self.template = template
        priority = pushType.defaultPriority
        audience = .everyone
        variables = [:]
        expiresAfter = pushType.defaultExpiresAfter
        collapse =
            switch pushType {
            case .alert: .run
            case .background: .template
            default: .none
            }
        guards = Guards()
        onUnknown = .resend
        maxAttempts = 5
        variants = []
    }

    /// The value of `apns-collapse-id`, and the rule by which waiting background pushes replace each other.
    package enum Collapse: Hashable, Sendable, Codable {
        /// One id per run: a second copy replaces the first on the screen.
        case run
        case none
        /// At most 64 bytes.
        case key(String)
        /// No id. A newer background push of the same app and template replaces an older one that waits. This is the
        /// default of background pushes.
        case template

        private enum CodingKeys: String, CodingKey {
            case run = "run", none = "none", key = "key", template = "template"
        }

        /// Whether pushes carry an `apns-collapse-id`.
        package var hasID: Bool { self != .none && self != .template }
    }

    /// The treatment of a delivery whose response was lost in a crash or with a dead connection.
    package enum OnUnknown: String, Hashable, Sendable, Codable, CaseIterable {
        case resend, skip
    }

    /// The unit that gets one copy of the push.
    package enum Dedupe: String, Hashable, Sendable, Codable, CaseIterable {
        /// Each device.
        case all
        /// All devices in the audience with the same `user_id`. A device without a `user_id` counts as a separate
        /// user.
        case user
    }

    package struct Pace: Hashable, Sendable, Codable {
        package var pushesPerSecond: Double
        package var ramp: Duration?

        private enum CodingKeys: String, CodingKey {
            case pushesPerSecond = "pushesPerSecond", ramp = "ramp"
        }

        package init(pushesPerSecond: Double, ramp: Duration? = nil) {
            self.pushesPerSecond = pushesPerSecond
            self.ramp = ramp
        }
    }

    package struct Guards: Hashable, Sendable, Codable {
        package var maxReach: Int?
        package var minReach: Int?
        package var maxGrowthPercent: Double?

        private enum CodingKeys: String, CodingKey {
            case maxReach = "maxReach", minReach = "minReach", maxGrowthPercent = "maxGrowthPercent"
        }

        package init(maxReach: Int? = nil, minReach: Int? = nil, maxGrowthPercent: Double? = nil) {
            self.maxReach = maxReach
            self.minReach = minReach
            self.maxGrowthPercent = maxGrowthPercent
        }
    }

    package struct Variant: Hashable, Sendable, Codable {
        package var name: String
        package var weight: Int
        package var template: String

        private enum CodingKeys: String, CodingKey {
            case name = "name", weight = "weight", template = "template"
        }

        package init(name: String, weight: Int, template: String) {
            self.name = name
            self.weight = weight
            self.template = template
        }
    }
}

extension Campaign {
    /// The topic under which the devices of this campaign are stored, and the value of `apns-topic`. A push type with a
    /// suffix has tokens of its own, so its devices are registered under the topic with the suffix
    /// (`ProviderProtocol` section 4).
    package var deviceTopic: String { topic + pushType.topicSuffix }

    /// Whether the app reports about the campaign's pushes, or about its goal.
    package var hasFeedback: Bool { feedback != nil || conversion != nil }

    package var pushClass: String { ownClass ?? FrequencyCap.usualClass }

    /// The longest delay after the planned time at which remaining deliveries may still start automatically. It comes
    /// from the schedule, even one without a start time, or else from the feed.
    package var lateByMax: Duration { schedule?.lateByMax ?? feed?.lateByMax ?? Timetable.lateByMaxDefault }

    /// Tells whether a delivery without a response is sent again. A repeat has the same `apns-id` and collapse id
    /// (`ProviderProtocol` section 8). A delivery is never repeated after its last attempt, or if `expires_after` is
    /// 0.
    ///
    /// - Parameter attempt: the number of the attempt that just ended without a response, from 1.
    package func mayResendUnknown(afterAttempt attempt: Int) -> Bool {
        onUnknown == .resend && expiresAfter != .zero && attempt < maxAttempts
    }
}

extension Campaign.Pace {
    /// Returns the pace with the lowest rate, or `nil` if none is set.
    package static func slowest(_ paces: Campaign.Pace?...) -> Campaign.Pace? {
        paces.compactMap(\.self).min { $0.pushesPerSecond < $1.pushesPerSecond }
    }

    /// The share of the full rate at the start of a ramp.
    private static let rampStart = 0.1
    /// A hundred years, in seconds: longer than any run, and within the range of `Timestamp`.
    private static let secondsMax = 3.15e9

    /// Returns the pushes per second at a time after the start. A ramp is a straight line from a tenth of the rate to
    /// the full rate.
    package func rate(after time: Duration) -> Double {
        guard let ramp = ramp?.inSeconds, ramp > 0 else { return pushesPerSecond }
        let share = min(1, max(0, time.inSeconds / ramp))
        return pushesPerSecond * (Self.rampStart + (1 - Self.rampStart) * share)
    }

    /// Returns how many pushes the pace allows within a time from the start: the integral of the rate.
    package func count(within time: Duration) -> Double {
        let seconds = max(0, time.inSeconds)
        let onRamp = min(seconds, max(0, ramp?.inSeconds ?? 0))
        let mean = (rate(after: .zero) + rate(after: time)) / 2
        return onRamp * mean + (seconds - onRamp) * pushesPerSecond
    }

    /// Returns how long this number of pushes takes. It is the inverse of ``count(within:)``.
    package func duration(of count: Int) -> Duration {
        let ramp = max(0, ramp?.inSeconds ?? 0)
        let beyond = Double(count) - self.count(within: self.ramp ?? .zero)
        let seconds = beyond >= 0 ? ramp + beyond / pushesPerSecond : secondsOnRamp(Double(count), ramp)
        return .milliseconds(Int64((min(seconds, Self.secondsMax) * 1000).rounded(.up)))
    }

    /// Solves `growth / 2 * t^2 + first * t = count` for `t`.
    private func secondsOnRamp(_ count: Double, _ ramp: Double) -> Double {
        let first = pushesPerSecond * Self.rampStart
        let growth = (pushesPerSecond - first) / ramp
        return ((first * first + 2 * growth * count).squareRoot() - first) / growth
    }
}

extension Campaign {
    /// Returns the variables that have no value when the schedule starts the campaign, so that each of its runs fails.
    /// A schedule sets no variables. Empty for a campaign without a schedule: a feed's item, or the person who starts
    /// the run, gives the values.
    ///
    /// - Parameters:
    ///   - templates: the templates that the runs use. One that allows ``LintRule/neverFilled`` is left out.
    ///   - given: the values that a person gave for one start, see ``OccurrenceValues``.
    package func missingValues(in templates: [Template], given: [String: String] = [:]) -> [String] {
        guard let schedule, schedule.trigger != .none, feed == nil else { return [] }
        let values = variables.merging(given) { $1 }
        return templates.filter { !$0.allows(.neverFilled) }
            .reduce(into: Set<String>()) { $0.formUnion($1.unset(in: values)) }.sorted()
    }
}
