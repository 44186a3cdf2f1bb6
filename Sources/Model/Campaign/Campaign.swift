/// A campaign file: who gets which template, when, and within which limits.
///
/// It is stored as JSON inside ``RunDefinition``: its coding keys, and those of every type it holds, never change.
package struct Campaign: Hashable, Sendable, Codable {
    package var name: String
    /// The app's bundle id, without the push type's suffix.
    package var topic: String
    package var pushType: PushType
    package var priority: PushPriority
    /// What the app's frequency caps know it by; nil: ``FrequencyCap/usualClass``.
    package var ownClass: String?
    package var template: String
    package var audience: Audience
    /// In place of `audience`: one SELECT of device ids over the store's documented views.
    package var audienceSQL: String?
    /// Who gets one copy; nil: each device, as with `all`.
    package var dedupe: Dedupe?
    /// Defaults; an empty one must be given when the run is started.
    package var variables: [String: String]
    package var schedule: Schedule?
    /// In place of a time in `schedule`: each new item of a feed is an occurrence.
    package var feed: FeedTrigger?
    /// `apns-expiration` is the planned time plus this. Nil: APNs' own storage policy. Zero: one attempt, not stored.
    package var expiresAfter: Duration?
    package var collapse: Collapse
    package var pace: Pace?
    package var guards: Guards
    package var onUnknown: OnUnknown
    /// Attempts per delivery, the first included.
    package var maxAttempts: Int
    /// Percent of the audience left out by a stable hash, 0 to 100.
    package var holdoutPercent: Double?
    package var variants: [Variant]
    /// The last one is the rest. Nil: everybody at once.
    package var stages: [Stage]?
    /// The template that takes the place of what was sent, should it be wrong.
    package var correction: String?

    private enum CodingKeys: String, CodingKey {
        case name = "name", topic = "topic", pushType = "pushType", priority = "priority", template = "template"
        case audience = "audience", audienceSQL = "audienceSQL", dedupe = "dedupe", variables = "variables", schedule =
            "schedule"
        case feed = "feed", expiresAfter = "expiresAfter", collapse = "collapse", pace = "pace"
        case guards = "guards", onUnknown = "onUnknown", maxAttempts = "maxAttempts"
        case holdoutPercent = "holdoutPercent", variants = "variants", stages = "stages"
        case correction = "correction"
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

    /// What `apns-collapse-id` carries, and which background pushes replace each other while they wait.
    package enum Collapse: Hashable, Sendable, Codable {
        /// One id per run: a second copy replaces the first on the screen.
        case run
        case none
        /// At most 64 bytes.
        case key(String)
        /// No id. A newer background push of the same app and template replaces an older one that waits: the default of
        /// background pushes.
        case template

        private enum CodingKeys: String, CodingKey {
            case run = "run", none = "none", key = "key", template = "template"
        }

        /// Whether pushes carry an `apns-collapse-id`.
        package var hasID: Bool { self != .none && self != .template }
    }

    /// What becomes of a delivery whose answer a crash or a dead connection took away.
    package enum OnUnknown: String, Hashable, Sendable, Codable, CaseIterable {
        case resend, skip
    }

    /// Who gets one copy, on however many devices.
    package enum Dedupe: String, Hashable, Sendable, Codable, CaseIterable {
        /// Each device.
        case all
        /// All devices in the audience with one `user_id`; a device without one is somebody of its own.
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

    package var pushClass: String { ownClass ?? FrequencyCap.usualClass }

    /// How long after its time what the campaign owes may still begin to go out by itself: as the schedule says, also one
    /// that starts nothing, else as the feed's items are judged.
    package var lateByMax: Duration { schedule?.lateByMax ?? feed?.lateByMax ?? Timetable.lateByMaxDefault }

    /// Whether a delivery without an answer goes out again: at most once, with the same `apns-id` and collapse id
    /// (`ProviderProtocol` section 8), and never where there is to be one attempt only.
    ///
    /// - Parameter attempt: the attempt that has just stayed without an answer, from 1.
    package func mayResendUnknown(afterAttempt attempt: Int) -> Bool {
        onUnknown == .resend && expiresAfter != .zero && attempt < maxAttempts
    }
}

extension Campaign.Pace {
    /// Share of the whole rate at the start of a ramp.
    private static let rampStart = 0.1
    /// A hundred years, in seconds: longer than any run, and within the range of `Timestamp`.
    private static let secondsMax = 3.15e9

    /// Pushes per second, so long after the start: with a ramp a straight line from a tenth of the rate to the whole.
    package func rate(after time: Duration) -> Double {
        guard let ramp = ramp?.inSeconds, ramp > 0 else { return pushesPerSecond }
        let share = min(1, max(0, time.inSeconds / ramp))
        return pushesPerSecond * (Self.rampStart + (1 - Self.rampStart) * share)
    }

    /// How many pushes the pace allows from the start up to this moment: the integral of the rate.
    package func count(within time: Duration) -> Double {
        let seconds = max(0, time.inSeconds)
        let onRamp = min(seconds, max(0, ramp?.inSeconds ?? 0))
        let mean = (rate(after: .zero) + rate(after: time)) / 2
        return onRamp * mean + (seconds - onRamp) * pushesPerSecond
    }

    /// How long so many pushes take; the inverse of ``count(within:)``.
    package func duration(of count: Int) -> Duration {
        let ramp = max(0, ramp?.inSeconds ?? 0)
        let beyond = Double(count) - self.count(within: self.ramp ?? .zero)
        let seconds = beyond >= 0 ? ramp + beyond / pushesPerSecond : secondsOnRamp(Double(count), ramp)
        return .milliseconds(Int64((min(seconds, Self.secondsMax) * 1000).rounded(.up)))
    }

    /// The root of `growth / 2 * t^2 + first * t = count`.
    private func secondsOnRamp(_ count: Double, _ ramp: Double) -> Double {
        let first = pushesPerSecond * Self.rampStart
        let growth = (pushesPerSecond - first) / ramp
        return ((first * first + 2 * growth * count).squareRoot() - first) / growth
    }
}
