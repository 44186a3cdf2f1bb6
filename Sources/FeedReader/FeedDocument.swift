import Dispatch
import Foundation
import FoundationXML
import Model
import Synchronization

/// Reads RSS 0.9 to 2.0 and Atom 1.0 in any encoding that XML allows.
///
/// The reader is designed for untrusted documents. The time is at most proportional to the document's size, and the
/// memory is bounded. A document's own entities are never resolved. Content beyond ``FeedLimits`` is refused or left
/// out.
package enum FeedDocument {
    /// - Parameters:
    ///   - url: the document's address. Relative links are resolved against it.
    ///   - isCancelled: called repeatedly. The result `true` stops the reading with ``FeedError/cancelled``.
    package static func read(
        _ bytes: [UInt8], from url: String, isCancelled: @escaping @Sendable () -> Bool = { false }
    ) throws(FeedError) -> Feed {
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.count <= FeedLimits.documentBytesMax else { throw .beyond(.documentBytes) }
        var scanner = FeedScanner(try FeedEncoding.scannable(bytes), isCancelled: isCancelled)
        try scanner.scan()
        let parser = XMLParser(data: Data(scanner.cleaned))
        parser.shouldProcessNamespaces = true
        parser.shouldResolveExternalEntities = false
        let elements = FeedElements(base: URL(string: url), isCancelled: isCancelled)
        parser.delegate = elements
        let isRead = parser.parse()
        if elements.isBrokenOff { throw .cancelled }
        if let root = elements.foreignRoot { throw .notAFeed(root: root) }
        // The parser reads as much of a truncated document as it can. Such a document is still an error.
        guard isRead, elements.hasRoot, parser.parserError == nil else {
            throw .malformed(line: max(1, parser.lineNumber))
        }
        return elements.feed
    }

    /// Reads a document on a separate thread. Cancellation of the task stops the reading.
    package static func readAside(_ bytes: [UInt8], from url: String) async throws(FeedError) -> Feed {
        let isCancelled = CancelFlag()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                readers.async {
                    continuation.resume(
                        returning: Result { () throws(FeedError) in
                            try read(bytes, from: url, isCancelled: { isCancelled.isUp })
                        })
                }
            }
        } onCancel: {
            isCancelled.raise()
        }
        return try result.get()
    }

    /// The threads for reading. A large feed would occupy one of the few threads that tasks share for a long time.
    private static let readers = DispatchQueue(label: "feed-reader", attributes: .concurrent)
}

private final class CancelFlag: Sendable {
    private let state = Atomic(false)

    var isUp: Bool { state.load(ordering: .relaxed) }

    func raise() { state.store(true, ordering: .relaxed) }
}

/// Collects a feed from the events of one parser, which runs on one thread.
final class FeedElements: NSObject, XMLParserDelegate {
    private static let roots: Set = ["rss", "RDF", "feed"]

    private(set) var feed = Feed()
    /// The root element of a document that is not a feed.
    private(set) var foreignRoot: String?
    private(set) var hasRoot = false

    private let base: URL?
    private let isCancelled: () -> Bool
    private(set) var isBrokenOff = false
    private var isAtom = false
    private var depth = 0
    /// The current item, and the depth of its element.
    private var item: (draft: ItemDraft, depth: Int)?
    /// The field whose text is being collected, and the depth of its element.
    private var field: (name: FeedTag, depth: Int)?
    private var text = ""
    /// The depth of the element whose text is ignored. The element is inside the current field.
    private var mutedDepth: Int?

    init(base: URL?, isCancelled: @escaping () -> Bool) {
        self.base = base
        self.isCancelled = isCancelled
    }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        depth += 1
        hasRoot = true
        if isCancelled() {
            isBrokenOff = true
            return parser.abortParsing()
        }
        if depth == 1, !Self.roots.contains(name) {
            foreignRoot = name
            return parser.abortParsing()
        }
        if let field {
            // An Atom author's mail or web address is not part of the name.
            if field.name == .author, name == "email" || name == "uri", mutedDepth == nil { mutedDepth = depth }
            return
        }
        if item == nil, name == "item" || name == "entry" {
            item = (ItemDraft(about: attributes["about"] ?? attributes["rdf:about"]), depth)
            return
        }
        if depth == 1 { isAtom = name == "feed" }
        // Only direct children of an item or of the channel count, because <image> also has a title.
        guard depth == (item?.depth ?? (isAtom ? 1 : 2)) + 1, let tag = FeedTag(name, namespace: namespaceURI ?? "")
        else { return }
        if item == nil { takeFeed(attributes, tag) } else { item?.draft.take(attributes, for: tag) }
        field = (tag, depth)
        text = ""
    }

    func parser(
        _ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?
    ) {
        defer { depth -= 1 }
        if mutedDepth == depth { mutedDepth = nil }
        if let field, field.depth == depth {
            if item == nil { takeFeed(text, field.name) } else { item?.draft.take(text, for: field.name) }
            self.field = nil
        } else if let item, item.depth == depth {
            if feed.items.count < FeedLimits.itemsMax { feed.items.append(item.draft.item(base: base)) }
            self.item = nil
        }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        append(string)
    }

    func parser(_ parser: XMLParser, foundCDATA CDATABlock: Data) {
        append(String(decoding: CDATABlock, as: UTF8.self))
    }

    private func append(_ string: String) {
        // Markup is removed later, so it still counts towards this limit.
        guard field != nil, mutedDepth == nil, text.utf8.count < FeedLimits.gatheredBytesMax else { return }
        text += string
    }

    private func takeFeed(_ text: String, _ tag: FeedTag) {
        if tag == .title, feed.title.isEmpty { feed.title = PlainText.of(text) }
        if tag == .link, feed.link.isEmpty { feed.link = WebLink.absolute(text, base: base) }
    }

    private func takeFeed(_ attributes: [String: String], _ tag: FeedTag) {
        guard tag == .link, feed.link.isEmpty, attributes["rel"] ?? "alternate" == "alternate" else { return }
        feed.link = WebLink.absolute(attributes["href"] ?? "", base: base)
    }
}

/// An item that is being read. The first non-empty value of each field counts.
struct ItemDraft {
    private var texts: [FeedTag: String] = [:]

    /// - Parameter about: the identifier that RSS 1.0 gives an item.
    init(about: String?) {
        texts[.guid] = about
    }

    mutating func take(_ text: String, for tag: FeedTag) {
        let isBlank = text.allSatisfy(\.isWhitespace)
        if !isBlank, texts[tag] == nil { texts[tag] = text }
    }

    mutating func take(_ attributes: [String: String], for tag: FeedTag) {
        switch (tag, attributes["rel"] ?? "alternate") {
        case (.link, "alternate"): if let link = attributes["href"] { take(link, for: .link) }
        case (.link, "enclosure"): if let link = attributes["href"] { take(link, for: .enclosure) }
        case (.enclosure, _): if let link = attributes["url"] { take(link, for: .enclosure) }
        default: break
        }
    }

    func item(base: URL?) -> FeedItem {
        var item = FeedItem()
        item.title = PlainText.of(texts[.title] ?? "")
        item.link = WebLink.absolute(texts[.link] ?? "", base: base)
        item.summary = PlainText.of(texts[.summary] ?? "")
        item.author = PlainText.of(texts[.author] ?? "")
        item.enclosure = WebLink.absolute(texts[.enclosure] ?? "", base: base)
        item.episode = PlainText.of(texts[.episode] ?? "")
        item.season = PlainText.of(texts[.season] ?? "")
        item.published = (texts[.published] ?? texts[.updated]).flatMap { FeedTime.parse(PlainText.of($0)) }
        let named = PlainText.bounded(texts[.guid] ?? "")
        let dated = [item.title, texts[.published] ?? ""].joined(separator: " ")
        item.guid = [named, item.link, PlainText.bounded(dated)].first { !$0.isEmpty } ?? ""
        return item
    }
}

/// The relevant elements, by name and name space. `itunes:title` is not the title.
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
        // In Atom, this element contains elements for a person's name and address. In RSS, it contains only a text.
        case "author": self = .author
        case "pubDate", "published": self = .published
        case "updated": self = .updated
        case "enclosure": self = .enclosure
        default: return nil
        }
    }
}
