import Foundation
import Model

/// Dates as feeds write them: RFC 822 with years of two or four digits, and RFC 3339.
enum FeedTime {
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    /// RFC 822 section 5.1; the zones of one letter mean nothing since RFC 1123.
    private static let zoneHours = [
        "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    ]

    static func parse(_ text: String) -> Timestamp? {
        text.first?.isNumber == true && text.contains("-") && text.prefix(5).hasSuffix("-")
            ? internet(text) : mail(text)
    }

    private static func internet(_ text: String) -> Timestamp? {
        guard
            let parts = text.wholeMatch(
                of: /([0-9-]{10})([Tt ]([0-9:]{5,8})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?/)
        else { return nil }
        let date = parts.output.1.split(separator: "-").compactMap { Int($0) }
        guard date.count == 3 else { return nil }
        return moment(
            (date[0], date[1], date[2]), time: parts.output.3 ?? "00:00",
            zone: parts.output.5?.replacing(":", with: "") ?? "Z")
    }

    private static func mail(_ text: String) -> Timestamp? {
        let pattern =
            /(?:[A-Za-z]+\.?,? +)?([0-9]{1,2}) ([A-Za-z]{3})[a-z]*\.? ([0-9]{2}|[0-9]{4})(?: ([0-9:]{4,8}))?(?: ([A-Za-z]+|[+-][0-9]{4}))?(?: \(.*\))?/
        guard let parts = text.wholeMatch(of: pattern), let day = Int(parts.output.1),
            let month = months.firstIndex(of: parts.output.2.lowercased()), let written = Int(parts.output.3)
        else { return nil }
        let year = written > 99 ? written : written < 70 ? 2000 + written : 1900 + written
        return moment(
            (year, month + 1, day), time: parts.output.4 ?? "00:00", zone: String(parts.output.5 ?? "GMT"))
    }

    private static func moment(
        _ date: (year: Int, month: Int, day: Int), time: Substring, zone: some StringProtocol
    ) -> Timestamp? {
        let numbers = time.split(separator: ":").compactMap { Int($0) }
        guard numbers.count >= 2, (0..<24).contains(numbers[0]), (0..<60).contains(numbers[1]) else { return nil }
        var parts = DateComponents(calendar: Calendar(identifier: .gregorian), timeZone: .gmt)
        (parts.year, parts.month, parts.day) = (date.year, date.month, date.day)
        (parts.hour, parts.minute, parts.second) = (numbers[0], numbers[1], min(59, numbers.count > 2 ? numbers[2] : 0))
        guard parts.isValidDate, let local = parts.date else { return nil }
        return Timestamp(local) - .seconds(offset(zone))
    }

    /// East of Greenwich, in seconds.
    private static func offset(_ zone: some StringProtocol) -> Int {
        guard let sign = zone.first, sign == "+" || sign == "-", let number = Int(zone.dropFirst()) else {
            return zoneHours[zone.lowercased(), default: 0] * 3600
        }
        return (sign == "-" ? -1 : 1) * (number / 100 * 3600 + number % 100 * 60)
    }
}
