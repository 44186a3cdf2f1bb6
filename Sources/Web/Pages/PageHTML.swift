import Campaigns
import Foundation
import Model

/// A text with markup of our own, for a page's template: `{{#at}}{{{html}}}{{/at}}`. All foreign text in it is escaped.
struct PageHTML: Hashable, Sendable {
    let html: String

    /// A time in the visitor's zone, with the time in UTC as a tooltip.
    ///
    /// - Parameter iso: a time in ISO 8601 and UTC, such as `2026-11-22T08:00:12Z`. Any other text stays as it is.
    init(time iso: String) { html = Self.element(iso) ?? iso.escapedHTML }

    /// A chart with its table.
    init(chart: Chart) { html = chart.html }

    /// A message of the domain: without commands, with its times in the visitor's zone, and with links to the pages
    /// that it names.
    init(message: String) {
        var text = CommandReplacement.replaced(in: message).escapedHTML
        // A page shows a hundred messages, and a regular expression takes long even where it matches nothing.
        if text.holds("Z"), text.holds("T"), text.holds(":") {
            text = text.replacing(String.timeInText) { match in
                Self.element(String(match.output)) ?? String(match.output)
            }
        }
        if text.holds(", start ") {
            text = text.replacing(/campaign ((?>[^\s,&;<>]+)), start (\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?),/) { match in
                let address = NextStartPage.address(String(match.1), String(match.2)).escapedHTML
                return "campaign <a href=\"\(address)\">\(match.1), start \(match.2)</a>,"
            }
        }
        // Records name accounts with the way in which they signed in.
        if text.holds("token:") || text.holds("proxy:") {
            text = text.replacing(/\b(?:token|proxy):([\w.@-]+)/) { String($0.1) }
        }
        if text.holds("the page of run ") {
            text = text.replacing(/the page of run (\d+)/) { "<a href=\"/runs/\($0.1)\">the page of run \($0.1)</a>" }
        }
        if text.holds(" page") {
            text = text.replacing(/the ([A-Z][a-z]+) page/) { match in
                Self.pages[String(match.1)].map { "the <a href=\"\($0)\">\(match.1)</a> page" } ?? String(match.0)
            }
        }
        html = text
    }

    private static let pages = [
        "Broadcasts": "/", "Campaigns": "/campaigns", "Calendar": "/calendar", "Approvals": "/approvals",
        "People": "/people", "Stop": "/stops", "Audit": "/audit", "Health": "/health",
    ]

    private static func element(_ iso: String) -> String? {
        guard let moment = WrittenMoment.parse(iso) else { return nil }
        let (utc, shown) = (ViewerZone.text(moment, in: .gmt), ViewerZone.text(moment, in: ViewerZone.current))
        return "<time datetime=\"\(iso.escapedHTML)\" title=\"\(utc) UTC\">\(shown)</time>"
    }
}

/// The zone in which a page shows its times: the visitor's, or UTC if it is not known.
enum ViewerZone {
    @TaskLocal static var current: TimeZone = .gmt

    /// The cookie that carries the zone's name.
    static let cookie = "zone"
    private static let nameBytesMax = 64

    /// Returns the zone of this name, as in `Europe/Berlin`, or `nil` if there is none.
    static func named(_ name: String) -> TimeZone? {
        guard name.utf8.count <= nameBytesMax, name.utf8.allSatisfy(isInName) else { return nil }
        return ["UTC", "GMT", "Etc/UTC"].contains(name) ? .gmt : TimeZone(identifier: name)
    }

    private static func isInName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "/"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "+"): true
        default: false
        }
    }

    /// The name of a zone, for people.
    static func name(of zone: TimeZone) -> String { zone == .gmt ? "UTC" : zone.identifier }

    /// Returns a time such as `2026-11-22 08:00:12`.
    static func text(_ moment: Timestamp, in zone: TimeZone) -> String {
        (moment + .seconds(zone.secondsFromGMT(for: moment.date))).iso8601.timeWithoutZone
    }
}
