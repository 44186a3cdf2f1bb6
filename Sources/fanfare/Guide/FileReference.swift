import CampaignFiles
import Guide

/// The reference pages of the files that people write, from the shapes that their readers use.
enum FileReference {
    static var campaign: GuidePage {
        page(
            "reference-campaign", "Keys of a campaign file",
            "A campaign file says what is sent, to which devices, and when. `fanfare validate` checks it.", .campaign)
    }

    static var template: GuidePage {
        page(
            "reference-template", "Keys of a template file",
            "A template file has the texts of a push, in each language.", .template)
    }

    static var configuration: GuidePage {
        page(
            "reference-configuration", "Keys of the configuration",
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
        let head = MarkdownReader.blocks(of: "# \(title)\n\n\(about)")
        let columns = ["key", "value", "meaning"].map { [MarkdownSpan.text($0)] }
        return GuidePage(name: name, blocks: head + [.table(head: columns, rows: file.shape.allKeys.map(row))])
    }

    private static func row(_ path: String, _ key: KeyShape) -> [[MarkdownSpan]] {
        let meaning = MarkdownSpan.withCode(key.isRequired ? "Required. \(key.doc)" : key.doc)
        let example = key.value.example
        return [
            [.code(path)], [.text(key.value.summary)],
            example.isEmpty ? meaning : meaning + [.text(" Example: "), .code(example)],
        ]
    }
}
