import Campaigns
import Foundation
import Model

extension String {
    /// The text percent-encoded, for use in an address.
    var inAddress: String { addingPercentEncoding(withAllowedCharacters: Self.plainInAddress) ?? "" }

    /// The unreserved characters of RFC 3986, section 2.3.
    private static let plainInAddress = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    /// The text of an ISO 8601 time for people, in the visitor's zone: `2026-11-22 08:00:12`.
    var shownTime: String {
        let zone = ViewerZone.current
        guard zone != .gmt, count >= 20, let moment = WrittenMoment.parse(self) else { return timeWithoutZone }
        return ViewerZone.text(moment, in: zone)
    }

    /// The same time with its zone, for places that do not name the zone: `2026-11-22 08:00:12 UTC`.
    var shownTimeAndZone: String {
        let zone = ViewerZone.current
        guard zone != .gmt, count >= 20, let moment = WrittenMoment.parse(self) else { return timeWithoutZone + " UTC" }
        return "\(shownTime) \(zone.abbreviation(for: moment.date) ?? zone.identifier)"
    }

    /// A message of the domain as plain text on a page: without commands, and with its times in the visitor's zone.
    var onPage: String { CommandReplacement.replaced(in: self).withShownTimes }

    /// The text with its times of ISO 8601 in the visitor's zone.
    var withShownTimes: String {
        // A regular expression takes long even where it matches nothing.
        guard holds("Z"), holds("T"), holds(":") else { return self }
        return replacing(Self.timeInText) { String($0.output).shownTimeAndZone }
    }

    /// Matches a time of ISO 8601 in UTC within a text.
    static var timeInText: Regex<Substring> { /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/ }

    /// The date and the time of an ISO 8601 text, as they are.
    var timeWithoutZone: String {
        guard count >= 20 else { return self }
        return "\(prefix(10)) \(dropFirst(11).prefix(8))"
    }

    /// The lines of a message. Empty lines are left out.
    var messageLines: [String] { split(separator: "\n").map(String.init) }

    /// The name of an event or a state for people: `run paused` for `run_paused`.
    var withSpaces: String { replacing("_", with: " ") }
}
