/// The elements that matter, by name and name space: `itunes:title` is not the title.
enum FeedTag: Hashable {
    case title, link, guid, summary, author, published, updated, enclosure, episode, season

    private static let core: Set = [
        "", "http://www.w3.org/2005/Atom", "http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/",
    ]
    private static let podcast = "http://www.itunes.com/dtds/podcast-1.0.dtd"
    private static let dublinCore = "http://purl.org/dc/elements/1.1/"

    init?(_ name: String, namespace: String) {
        if Self.core.contains(namespace) {
            self.init(core: name)
        } else {
            switch (namespace.lowercased(), name) {
            case (Self.podcast, "author"), (Self.dublinCore, "creator"): self = .author
            case (Self.podcast, "summary"), (Self.podcast, "subtitle"): self = .summary
            case (Self.podcast, "episode"): self = .episode
            case (Self.podcast, "season"): self = .season
            case (Self.dublinCore, "date"): self = .updated
            default: return nil
            }
        }
    }

    private init?(core name: String) {
        switch name {
        case "title": self = .title
        case "link": self = .link
        case "guid", "id": self = .guid
        case "description", "summary", "content": self = .summary
        // In Atom a person with name and address inside, in RSS a text.
        case "author": self = .author
        case "pubDate", "published": self = .published
        case "updated": self = .updated
        case "enclosure": self = .enclosure
        default: return nil
        }
    }
}
