import FeedReader
import Foundation
import Glibc
import TestSupport
import Testing

/// Documents made to cost whoever reads them: the time grows with the size, and not faster, and nothing crashes.
@Suite(.serialized, .timeLimit(.minutes(10))) struct `Hostile feeds` {
    /// A kind of document, of about so many bytes.
    struct Kind: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var document: @Sendable (Int) -> String

        init(_ name: String, _ document: @escaping @Sendable (Int) -> String) {
            testDescription = name
            self.document = document
        }

        /// Inside the title of an item.
        static func title(_ name: String, _ text: @escaping @Sendable (Int) -> String) -> Kind {
            Kind(name) { "<rss><channel><item><guid>1</guid><title>\(text($0))</title></item></channel></rss>" }
        }
    }

    private static func times(_ bytes: Int, _ text: String) -> String {
        String(repeating: text, count: bytes / text.utf8.count)
    }

    static let kinds = [
        Kind("an unclosed comment") { "<rss><channel><!--" + times($0, "a") },
        Kind("an unclosed comment of dashes") { "<rss><channel><!--" + times($0, "- ") },
        Kind("comments opened again and again") { "<rss><channel>" + times($0, "<!-- ") },
        Kind("many comments") { "<rss><channel>" + times($0, "<!-- a -->") + "</channel></rss>" },
        Kind("a giant CDATA") {
            "<rss><channel><item><title><![CDATA[\(times($0, "a"))]]></title></item></channel></rss>"
        },
        Kind("an unclosed CDATA") { "<rss><channel><item><title><![CDATA[" + times($0, "]") },
        Kind("many CDATAs") { "<rss><channel><item><title>" + times($0, "<![CDATA[a]]>") },
        Kind("deep nesting") { "<rss>" + times($0, "<a>") },
        Kind("items without end tags") { "<rss><channel>" + times($0, "<item><title>a") },
        Kind("a million attributes") { bytes in
            "<rss " + (0..<bytes / 10).map { "a\($0)=\"1\"" }.joined(separator: " ") + "/>"
        },
        Kind("a million name spaces") { bytes in
            "<rss " + (0..<bytes / 20).map { "xmlns:a\($0)=\"u:\($0)\"" }.joined(separator: " ") + "/>"
        },
        Kind("name spaces on nested elements") { bytes in
            "<rss>" + (0..<bytes / 20).map { "<a xmlns:n\($0)=\"u\">" }.joined()
        },
        Kind("a giant attribute") { "<rss a=\"\(times($0, "a"))\"/>" },
        Kind("an unclosed attribute") { "<rss a=\"" + times($0, "a ") },
        Kind("an unclosed tag") { "<rss " + times($0, "a ") },
        Kind("a giant name") { "<rss><" + times($0, "a") + "/></rss>" },
        Kind("an unclosed instruction") { "<rss><?a " + times($0, "? ") },
        Kind("an unclosed document type") { "<!DOCTYPE rss [" + times($0, "<!ELEMENT a ANY>") },
        Kind("a million entities") { bytes in
            "<!DOCTYPE rss [" + (0..<bytes / 20).map { "<!ENTITY e\($0) \"a\">" }.joined() + "]><rss/>"
        },
        Kind("an entity used a million times") {
            "<!DOCTYPE rss [<!ENTITY e \"aaaaaaaaaa\">]><rss><channel><item><title>" + times($0, "&e;")
        },
        .title("character references") { times($0, "&#65;") },
        .title("escaped comments that never end") { times($0, "&lt;!-- ") },
        .title("escaped tags that never end") { times($0, "&lt;a ") },
        .title("escaped ampersands") { times($0, "&amp;") },
        .title("blanks") { times($0, " \n") },
        .title("control characters") { times($0, "\u{85}") },
        .title("marks on one letter") { "a" + times($0, "\u{301}") },
        Kind("many small items") { "<rss><channel>" + times($0, "<item><title>a</title></item>") + "</channel></rss>" },
        Kind("items of hostile titles") {
            "<rss><channel>"
                + times($0, "<item><title>\(String(repeating: "&lt;!--", count: 500))</title></item>")
                + "</channel></rss>"
        },
        Kind("dates of letters") {
            "<rss><channel>" + times($0, "<item><pubDate>\(String(repeating: "a ", count: 500))</pubDate></item>")
        },
    ]

    /// RUSAGE_THREAD, which Glibc's module leaves out.
    private static let rusageThread: Int32 = 1

    /// CPU time of this thread alone: other tests, and other programs, do not count.
    private static func seconds(_ body: () -> Void) -> Double {
        func now() -> Double {
            var usage = rusage()
            getrusage(rusageThread, &usage)
            return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
                + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
        }
        let start = now()
        body()
        return now() - start
    }

    @Test(arguments: kinds) func `take time in proportion to their size`(kind: Kind) {
        // A quadratic cost shows in a text an eighth as large, too.
        let largest = Nightly.isOn ? 1 << 20 : 1 << 17
        let seconds = [largest / 4, largest].map { bytes in
            let document = Array(kind.document(bytes).utf8)
            return Self.seconds { _ = try? FeedDocument.read(document, from: "https://example.com/feed") }
        }
        // Below some milliseconds it is the clock that is measured.
        #expect(seconds[1] <= max(seconds[0], 0.02) * 10, "\(seconds)")
        #expect(seconds[1] / Double(largest / 1024) < 0.005, "\(seconds[1]) s for \(largest / 1024) KiB")
    }

    /// Pieces of documents, whole and broken, in any order: read or refused, and never a crash.
    @Test(arguments: 1...40) func `made of random pieces are read or refused`(seed: Int) {
        let pieces = [
            "<rss>", "</rss>", "<channel>", "</channel>", "<item>", "</item>", "<title>", "</title>", "<![CDATA[",
            "]]>",
            "<!--", "-->", "--", "<?", "?>", "<!DOCTYPE a [", "]>", "&amp;", "&lt;!--", "&#x", ";", "=", "\"", "'", "/",
            ">",
            "<", "xmlns:a='b' ", "a='b' ", "\u{0}", "\u{FEFF}", "ä", "\r\n", "]", "&e;", "<a/>", "x",
        ]
        var state = UInt64(seed) &* 0x9e37_79b9_7f4a_7c15
        func next() -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33)
        }
        for _ in 0..<200 {
            let encoding = ["", "utf-8", "iso-8859-1", "gbk", "us-ascii", "shift_jis"][next() % 6]
            let declaration = encoding.isEmpty ? "" : "<?xml version='1.0' encoding='\(encoding)'?>"
            let prefix = declaration + (next() % 2 == 0 ? "<rss><channel><item>" : "")
            let text = prefix + (0..<(next() % 60)).map { _ in pieces[next() % pieces.count] }.joined()
            var bytes = Array(text.utf8)
            if next() % 2 == 0, !bytes.isEmpty { bytes[next() % bytes.count] = UInt8(truncatingIfNeeded: next()) }
            if next() % 8 == 0, let wide = text.data(using: .utf16LittleEndian) { bytes = [0xFF, 0xFE] + Array(wide) }
            _ = try? FeedDocument.read(bytes, from: "https://example.com/")
        }
    }
}
