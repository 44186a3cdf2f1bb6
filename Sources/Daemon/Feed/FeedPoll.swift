package import FeedReader
package import Model

/// What one poll of a campaign's feed found.
package struct FeedPoll: Hashable, Sendable {
    package enum Found: Hashable, Sendable {
        /// The server says that nothing has changed.
        case unchanged
        /// The first poll of this address: all its items are the back catalogue, which is never sent.
        case catalogue(items: Int)
        /// As many items as were looked at, new or not.
        case items(Int)
        /// More new items than `max_new`: none is sent, in case the feed was built anew. All of them are seen now.
        case tooManyNew(count: Int, max: Int)
        /// No usable answer; asked again later.
        case failed(String)
        /// Another process polled at the same time; what it found counts.
        case overtaken
    }

    package enum Ended: Hashable, Sendable {
        /// Published longer ago than `late_by_max`.
        case missed(occurrence: String, reason: String)
        /// Refused by a guard, or its payload cannot be made.
        case refused(occurrence: String, reason: String)

        var occurrence: String {
            switch self {
            case .missed(let occurrence, _), .refused(let occurrence, _): occurrence
            }
        }

        var reason: String {
            switch self {
            case .missed(_, let reason), .refused(_, let reason): reason
            }
        }
    }

    package var found: Found
    /// Created by this poll, oldest item first, to be carried out.
    package var runs: [Run] = []
    /// New items that are not sent, on record as runs that are missed or failed.
    package var ended: [Ended] = []

    package init(found: Found) {
        self.found = found
    }
}

/// An item as a campaign would send it.
package struct FeedPreview: Hashable, Sendable {
    package var occurrence: String
    package var item: FeedItem
    package var isSeen: Bool
    /// By variable's name.
    package var variables: [String: String]
}
