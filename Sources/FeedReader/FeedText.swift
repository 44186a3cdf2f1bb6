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

/// Texts as people read them, of texts that may be HTML inside XML, as most feeds have it.
enum PlainText {
    private static let entities = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " ", "hellip": "…", "ndash": "–",
        "mdash": "—", "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "laquo": "«", "raquo": "»", "copy": "©",
    ]

    /// Without tags, with entities resolved, blanks and line ends as one blank.
    static func of(_ text: String) -> String {
        let untagged = text.replacing(/<\/?[A-Za-z][^<>]*>|<!--.*?-->/, with: " ")
        let resolved = untagged.replacing(/&(#[xX]?[0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});/) { match in
            character(String(match.output.1)) ?? String(match.output.0)
        }
        return bounded(resolved)
    }

    /// Blanks and line ends as one blank, control characters left out, cut at ``FeedDocument/textBytesMax``.
    static func bounded(_ text: String) -> String {
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        var clean = words.filter { !$0.unicodeScalars.contains { $0.properties.generalCategory == .control } }
        guard clean.utf8.count > FeedDocument.textBytesMax else { return clean }
        var bytes = 0
        let kept = clean.prefix {
            bytes += $0.utf8.count
            return bytes <= FeedDocument.textBytesMax
        }
        clean = String(kept)
        return clean
    }

    private static func character(_ name: String) -> String? {
        guard name.hasPrefix("#") else { return entities[name] }
        let digits = name.dropFirst()
        let isHex = digits.first == "x" || digits.first == "X"
        let code = isHex ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return code.flatMap(Unicode.Scalar.init).map { String(Character($0)) }
    }
}

enum WebLink {
    /// An absolute address; empty for anything that is not of the web.
    static func absolute(_ text: String, base: URL?) -> String {
        let text = PlainText.bounded(text)
        guard !text.isEmpty, let url = URL(string: text, relativeTo: base)?.absoluteURL,
            ["http", "https"].contains(url.scheme?.lowercased() ?? "")
        else { return "" }
        return text.contains("://") ? text : url.absoluteString
    }
}
