import Foundation

extension String {
    /// Foreign text in an address of ours.
    var inAddress: String { addingPercentEncoding(withAllowedCharacters: Self.plainInAddress) ?? "" }

    /// RFC 3986, section 2.3.
    private static let plainInAddress = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    /// A moment as results have it (ISO 8601, UTC), for people: `2026-11-22 08:00:12`. All times of the pages are in UTC.
    var shownTime: String {
        guard count >= 20 else { return self }
        return "\(prefix(10)) \(dropFirst(11).prefix(8))"
    }

    /// The same where nothing beside it says of which zone it is: `2026-11-22 08:00:12 UTC`.
    var shownTimeAndZone: String { shownTime + " UTC" }

    /// What an event or a state is called, for people: `run_paused` as `run paused`.
    var inWords: String { replacing("_", with: " ") }
}
