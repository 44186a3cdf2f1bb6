import Campaigns
import Foundation
import Model
import Mustache
import TestSupport
import Testing

@testable import Web

/// Foreign text is never markup in a page, and no redirect leads to another server.
@Suite(.timeLimit(.minutes(10)))
struct EscapingTests {
    /// A model in which every name has the same text. As a section, a name is true unless it is hidden.
    /// It is a class, because ``TemplateModel`` replaces a struct by its fields.
    private final class Everything: MustacheParent, CustomStringConvertible {
        /// Names of markup that this program creates. Templates insert it with three braces.
        static let markup: Set<String> = ["sum", "style", "html", "charts", "reasonTable", "sliceTables"]

        let description: String
        private let hidden: Set<String>

        init(description: String, hidden: Set<String>) {
            self.description = description
            self.hidden = hidden
        }

        func child(named name: String) -> Any? {
            if Self.markup.contains(name) { return "" }
            return hidden.contains(name) ? false : self
        }
    }

    /// Escapes by the rules of HTML, scalar by scalar, and without code of the program.
    private static func expected(_ text: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "<": escaped += "&lt;".unicodeScalars
            case ">": escaped += "&gt;".unicodeScalars
            case "&": escaped += "&amp;".unicodeScalars
            case "\"": escaped += "&quot;".unicodeScalars
            case "'": escaped += "&#39;".unicodeScalars
            case "\t", "\n", "\r": escaped.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0x7F: break
            case "\u{FFFE}", "\u{FFFF}": break
            default: escaped.append(scalar)
            }
        }
        return String(escaped)
    }

    private static let hostile = OddScalars.around("<b x=\"y\">&'").joined() + "\u{FFFE}\u{FFFF}"

    @Test func `each special character is escaped beside every kind of scalar`() {
        for special in ["<", ">", "&", "\"", "'"] {
            for text in OddScalars.around(special) {
                #expect(Array(text.escapedHTML.utf8) == Array(Self.expected(text).utf8), "\(text.unicodeScalars)")
            }
        }
        #expect(Array(Self.hostile.escapedHTML.utf8) == Array(Self.expected(Self.hostile).utf8))
        #expect("plain".escapedHTML == "plain" && "".escapedHTML.isEmpty)
    }

    @Test(arguments: PageTemplate.allCases)
    func `every placeholder of a template is escaped`(template: PageTemplate) throws {
        let inverted = PageTemplate.texts.values.flatMap { text in
            text.matches(of: /\{\{\^([^}]+)\}\}/).map { String($0.1) }
        }
        let stand = "PLACEHOLDERTEXT"
        var places = 0
        for hidden in [[], Set(inverted)] {
            let plain = try template.render(Everything(description: stand, hidden: hidden))
            let odd = try template.render(Everything(description: Self.hostile, hidden: hidden))
            let wanted = plain.replacingOccurrences(of: stand, with: Self.expected(Self.hostile))
            #expect(Array(odd.utf8) == Array(wanted.utf8), "\(template) with \(hidden.count) names hidden")
            places += plain.components(separatedBy: stand).count - 1
        }
        let hasPlaces = PageTemplate.texts[template.rawValue, default: ""].contains(/\{\{[a-zA-Z.]/)
        #expect(places > 0 || !hasPlaces)
    }

    @Test func `only the program's own markup is in three braces`() {
        let raw = PageTemplate.texts.values.flatMap { text in
            text.matches(of: /\{\{\{\s*([^}\s]+)\s*\}\}\}|\{\{&\s*([^}\s]+)\s*\}\}/).map { String($0.1 ?? $0.2 ?? "") }
        }
        #expect(Set(raw) == Everything.markup)
    }

    @Test func `a chart escapes all its texts`() {
        let table = ChartTable(columns: [Self.hostile], rows: [[Self.hostile, Self.hostile]])
        let chart = Chart(
            id: "c", title: Self.hostile, summary: Self.hostile, height: 1, drawing: "<g/>",
            legend: [LegendEntry(style: "s", name: Self.hostile)], note: Self.hostile, table: table)
        #expect(chart.html.unicodeScalars.count { $0 == "<" } == 34)
        #expect(!chart.html.utf8.contains(0x1B))
    }

    @Test func `a sample of the metrics is one line, and its label reads back unchanged`() {
        for special in ["\\", "\n", "\"", "}"] {
            for value in OddScalars.around(special) {
                var metrics = PrometheusText()
                metrics.heading("runs", type: "gauge", help: value)
                metrics.sample("runs", [MetricLabel("campaign", value)], 1)
                let lines = metrics.text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
                #expect(lines.count == 4 && lines[3].isEmpty, "\(value.unicodeScalars)")
                let (begin, end) = (Array("runs{campaign=\"".utf8), Array("\"} 1".utf8))
                #expect(lines[2].starts(with: begin) && Array(lines[2].suffix(end.count)) == end)
                let inner = Array(lines[2].dropFirst(begin.count).dropLast(end.count))
                #expect(Self.unescaped(inner) == Array(value.utf8), "\(value.unicodeScalars)")
            }
        }
    }

    /// Returns a label's value as Prometheus reads it, by bytes. `nil` if a quote ends the value early.
    private static func unescaped(_ bytes: [UInt8]) -> [UInt8]? {
        var (text, rest): ([UInt8], ArraySlice<UInt8>) = ([], bytes[...])
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return nil }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                continue
            }
            guard let next = rest.popFirst() else { return nil }
            text.append(next == UInt8(ascii: "n") ? UInt8(ascii: "\n") : next)
        }
        return text
    }

    /// A reader of events ends a line at each CR and LF.
    @Test func `an event is one line of data, whatever its text`() throws {
        for special in ["\r", "\n", "\r\n", "\n\nevent: end\ndata: ", "\"", "\\"] {
            for text in OddScalars.around(special) {
                let line = try ResultJSON.line([text: [text]])
                #expect(!line.utf8.contains { $0 == 0x0A || $0 == 0x0D }, "\(text.unicodeScalars)")
                let read = try ResultJSON.value([String: [String]].self, from: line)
                #expect(read.values.first.map { $0.map { Array($0.utf8) } } == [Array(text.utf8)])
            }
        }
    }

    // MARK: Addresses

    @Test(arguments: [
        "//evil.example", "/\\evil.example", "/\t/evil.example", "\t//evil.example", "/\n/evil.example", "/\r//x",
        "/\u{FE0F}/evil.example", "//\u{FE0F}evil.example", "/\u{0}/evil.example", "/\u{0600}/x",
        "https://evil.example",
        "javascript:alert(1)", "", "evil", " /", "/ /", "/a\\b", "/é", "\u{0600}/x", "/\u{0301}/evil.example",
        "/" + String(repeating: "a", count: 9000),
    ])
    func `an address that may lead to another server is refused`(address: String) {
        #expect(PageRequest.ownAddress(address) == nil)
    }

    @Test(arguments: [
        "/", "/runs/7", "/campaigns/caf%C3%A9?saved=campaign-caf%C3%A9#campaign-caf%C3%A9", "/a//b", "/?q=//x",
    ])
    func `an address of this server is kept`(address: String) {
        #expect(PageRequest.ownAddress(address) == address)
    }

    @Test func `no scalar between two slashes leads elsewhere`() {
        for odd in OddScalars.around("") where !odd.utf8.allSatisfy({ UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 }) {
            #expect(PageRequest.ownAddress("/\(odd)/evil.example") == nil, "\(odd.unicodeScalars)")
        }
    }

    @Test func `pages and sign-in show a hostile address as text and redirect to none`() async throws {
        try await WebScene.with { scene in
            let find = "zz%D8%80%22%20%D8%80%3E%D8%80%3Cdialog%20open%D8%80%3E"
            let page = try await scene.page("/devices?find=\(find)")
            #expect(page.text.utf8.firstRange(of: "<dialog".utf8) == nil)
            #expect(page.text.utf8.firstRange(of: "&lt;dialog open".utf8) != nil)
            let form = try await scene.ask(
                "GET", "/sign-in?next=/%D8%80%22%D8%80%3E%D8%80%3Cmeta%20http-equiv=refresh%3E")
            #expect(form.status == 200 && form.text.utf8.firstRange(of: "<meta http".utf8) == nil)
            for next in ["/\t/evil.example/x", "//\u{FE0F}evil.example", "/\u{0600}/x"] {
                let fields = ["token": scene.secrets.secret(of: .author), "next": next]
                let signedIn = try await scene.page("/sign-in", form: fields)
                #expect(signedIn.status == 303 && signedIn.header("location") == "/")
            }
        }
    }
}

extension String.UTF8View {
    fileprivate func firstRange(of other: String.UTF8View) -> Int? {
        let (own, part) = (Array(self), Array(other))
        return own.indices.first { own[$0...].starts(with: part) }
    }
}
