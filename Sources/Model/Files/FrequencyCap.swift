/// A limit on an app's visible pushes to each device or person in any rolling window, across all campaigns.
///
/// It is stored as JSON with the pushes that it applied to. Its coding keys never change.
package struct FrequencyCap: Hashable, Sendable, Codable {
    /// The unit that the cap counts for.
    package enum Subject: String, Hashable, Sendable, Codable, CaseIterable {
        case device
        /// All devices with the same user id together. A device without a user id counts as a separate person.
        case user
    }

    /// The longest window. Older pushes can therefore be deleted whatever the configuration says.
    package static let windowMax: Duration = .seconds(31 * 86_400)
    /// The class of a campaign that names none.
    package static let usualClass = "default"

    package var limit: Int
    package var window: Duration
    package var per: Subject
    /// The classes of campaigns whose pushes the cap counts and delays. `nil` for all classes.
    package var classes: [String]?
    /// The number of slots reserved for each class.
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

    /// Tells whether a push of this class counts.
    package func covers(_ pushClass: String) -> Bool { classes?.contains(pushClass) ?? true }

    /// Returns the maximum number of counted pushes in a window that ends with a push of this class. The slots
    /// reserved for other classes stay free, even if those classes have used theirs.
    package func limit(for pushClass: String) -> Int {
        limit - reserve.reduce(0) { $0 + ($1.key == pushClass ? 0 : $1.value) }
    }

    /// `3 in 24h per user (news, marketing)`.
    package var summary: String {
        "\(limit) in \(WrittenDuration.text(window)) per \(per.rawValue)"
            + (classes.map { " (\($0.joined(separator: ", ")))" } ?? "")
    }
}
