package import Model

/// The parts of an RSS or Atom document that a campaign needs. The newest items usually come first.
package struct Feed: Hashable, Sendable {
    package var title = ""
    package var link = ""
    package var items: [FeedItem] = []

    package init() {}
}

/// One item. Its texts have no markup and no surrounding blanks. None is longer than ``FeedLimits/textBytesMax``.
package struct FeedItem: Hashable, Sendable {
    /// The publisher's identifier of the item. If it is missing, the link takes its place, or else the title and the
    /// date.
    package var guid = ""
    package var title = ""
    package var link = ""
    package var summary = ""
    package var author = ""
    package var published: Timestamp?
    package var enclosure = ""
    package var episode = ""
    package var season = ""

    package init() {}
}

extension Feed {
    /// Returns a variable's value from an item of this feed.
    package func value(_ field: FeedField, of item: FeedItem) -> String {
        switch field {
        case .title: item.title
        case .link: item.link
        case .guid: item.guid
        case .summary: item.summary
        case .author: item.author
        case .published: item.published?.iso8601 ?? ""
        case .enclosure: item.enclosure
        case .episode: item.episode
        case .season: item.season
        case .feedTitle: title
        case .feedLink: link
        }
    }
}

/// The reason why a document is not a feed.
package enum FeedError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The document is not valid XML at this line. Lines are counted from 1.
    case malformed(line: Int)
    case notAFeed(root: String)
    case empty
    case beyond(Limit)
    /// The markup cannot be scanned in this encoding.
    case encoding(String)
    /// The task was cancelled.
    case cancelled

    /// A limit of ``FeedLimits``.
    package enum Limit: Hashable, Sendable, CaseIterable {
        case documentBytes, depth, attributes, nameSpaces, documentType
    }

    package var description: String {
        switch self {
        case .malformed(let line): "it is not well-formed XML (line \(line))"
        case .notAFeed(let root): "it is neither RSS nor Atom: its first element is <\(root)>"
        case .empty: "it is empty"
        case .beyond(let limit): "it exceeds a limit: \(limit.summary)"
        case .encoding(let name): "its encoding is \(name); publish it in UTF-8"
        case .cancelled: "reading the feed was interrupted"
        }
    }
}

extension FeedError.Limit {
    fileprivate var summary: String {
        switch self {
        case .documentBytes: "a document of more than \(FeedLimits.documentBytesMax) bytes"
        case .depth: "elements nested more than \(FeedLimits.depthMax) deep"
        case .attributes: "an element with more than \(FeedLimits.attributesMax) attributes"
        case .nameSpaces: "more than \(FeedLimits.nameSpacesMax) name spaces in one place"
        case .documentType: "a document type of more than \(FeedLimits.documentTypeBytesMax) bytes"
        }
    }
}
