/// A feed whose new items start a campaign by themselves: each item is an occurrence.
package struct FeedTrigger: Hashable, Sendable, Codable {
    /// `https://` or `http://`.
    package var url: String
    /// The time from one poll to the next.
    package var every: Duration
    /// By variable's name.
    package var variables: [String: FeedField]
    /// An item published longer ago than this is `missed`; one without a date counts as published when it is found.
    package var lateByMax: Duration
    /// More new items than this at one poll are a feed that was built anew, and not news: none is sent.
    package var newMax: Int

    package init(url: String) {
        self.url = url
        every = .seconds(15 * 60)
        variables = [:]
        lateByMax = .seconds(86_400)
        newMax = 3
    }
}

/// What an item of a feed can give to a variable.
package enum FeedField: String, Hashable, Sendable, Codable, CaseIterable {
    case title = "item.title"
    case link = "item.link"
    case guid = "item.guid"
    case summary = "item.summary"
    case author = "item.author"
    case published = "item.published"
    /// The address of the sound or film.
    case enclosure = "item.enclosure"
    case episode = "item.episode"
    case season = "item.season"
    case feedTitle = "feed.title"
    case feedLink = "feed.link"
}
