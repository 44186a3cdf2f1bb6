/// A campaign file: who gets which template, when, and within which limits.
package struct Campaign: Hashable, Sendable, Codable {
    package var name: String
    /// The app's bundle id, without the push type's suffix.
    package var topic: String
    package var pushType: PushType
    package var priority: PushPriority
    package var template: String
    package var audience: Audience
    /// In place of `audience`: one SELECT of device ids over the store's documented views.
    package var audienceSQL: String?
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

    package init(name: String, topic: String, pushType: PushType, template: String) {
        self.name = name
        self.topic = topic
        self.pushType = pushType
        self.template = template
        priority = pushType.defaultPriority
        audience = .everyone
        variables = [:]
        expiresAfter = pushType.defaultExpiresAfter
        collapse = pushType == .alert ? .run : .none
        guards = Guards()
        onUnknown = .resend
        maxAttempts = 5
        variants = []
    }

    /// What `apns-collapse-id` carries.
    package enum Collapse: Hashable, Sendable, Codable {
        /// One id per run: a second copy replaces the first on the screen.
        case run
        case none
        /// At most 64 bytes.
        case key(String)
    }

    /// What becomes of a delivery whose answer a crash or a dead connection took away.
    package enum OnUnknown: String, Hashable, Sendable, Codable, CaseIterable {
        case resend, skip
    }

    package struct Pace: Hashable, Sendable, Codable {
        package var pushesPerSecond: Double
        package var ramp: Duration?

        package init(pushesPerSecond: Double, ramp: Duration? = nil) {
            self.pushesPerSecond = pushesPerSecond
            self.ramp = ramp
        }
    }

    package struct Guards: Hashable, Sendable, Codable {
        package var maxReach: Int?
        package var minReach: Int?
        package var maxGrowthPercent: Double?

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
    /// (`apns-protocol.md` section 4).
    package var deviceTopic: String { topic + pushType.topicSuffix }

    /// Whether a delivery without an answer goes out again: at most once, with the same `apns-id` and collapse id
    /// (`apns-protocol.md` section 8), and never where there is to be one attempt only.
    ///
    /// - Parameters:
    ///   - attempt: the attempt that has just stayed without an answer, from 1.
    ///   - doubts: how many attempts before it stayed without one.
    package func mayResendUnknown(afterAttempt attempt: Int, doubts: Int) -> Bool {
        onUnknown == .resend && expiresAfter != .zero && attempt < maxAttempts && doubts == 0
    }
}
