import Foundation
import Model

/// Parses dates as feeds write them: RFC 822 with years of two or four digits, and RFC 3339.
enum FeedTime {
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    /// The zones of RFC 822 section 5.1. Zones of one letter have no meaning since RFC 1123.
    private static let zoneHours = [
        "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7,
    ]

    /// The maximum length of a date.
    private static let lettersMax = 100

    static func parse(_ text: String) -> Timestamp? {
        guard text.utf8.count <= lettersMax else { return nil }
        return text.first?.isNumber == true && text.contains("-") && text.prefix(5).hasSuffix("-")
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

    /// Returns the offset east of Greenwich, in seconds.
    private static func offset(_ zone: some StringProtocol) -> Int {
        guard let sign = zone.first, sign == "+" || sign == "-", let number = Int(zone.dropFirst()) else {
            return zoneHours[zone.lowercased(), default: 0] * 3600
        }
        return (sign == "-" ? -1 : 1) * (number / 100 * 3600 + number % 100 * 60)
    }
}

/// Converts texts of feeds to plain text. Most feeds contain HTML inside XML.
enum PlainText {
    private static let entities = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " ", "hellip": "…", "ndash": "–",
        "mdash": "—", "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "laquo": "«", "raquo": "»", "copy": "©",
    ]

    /// Returns the text without tags, with entities resolved, and with blanks and line ends reduced to one blank.
    static func of(_ text: String) -> String { bounded(resolved(untagged(Array(text.utf8)))) }

    /// Removes tags and comments. Each byte is read a bounded number of times, even if tags and comments do not end.
    private static func untagged(_ bytes: [UInt8]) -> [UInt8] {
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var position = 0
        var mayHaveCommentEnd = true
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else {
                plain.append(bytes[position])
                position += 1
                continue
            }
            var end: Int?
            if bytes[position...].starts(with: "<!--".utf8) {
                // If no comment end follows this position, none follows a later one.
                if mayHaveCommentEnd { end = commentEnd(in: bytes, from: position + 4) }
                mayHaveCommentEnd = end != nil
            } else {
                end = tagEnd(in: bytes, at: position)
            }
            plain.append(end == nil ? bytes[position] : UInt8(ascii: " "))
            position = end ?? position + 1
        }
        return plain
    }

    private static func commentEnd(in bytes: [UInt8], from start: Int) -> Int? {
        var position = start
        while position + 3 <= bytes.count {
            if bytes[position...].starts(with: "-->".utf8) { return position + 3 }
            position += 1
        }
        return nil
    }

    /// Returns the end of a tag: `<` and a letter, up to `>` without another `<` in between.
    private static func tagEnd(in bytes: [UInt8], at start: Int) -> Int? {
        var position = start + 1
        if position < bytes.count, bytes[position] == UInt8(ascii: "/") { position += 1 }
        guard position < bytes.count, isLetter(bytes[position]) else { return nil }
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: ">") { return position + 1 }
            if bytes[position] == UInt8(ascii: "<") { return nil }
            position += 1
        }
        return nil
    }

    /// The maximum length of a name between `&` and `;`.
    private static let entityBytesMax = 8

    private static func resolved(_ bytes: [UInt8]) -> String {
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var position = 0
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: "&"),
                let end = bytes[(position + 1)...].prefix(entityBytesMax + 1).firstIndex(of: UInt8(ascii: ";")),
                let found = character(String(decoding: bytes[(position + 1)..<end], as: UTF8.self))
            {
                plain += found.utf8
                position = end + 1
            } else {
                plain.append(bytes[position])
                position += 1
            }
        }
        return String(decoding: plain, as: UTF8.self)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    /// Reduces blanks and line ends to one blank, removes control characters, and cuts at ``FeedLimits/textBytesMax``.
    static func bounded(_ text: String) -> String {
        var clean = String.UnicodeScalarView()
        var bytes = 0
        var isBlank = false
        for scalar in text.unicodeScalars {
            if scalar.properties.isWhitespace {
                isBlank = bytes > 0
                continue
            }
            guard scalar.properties.generalCategory != .control else { continue }
            if isBlank { clean.append(" ") }
            clean.append(scalar)
            bytes += scalar.utf8.count + (isBlank ? 1 : 0)
            isBlank = false
            if bytes > FeedLimits.textBytesMax { break }
        }
        guard bytes > FeedLimits.textBytesMax else { return String(clean) }
        bytes = 0
        return String(
            String(clean).prefix {
                bytes += $0.utf8.count
                return bytes <= FeedLimits.textBytesMax
            })
    }

    private static func character(_ name: String) -> String? {
        guard name.hasPrefix("#") else { return entities[name] }
        let digits = name.dropFirst()
        let isHex = digits.first == "x" || digits.first == "X"
        guard digits.allSatisfy({ $0.isASCII && ($0.isHexDigit || $0 == "x" || $0 == "X") }) else { return nil }
        let code = isHex ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return code.flatMap(Unicode.Scalar.init).map { String(Character($0)) }
    }
}

enum WebLink {
    /// Returns an absolute address, or an empty text if the address is not a web address.
    static func absolute(_ text: String, base: URL?) -> String {
        let text = PlainText.bounded(text)
        guard !text.isEmpty, let url = URL(string: text, relativeTo: base)?.absoluteURL,
            ["http", "https"].contains(url.scheme?.lowercased() ?? "")
        else { return "" }
        return text.contains("://") ? text : url.absoluteString
    }
}
