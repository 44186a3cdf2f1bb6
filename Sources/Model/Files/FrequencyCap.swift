/// At most so many visible pushes of an app for each device or person in any rolling window, across all campaigns.
///
/// It is stored as JSON with the pushes it was asked for: its coding keys never change.
package struct FrequencyCap: Hashable, Sendable, Codable {
    /// Whom it counts for.
    package enum Subject: String, Hashable, Sendable, Codable, CaseIterable {
        case device
        /// All devices with the same user id together; a device without one is a person of its own.
        case user
    }

    /// The longest window, so that what is older can be forgotten whatever the configuration says.
    package static let windowMax: Duration = .seconds(31 * 86_400)
    /// Of a campaign that names no class.
    package static let usualClass = "default"

    package var limit: Int
    package var window: Duration
    package var per: Subject
    /// The classes of campaigns whose pushes it counts and holds back; nil: all.
    package var classes: [String]?
    /// By class, how many of the slots nobody else may take.
    package var reserve: [String: Int]

    private enum CodingKeys: String, CodingKey {
        case limit = "limit", window = "window", per = "per", classes = "classes", reserve = "reserve"
    }

    package init(
        limit: Int, window: Duration, per: Subject = .device, classes: [String]? = nil, reserve: [String: Int] = [:]
    ) {
        self.limit = limit
        self.window = window
        self.per = per
        self.classes = classes
        self.reserve = reserve
    }

    /// Whether a push of this class counts.
    package func covers(_ pushClass: String) -> Bool { classes?.contains(pushClass) ?? true }

    /// How many pushes may count in a window once one of this class has left: the slots that are kept for other classes stay
    /// free, whether or not those have used theirs.
    package func limit(for pushClass: String) -> Int {
        limit - reserve.reduce(0) { $0 + ($1.key == pushClass ? 0 : $1.value) }
    }

    /// `3 in 24h per user (news, marketing)`.
    package var words: String {
        "\(limit) in \(WrittenDuration.text(window)) per \(per.rawValue)"
            + (classes.map { " (\($0.joined(separator: ", ")))" } ?? "")
    }
}
