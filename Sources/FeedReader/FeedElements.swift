import Foundation
import FoundationXML

/// Gathers a feed from the parser's events. Used by one parser on one thread.
final class FeedElements: NSObject, XMLParserDelegate {
    private static let roots: Set = ["rss", "RDF", "feed"]

    private(set) var feed = Feed()
    /// The first element of a document that is no feed.
    private(set) var foreignRoot: String?
    private(set) var hasRoot = false

    private let base: URL?
    private var isAtom = false
    private var depth = 0
    /// The item that is being read, and the depth of its element.
    private var item: (draft: ItemDraft, depth: Int)?
    /// The field whose text is being gathered, and the depth of its element.
    private var field: (name: FeedTag, depth: Int)?
    private var text = ""
    /// The depth of an element inside the field whose text is left out.
    private var mutedDepth: Int?

    init(base: URL?) {
        self.base = base
    }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        depth += 1
        hasRoot = true
        if depth == 1, !Self.roots.contains(name) {
            foreignRoot = name
            return parser.abortParsing()
        }
        if let field {
            // A person's address is not part of the name.
            if field.name == .author, name == "email" || name == "uri", mutedDepth == nil { mutedDepth = depth }
            return
        }
        if item == nil, name == "item" || name == "entry" {
            item = (ItemDraft(about: attributes["about"] ?? attributes["rdf:about"]), depth)
            return
        }
        if depth == 1 { isAtom = name == "feed" }
        // Only what stands directly in an item or in the channel: <image> has a title too.
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
            if feed.items.count < FeedDocument.itemsMax { feed.items.append(item.draft.item(base: base)) }
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
        // Markup is taken out later, and takes room until then.
        guard field != nil, mutedDepth == nil, text.utf8.count < FeedDocument.textBytesMax * 16 else { return }
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
