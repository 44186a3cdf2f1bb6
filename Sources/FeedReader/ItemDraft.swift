import Foundation
import Model

/// An item while it is read; of each field the first that holds something counts.
struct ItemDraft {
    private var texts: [FeedTag: String] = [:]

    /// - Parameter about: the name RSS 1.0 gives an item.
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
