import Campaigns
import Foundation
import Model

/// A notification as a phone's lock screen shows it, with the places where it is cut.
struct PhoneScreen: Sendable {
    /// The number of body lines on a lock screen at the usual letter size, before the notification is pressed.
    private static let bodyLines = 4
    /// The width of a line in narrow letters. Chinese, Japanese and Korean letters and emoji take two units.
    private static let lineUnits = 40
    private static let headingUnits = 34

    /// A text, and the part of it that appears only after the notification is pressed.
    struct Text: Sendable {
        var shown: String
        /// `nil` if the whole text is shown.
        var rest: String?
    }

    /// Returns the screens of every text of a run, in each language and variant.
    static func all(of definition: RunDefinition) throws -> [PhoneScreen] {
        try PreviewNotifications.all(definition).notifications
            .map { PhoneScreen($0, topic: definition.campaign.topic) }
    }

    var label: String
    /// The language, from which browsers choose fonts, hyphens and voices.
    var lang: String?
    var appName: String
    var initial: String
    var headline: Text?
    var subhead: Text?
    var message: Text?
    /// The address of the picture that the app's extension loads. `nil` if there is none.
    var picture: String?
    /// The category whose buttons the app shows below the opened notification. `nil` if there is none.
    var buttons: String?
    /// The texts that the app itself looks up, such as `loc-key NEW_EPISODE`.
    var lookedUp: [String]
    var isSilent: Bool
    var isCut: Bool
    var bytes: String
    var isTooLarge: Bool
    var payload: String
    /// Remarks about the device.
    var remarks: [String]

    /// - Parameters:
    ///   - device: the device whose data is used, in words.
    init(
        _ notification: PreviewResult.Notification, topic: String, device: String? = nil,
        remarks: [String] = []
    ) {
        let locale = notification.locale
        label = [device, notification.variant.map { "variant \($0)" }, locale == "all" ? "every language" : locale]
            .compactMap(\.self).joined(separator: ", ")
        lang = locale == "all" ? nil : locale
        let last = topic.split(separator: ".").last.map(String.init) ?? topic
        appName = last.prefix(1).uppercased() + last.dropFirst()
        initial = String(appName.prefix(1))
        headline = notification.title.map { Self.cut($0, lines: 1, units: Self.headingUnits) }
        subhead = notification.subtitle.map { Self.cut($0, lines: 1, units: Self.headingUnits) }
        message = notification.body.map { Self.cut($0, lines: Self.bodyLines, units: Self.lineUnits) }
        lookedUp = notification.lookedUp.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        (picture, buttons) = (notification.picture, notification.category)
        isSilent = !notification.isVisible
        isCut = [headline, subhead, message].contains { $0?.rest != nil }
        let most = max(notification.payloadMaxBytes, notification.bytes)
        isTooLarge = most > notification.limitBytes
        bytes =
            "\(notification.bytes.grouped) of \(notification.limitBytes.grouped) bytes"
            + (most > notification.bytes ? ", at most \(most.grouped)" : "")
        payload = notification.payload
        self.remarks = remarks
    }

    /// Cuts the text at the end of the last visible line, at a word if possible.
    static func cut(_ text: String, lines: Int, units: Int) -> Text {
        var line = 1
        var width = 0
        var lastBlank: String.Index?
        for index in text.indices {
            let character = text[index]
            if character.isNewline {
                line += 1
                width = 0
                lastBlank = nil
            } else {
                width += Self.units(of: character)
                if width > units {
                    line += 1
                    // The word that does not fit begins the next line.
                    width =
                        lastBlank.map { text[text.index(after: $0)...index].reduce(0) { $0 + Self.units(of: $1) } }
                        ?? Self.units(of: character)
                    if line > lines { return split(text, at: lastBlank.map(text.index(after:)) ?? index) }
                    lastBlank = nil
                }
                if character.isWhitespace { lastBlank = index }
            }
            if line > lines { return split(text, at: index) }
        }
        return Text(shown: text)
    }

    private static func split(_ text: String, at index: String.Index) -> Text {
        Text(shown: String(text[..<index]), rest: String(text[index...]))
    }

    private static func units(of character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE4F, 0xFF00...0xFF60,
            0x1F000...0x1FAFF:
            return 2
        default: return 1
        }
    }
}
