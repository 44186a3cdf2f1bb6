import CampaignFiles
import Foundation
import Model

/// The changes of two people to the same campaign, field by field.
///
/// Fields that only one of them changed have that value. Fields that both changed keep the visitor's value, and are
/// listed with both, so that the visitor decides.
struct ComposerConflict: Sendable {
    struct Row: Sendable {
        var label: String
        var fieldID: String
        var theirs: String
        var yours: String
    }

    /// The fields that only the other person changed, as a list. `nil` if there is none.
    var taken: String?
    /// The fields that both changed.
    var rows: [Row]
    /// The form with both people's changes.
    private(set) var merged: ComposerFields

    /// - Parameters:
    ///   - opened: the fields that the visitor opened. Empty if they are not known: then every difference is listed.
    ///   - theirs: the fields of the files as they are now.
    init(opened: ComposerFields, yours: ComposerFields, theirs: ComposerFields) {
        merged = theirs
        rows = []
        var others: [String] = []
        let names = Set(opened.values.keys).union(yours.values.keys).union(theirs.values.keys).sorted()
        for name in names {
            let (before, now) = (opened[name], theirs[name])
            let own = yours.values[name] ?? before
            if own == now { continue }
            if own == before {
                others.append(ComposerForm.label(of: name))
                continue
            }
            merged[name] = own
            guard opened.values.isEmpty || now != before else { continue }
            rows.append(
                Row(
                    label: ComposerForm.label(of: name), fieldID: ComposerForm.id(name),
                    theirs: now.isEmpty ? "(empty)" : now, yours: own.isEmpty ? "(empty)" : own))
        }
        taken = others.isEmpty ? nil : others.joined(separator: ", ")
    }

    /// The opened fields as a hidden field of the form carries them.
    static func text(of fields: ComposerFields) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let known = fields.values.filter { !$0.value.isEmpty }
        return (try? encoder.encode(known)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Returns the fields of such a text. A text that is none has no fields.
    static func fields(of text: String) -> ComposerFields {
        ComposerFields((try? JSONDecoder().decode([String: String].self, from: Data(text.utf8))) ?? [:])
    }
}

extension ComposerForm {
    private static let labels = [
        "default_locale": "Language for all other devices", "link": "Link", "image": "Picture", "sound": "Sound",
        "badge": "Badge", "category": "Buttons", "thread_id": "Group on the screen", "interruption_level": "Urgency",
        "expires_after": "Time for phones that are off", "who": "Who", "who.expression": "Who: expression",
        "who.seen": "Who: seen within", "who.version": "Who: app version", "who.countries": "Who: countries",
        "guards.max_reach": "Most devices", "guards.min_reach": "Fewest devices", "start": "When", "at.date": "Date",
        "at.time": "Time", "repeat.time": "Time", "repeat.cron": "Repetition", "zone": "Clock",
        "late_by_max": "Longest delay", "feed": "Feed", "feed.every": "Feed: interval", "quiet.from": "Quiet from",
        "quiet.to": "Quiet to", "quiet.policy": "Pushes in quiet hours", "unknown_zone": "Devices without a time zone",
    ]

    /// Returns the label of a field, such as `Title (German)`.
    static func label(of field: String) -> String {
        if let label = labels[field] { return label }
        let parts = field.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard let first = parts.first, let last = parts.last, parts.count > 1 else { return field }
        switch first {
        case "alert":
            return "\(last == "body" ? "Text" : last.capitalized) (\(name(of: parts[1])))"
        case "variables": return "Value of \(parts.dropFirst().joined(separator: "."))"
        case "repeat": return "Days: \(last.capitalized)"
        case "who":
            return "Who: \(parts[1]) \(parts.dropFirst(2).joined(separator: "."))"
        default: return field
        }
    }
}
