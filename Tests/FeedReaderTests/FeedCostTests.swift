import FeedReader
import Foundation
import TestSupport
import Testing

/// Reading a feed costs no more than its size allows.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct FeedCostTests {
    private static let fragments = [
        "<item>", "</item>", "<title>x</title>", "<", ">", "&", "&amp;", "&#65;", "&#x41;", "&lt;p&gt;", "<![CDATA[",
        "]]>",
        "<!--", "-->", "<?x ?>", "<a:b c='d'>", "</a:b>", "<description>", "</description>", "<pubDate>Mon, 1 Jan 2026",
        "<guid>", "\n", " ", "é", "\u{0600}", "<link href=\"/x\"/>", "<b", "=\"", "<entry>", "<updated>2026-",
    ]

    @Test func `a feed`() {
        let head = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel>"
        let tail = "</channel></rss>"
        func read(_ text: String) { _ = try? FeedDocument.read(Array(text.utf8), from: "https://example.com/feed") }
        for unit in ["<item><title>x</title></item>", "<a>", "&lt;b ", "<!--", "<![CDATA[x]]>", "&amp;", "<a b='c'/>"] {
            #expect(LinearCost.fault(of: .init(unit, head: head, tail: tail), upTo: 256 << 10, read) == nil)
        }
        LinearCost.seeds { seed in
            let whole = LinearCost.Pattern(of: Self.fragments, seed: seed, head: head, tail: tail)
            #expect(LinearCost.fault(of: whole, read) == nil)
            let inText = LinearCost.Pattern(
                of: Self.fragments, seed: seed, head: head + "<item><description><![CDATA[",
                tail: "]]></description></item>" + tail)
            #expect(LinearCost.fault(of: inText, read) == nil)
        }
    }
}
