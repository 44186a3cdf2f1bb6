import CampaignFiles
import Guide

/// The reference pages of the files that people write, from the shapes that their readers use.
enum FileReference {
    static var campaign: GuidePage {
        page(
            "ReferenceCampaign.md", "Keys of a campaign file",
            "A campaign file says what is sent, to which devices, and when. `fanfare validate` checks it.", .campaign)
    }

    static var template: GuidePage {
        page(
            "ReferenceTemplate.md", "Keys of a template file",
            "A template file has the texts of a push, in each language.", .template)
    }

    static var configuration: GuidePage {
        page(
            "ReferenceConfiguration.md", "Keys of the configuration",
            "The file `fanfare.yaml`. Each key may also come from the environment, which wins: `FANFARE_HTTP_LISTEN` for "
                + "`http.listen`, `FANFARE_APPS_0_KEY_PATH` for the first app.", .configuration)
    }

    static var devices: GuidePage {
        let rows = DeviceColumns.all.map { column in
            (column.name, (column.isRequired ? "Required. " : "") + (FileManualPages.columns[column.name] ?? ""))
        }
        let text = """
            # Columns of a device file

            `fanfare devices import` reads CSV with a header, or JSON Lines with these names as keys.

            \(ReferencePages.table("column", rows))
            """
        return GuidePage(name: "ReferenceDevices.md", text: text)
    }

    private static func page(_ name: String, _ title: String, _ about: String, _ file: JSONSchema.File) -> GuidePage {
        let rows = rows(file.shape, under: "")
        let lines = rows.map { "| `\($0.key)` | \(cell($0.value)) | \(cell($0.explanation)) |" }
        let table = (["| key | value | meaning |", "|---|---|---|"] + lines).joined(separator: "\n")
        return GuidePage(name: name, text: "# \(title)\n\n\(about)\n\n\(table)")
    }

    private struct Row {
        var key: String
        var value: String
        var explanation: String
    }

    /// Returns a row for each key. `apps[].topic` is a key of each element of the list `apps`.
    private static func rows(_ shape: ObjectShape, under prefix: String) -> [Row] {
        shape.keys.flatMap { key -> [Row] in
            let name = prefix + key.name
            let example = key.value.example.isEmpty ? nil : "Example: `\(key.value.example)`"
            let explanation = [key.isRequired ? "Required." : nil, key.doc, example]
            let row = Row(
                key: name, value: key.value.summary, explanation: explanation.compactMap(\.self).joined(separator: " "))
            return [row] + rows(below: key.value, name)
        }
    }

    private static func rows(below value: ValueShape, _ name: String) -> [Row] {
        switch value {
        case .object(let shape): rows(shape, under: "\(name).")
        case .list(let element): rows(below: element, "\(name)[]")
        case .map(_, let value): rows(below: value, "\(name).NAME")
        case .either(let shapes): shapes.flatMap { rows(below: $0, name) }
        case .text, .integer, .number, .boolean, .choice, .anything: []
        }
    }

    /// Returns the text as one cell of a table, with its signs taken as they are.
    private static func cell(_ text: String) -> String {
        var isCode = false
        return String(
            text.split(separator: "\n").joined(separator: " ").flatMap { character -> [Character] in
                if character == "`" { isCode.toggle() }
                return !isCode && "|*[]\\".contains(character) ? ["\\", character] : [character]
            })
    }
}
