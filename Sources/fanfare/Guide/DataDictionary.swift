import Campaigns
import Guide

/// The page with every column of the export and of the store's views.
enum DataDictionary {
    static var page: GuidePage {
        let text = """
            # Data dictionary

            The tables of `fanfare export`, and the views of the store, which hold the same data. A column is never renamed
            and never changes its meaning. New columns come last. `–` means that the table or the view lacks it.

            | kind | in the export | in a view |
            |---|---|---|
            | time | a timestamp in UTC with milliseconds | an integer: milliseconds since 1970-01-01 00:00 UTC |
            | word | a text from a short list; in Parquet a dictionary | a text |
            | decimal | a number with six digits after the point | SQLite: a floating-point number; PostgreSQL: `numeric` |
            | boolean | true or false | SQLite: 1 or 0; PostgreSQL: `boolean` |

            An absent value is NULL; in CSV it is an empty cell. Join tables of the export by `run` and `device`. In the views,
            `run_id` and `id` of `run_view` are the run, `device_id` and `id` of `device_view` are the device.

            \(StoreView.allCases.map(section).joined(separator: "\n\n"))
            """
        return GuidePage(name: "ReferenceExport.md", text: text)
    }

    private static func section(_ view: StoreView) -> String {
        let columns = view.table?.columns ?? []
        let both = view.columns.reduce(into: [String: String]()) { names, column in
            if case .same(let name, let exported) = column { names[exported] = name }
        }
        let rows = columns.map { row(exported: $0.name, viewed: both[$0.name], $0) }
        let more = view.columns.compactMap { column -> String? in
            guard case .own(let column) = column else { return nil }
            return row(exported: nil, viewed: column.name, column)
        }
        let (heading, about) =
            view.table.map { table in
                (
                    "\(table.rawValue) and \(view.rawValue)",
                    "`\(table.rawValue)`: \(table.about)\n\n`\(view.rawValue)`: \(view.about)"
                )
            } ?? (view.rawValue, view.about)
        return """
            ## \(heading)

            \(about)

            | \(view.table?.rawValue ?? "export") | \(view.rawValue) | kind | meaning |
            |---|---|---|---|
            \((rows + more).joined(separator: "\n"))
            """
    }

    private static func row(exported: String?, viewed: String?, _ column: ExportColumn) -> String {
        let kind = column.kind.rawValue + (column.unit.map { " (\($0))" } ?? "")
        let names = [exported, viewed].map { $0.map { "`\($0)`" } ?? "–" }
        return "| \(names[0]) | \(names[1]) | \(kind)\(column.isNullable ? ", may be absent" : "") | \(column.about) |"
    }
}
