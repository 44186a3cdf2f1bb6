import FeedReader
import Foundation
import Model
import Testing
import TestSupport

@Suite struct `Feeds` {
    private func read(_ text: String) throws -> Feed {
        try FeedDocument.read(Array(text.utf8), from: "https://example.com/feeds/podcast.xml")
    }

    @Test func `a podcast's RSS gives what a campaign needs`() throws {
        let feed = try read(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"
                xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/">
              <channel>
                <atom:link href="https://example.com/feeds/podcast.xml" rel="self"/>
                <image><title>A logo</title><link>https://example.com/logo</link></image>
                <title>WenderCast</title><link>https://example.com/</link>
                <item>
                  <itunes:title>Other title</itunes:title>
                  <title>  Tom &amp;amp; Jerry:
                    the &lt;b&gt;cat&lt;/b&gt; </title>
                  <link>/episodes/42</link>
                  <guid isPermaLink="false">urn:wendercast:42</guid>
                  <description><![CDATA[<p>What&nbsp;cats do.</p>]]></description>
                  <itunes:author>Ray</itunes:author>
                  <pubDate>Sat, 21 Nov 2026 09:30:00 +0100</pubDate>
                  <enclosure url="https://cdn.example.com/42.mp3" length="1" type="audio/mpeg"/>
                  <itunes:episode>42</itunes:episode><itunes:season>3</itunes:season>
                </item>
                <item><title>No guid</title><link>https://example.com/41</link></item>
                <item><title>Neither</title><pubDate>21 Nov 26 08:00 GMT</pubDate></item>
              </channel>
            </rss>
            """)
        #expect(feed.title == "WenderCast")
        #expect(feed.link == "https://example.com/")
        let item = try #require(feed.items.first)
        let values = FeedField.allCases.map { "\($0.rawValue)=\(feed.value($0, of: item))" }
        #expect(
            values == [
                "item.title=Tom & Jerry: the cat", "item.link=https://example.com/episodes/42",
                "item.guid=urn:wendercast:42", "item.summary=What cats do.", "item.author=Ray",
                "item.published=2026-11-21T08:30:00Z", "item.enclosure=https://cdn.example.com/42.mp3",
                "item.episode=42", "item.season=3", "feed.title=WenderCast", "feed.link=https://example.com/",
            ])
        #expect(
            feed.items.map(\.guid) == ["urn:wendercast:42", "https://example.com/41", "Neither 21 Nov 26 08:00 GMT"])
    }

    @Test func `Atom gives the same`() throws {
        let feed = try read(
            """
            <feed xmlns="http://www.w3.org/2005/Atom">
              <title type="html">Wender&amp;amp;Cast</title><link rel="self" href="/self"/><link href="/home"/>
              <entry>
                <id>tag:example.com,2026:42</id><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A <b>b</b></div></title>
                <link rel="enclosure" href="https://cdn.example.com/42.mp3"/>
                <link rel="alternate" href="https://example.com/42"/>
                <author><name>Ray</name><email>ray@example.com</email></author>
                <summary>Short</summary><content>Long</content>
                <updated>2026-11-22T00:00:00Z</updated><published>2026-11-21T09:30:00.5+01:00</published>
              </entry>
            </feed>
            """)
        #expect(feed.title == "Wender&Cast")
        #expect(feed.link == "https://example.com/home")
        let item = try #require(feed.items.first)
        #expect(item.guid == "tag:example.com,2026:42")
        #expect(item.title == "A b")
        #expect(item.link == "https://example.com/42")
        #expect(item.author == "Ray")
        #expect(item.summary == "Short")
        #expect(item.enclosure == "https://cdn.example.com/42.mp3")
        #expect(item.published?.iso8601 == "2026-11-21T08:30:00Z")
    }

    @Test(arguments: [
        ("Sat, 21 Nov 2026 09:30:00 GMT", "2026-11-21T09:30:00Z"),
        ("21 November 2026 09:30 EST", "2026-11-21T14:30:00Z"),
        ("Sat, 1 Nov 99 09:30:15 -0730", "1999-11-01T17:00:15Z"),
        ("2026-11-21", "2026-11-21T00:00:00Z"), ("2026-11-21T23:59:60Z", "2026-11-21T23:59:59Z"),
        ("Sat, 31 Feb 2026 09:30:00 GMT", nil), ("soon", nil), ("", nil), ("2026-13-01T00:00:00Z", nil),
    ])
    func `dates are read as feeds write them`(text: String, moment: String?) throws {
        let feed = try read("<rss><channel><item><guid>1</guid><pubDate>\(text)</pubDate></item></channel></rss>")
        #expect(feed.items.first?.published?.iso8601 == moment)
    }

    @Test func `other encodings than UTF-8 are read`() throws {
        let text =
            "<?xml version=\"1.0\" encoding=\"ENC\"?><rss><channel><item><title>Käse</title></item></channel></rss>"
        for (name, encoding) in [("ISO-8859-1", String.Encoding.isoLatin1), ("UTF-16", .utf16)] {
            let bytes = try #require(text.replacing("ENC", with: name).data(using: encoding))
            #expect(try FeedDocument.read(Array(bytes), from: "https://example.com/").items.first?.title == "Käse")
        }
    }

    @Test func `links that are not of the web are left out`() throws {
        for link in ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x"] {
            let feed = try read("<rss><channel><item><guid>1</guid><link>\(link)</link></item></channel></rss>")
            #expect(feed.items.first?.link == "")
        }
    }

    @Test(
        arguments: [
            ("", .empty), ("<html><body/></html>", .notAFeed(root: "html")), ("{}", .malformed(line: 1)),
            ("<rss><channel><item><title>cut", .malformed(line: 1)),
            ("<rss><channel></rss>", .malformed(line: 1)),
            ("<rss><channel><!-- cut\n", .malformed(line: 1)), ("<rss>\n<channel a=\"cut", .malformed(line: 2)),
            (String(repeating: "<rss>", count: 100_000), .beyond(.depth)),
            ("<rss \((0...100).map { "a\($0)='1'" }.joined(separator: " "))/>", .beyond(.attributes)),
            (
                "<rss>"
                    + (0...10).map { n in "<a \((0..<10).map { "xmlns:n\(n)\($0)='u'" }.joined(separator: " "))>" }
                    .joined(), .beyond(.nameSpaces)
            ),
            (
                "<!DOCTYPE rss [" + String(repeating: "<!ELEMENT a ANY>", count: 1000) + "]><rss/>",
                .beyond(.documentType)
            ),
            (String(repeating: " ", count: FeedLimits.documentBytesMax + 1), .beyond(.documentBytes)),
            ("<?xml version='1.0' encoding='UTF-7'?><rss/>", .encoding("utf-7")),
        ] as [(String, FeedError)])
    func `what is no feed is an error`(text: String, error: FeedError) {
        #expect(throws: error) { try read(text) }
    }

    @Test func `entities that multiply themselves are refused, and files are not read`() throws {
        let entities = (1...9).map { number in
            "<!ENTITY e\(number) \"" + String(repeating: "&e\(number - 1);", count: 10) + "\">"
        }
        let item = "<rss><channel><item><guid>1</guid><title>&e9;</title></item></channel></rss>"
        #expect(throws: FeedError.self) {
            try read("<!DOCTYPE rss [<!ENTITY e0 \"lol\">\(entities.joined())]>\(item)")
        }
        let directory = try TemporaryDirectory()
        let file = try directory.write("secret", to: "file")
        let stolen = try? read("<!DOCTYPE rss [<!ENTITY e9 SYSTEM \"file://\(file)\">]>\(item)")
        #expect(stolen?.items.first?.title.contains("secret") != true)
    }

    @Test(arguments: FeedError.Limit.allCases) func `a limit is named with its number`(limit: FeedError.Limit) {
        #expect(FeedError.beyond(limit).description.contains(/more than [0-9]+/))
    }

    /// libxml2 hands such names on, and Foundation ended the process over them.
    @Test func `bytes that are no UTF-8 are an error of their line`() {
        for bytes in [Array("<rss>\n<channel".utf8) + [0xD0] + Array(" a='1'>".utf8), [UInt8(ascii: "<"), 0xD0]] {
            #expect(throws: FeedError.self) { try FeedDocument.read(bytes, from: "https://example.com/") }
        }
        #expect(throws: FeedError.malformed(line: 2)) {
            try FeedDocument.read(Array("<rss>\n<a".utf8) + [0xD0, 0x20, 0x3E], from: "https://example.com/")
        }
    }

    @Test func `a comment is no part of the document, whatever is in it, and lines are counted all the same`() throws {
        let feed = try read("<rss><channel><!-- a -- b <item> --><item><guid>1</guid></item></channel></rss>")
        #expect(feed.items.map(\.guid) == ["1"])
        // Foundation ended the process over the first.
        let hidden = "<!DOCTYPE rss [<?a?><!ENTITY e '<?a?>'>]>"
        #expect(throws: FeedError.self) { try read("\(hidden)<rss>&e;</rss>") }
        #expect(try read("\(hidden)<rss><channel/></rss>").items.isEmpty)
        #expect(try read("<?xml version='1.0'?><?a?><rss><?b c?><channel/></rss>").items.isEmpty)
        #expect(throws: FeedError.malformed(line: 4)) { try read("<rss><!-- \n\n\n --><channel></rss>") }
    }

    @Test func `a reader that is cancelled stops`() async throws {
        let items = (0..<20_000).map { "<item><guid>\($0)</guid></item>" }.joined()
        let document = Array("<rss><channel>\(items)</channel></rss>".utf8)
        #expect(throws: FeedError.cancelled) {
            try FeedDocument.read(document, from: "https://example.com/", isCancelled: { true })
        }
        let reading = Task { try await FeedDocument.readAside(document, from: "https://example.com/") }
        reading.cancel()
        await #expect(throws: FeedError.cancelled) { try await reading.value }
    }

    @Test func `what is written for people comes out as they read it`() throws {
        let rows = [
            ("a &lt;!-- b --&gt; c", "a c"), ("a &lt;!-- b", "a <!-- b"), ("1 &lt; 2 &gt; 0", "1 < 2 > 0"),
            ("&lt;a &lt;b&gt;c", "<a c"), ("&lt;/p&gt;x", "x"), ("&amp;#65;&amp;#x42;&amp;nbsp;&amp;hellip;", "AB …"),
            ("&amp;unknown; &amp;#; &amp;#xZ; &amp;", "&unknown; &#; &#xZ; &"), ("AT&amp;amp;T", "AT&T"),
        ]
        for (text, expected) in rows {
            let feed = try read("<rss><channel><item><title>\(text)</title></item></channel></rss>")
            #expect(feed.items.first?.title == expected)
        }
    }

    @Test func `items and texts have bounds`() throws {
        let items = (0..<3000).map { "<item><guid>\($0)</guid></item>" }.joined()
        #expect(try read("<rss><channel>\(items)</channel></rss>").items.count == FeedLimits.itemsMax)
        let long = String(repeating: "ä", count: 100_000)
        let title = try read("<rss><channel><item><title>\(long)</title></item></channel></rss>").items.first?.title
        #expect(title?.utf8.count == FeedLimits.textBytesMax)
    }
}
