import ArgumentParser
import CampaignFiles
import Foundation

/// The manual pages of section 5, about the files that people write. Each is generated from the shape that its reader
/// uses.
struct FileManualPages {
    struct Page {
        /// The name, such as `fanfare-campaign`.
        var name: String
        var text: String
    }

    let version: String
    /// The folder of this installation's configuration.
    let settings: String

    init(settings: String) {
        version = Fanfare.configuration.version
        self.settings = settings
    }

    var all: [Page] {
        [
            page(
                "fanfare.yaml", "configuration of fanfare(1)", .configuration,
                "\(settings)/fanfare.yaml, or the file that --config or FANFARE_CONFIG names. Each key may also come from the "
                    + "environment, which overrides the file: FANFARE_HTTP_LISTEN for http.listen, "
                    + "FANFARE_APPS_0_KEY_PATH for the first app."
            ),
            page(
                "fanfare-campaign", "campaign files of fanfare(1)", .campaign,
                "A YAML file in \(settings)/campaigns: what is sent, to which devices, and when. `fanfare validate` checks "
                    + "it, `fanfare plan` shows what it would do, `fanfare schema campaign` is for editors."),
            page(
                "fanfare-template", "template files of fanfare(1)", .template,
                "A YAML file in \(settings)/templates: the texts of a push, by language."),
            devices,
        ]
    }

    private func page(_ name: String, _ about: String, _ file: JSONSchema.File, _ summary: String) -> Page {
        let body = [".SH DESCRIPTION", Roff.line(summary), ".PP", Roff.line(file.shape.doc), ".SH KEYS"]
        return Page(name: name, text: text(name, about, body + file.shape.allKeys.flatMap(entry)))
    }

    private func text(_ name: String, _ about: String, _ body: [String]) -> String {
        let head = [
            ".TH \(Roff.text(name.uppercased())) 5 \"\" \"fanfare \(version)\" \"File Formats\"", ".SH NAME",
            "\(Roff.text(name)) \\- \(Roff.text(about))",
        ]
        let others = [".SH \"SEE ALSO\"", ".BR fanfare (1)"]
        return (head + body + others).joined(separator: "\n") + "\n"
    }

    private func entry(_ path: String, _ key: KeyShape) -> [String] {
        let sentences = [
            key.isRequired ? "Required." : nil, key.doc, "Value: \(key.value.summary).",
            key.value.example.isEmpty ? nil : "Example: \(key.value.example)",
        ]
        let line = Roff.line(sentences.compactMap(\.self).joined(separator: " "))
        return [".TP", ".B \(Roff.text(path))", line]
    }

    private var devices: Page {
        let body = [
            ".SH DESCRIPTION",
            Roff.line(
                "The files that `fanfare devices import` reads: CSV with a header, or JSON Lines with these names as "
                    + "keys (a file named *.jsonl). Columns may be in any order. `fanfare devices export` writes the "
                    + "same."),
            ".SH COLUMNS",
        ]
        let columns = DeviceColumns.all.flatMap { column -> [String] in
            let summary = (column.isRequired ? "Required. " : "") + (Self.columns[column.name] ?? "")
            return [".TP", ".B \(Roff.text(column.name))", Roff.line(summary)]
        }
        return Page(
            name: "fanfare-devices", text: text("fanfare-devices", "files of devices for fanfare(1)", body + columns))
    }

    static let columns = [
        "token": "The device token of APNs, in hex.",
        "environment": "production or sandbox.",
        "topic": "The bundle id of the app, with a suffix if the token needs one, such as .voip.",
        "installation_id":
            "The app's own name for this installation. A new token of the same installation replaces the old token.",
        "user_id": "The user of the device, for segments of users, one push per user, and caps per user.",
        "locale": "A language tag such as de-AT.", "time_zone": "A name of the IANA database, such as Europe/Vienna.",
        "country": "A two-letter code, such as AT.", "app_version": "Such as 4.5.1.", "os_version": "Such as 18.1.",
        "model": "The model, such as iPhone16,1.", "alerts_allowed": "The user's permission for alerts: true or false.",
        "registered_at": "The time of registration, such as 2026-11-24T09:00:00Z.",
        "last_seen_at": "The time when the app was last opened, in the same format.",
        "tags": "Words that audiences select by, separated by semicolons; a list in JSON Lines.",
        "attributes": "In CSV a column attributes.NAME for each, in JSON Lines an object with all of them.",
    ]
}
