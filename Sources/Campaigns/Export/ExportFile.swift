import Foundation
import Model
import Parquet

/// The formats of an export.
package enum ExportFormat: String, CaseIterable, Hashable, Sendable {
    case parquet, csv, jsonl
}

/// Writes rows of one table in one format.
final class ExportFile {
    private enum Form {
        case parquet(ParquetWriter)
        case csv
        case jsonLines
    }

    private let table: ExportTable
    private let target: any ExportData.Target
    private let form: Form
    private(set) var rows = 0

    init(_ table: ExportTable, _ format: ExportFormat, version: String, target: any ExportData.Target) throws {
        self.table = table
        self.target = target
        switch format {
        case .parquet:
            var options = ParquetOptions()
            options.createdBy = "Fanfare version \(version)"
            options.metadata = table.columns.map { ("column.\($0.name)", $0.about) }
            form = .parquet(
                try ParquetWriter(
                    columns: table.columns.map(\.parquet), options: options, compress: nil,
                    sink: { try target.write($0) }))
        case .csv:
            form = .csv
            try target.write(Array((CSVLine.text(table.columns.map(\.name)) + "\n").utf8))
        case .jsonl: form = .jsonLines
        }
    }

    func append(_ batch: ExportRows) throws {
        let count = batch.columns.first?.count ?? 0
        rows += count
        guard count > 0 else { return }
        switch form {
        case .parquet(let writer): try writer.write(batch.columns)
        case .csv:
            let lines = (0..<count).map { row in
                let cells = zip(table.columns, batch.columns).map { $1.text(row, $0.kind) ?? "" }
                return CSVLine.text(cells) + "\n"
            }
            try target.write(Array(lines.joined().utf8))
        case .jsonLines:
            let lines = (0..<count).map { row in
                let members = zip(table.columns, batch.columns).map { column, values in
                    "\"\(column.name)\":\(values.json(row, column.kind))"
                }
                return "{\(members.joined(separator: ","))}\n"
            }
            try target.write(Array(lines.joined().utf8))
        }
    }

    func finish() throws {
        if case .parquet(let writer) = form { try writer.finish() }
        try target.finish()
    }
}

extension ParquetValues {
    /// Returns a value as it stands in CSV, or `nil` for no value.
    fileprivate func text(_ row: Int, _ kind: ExportColumn.Kind) -> String? {
        switch self {
        case .booleans(let values): values[row].map { $0 ? "true" : "false" }
        case .int32s(let values): values[row].map(String.init)
        case .int64s(let values): values[row].map { Self.number($0, kind) }
        case .doubles(let values): values[row].map { "\($0)" }
        case .strings(let values): values[row]
        case .bytes: nil
        }
    }

    fileprivate func json(_ row: Int, _ kind: ExportColumn.Kind) -> String {
        guard let text = text(row, kind) else { return "null" }
        switch kind {
        case .text, .word, .time: return JSONEscaping.quoted(text)
        case .integer, .number, .boolean, .decimal: return text
        }
    }

    private static func number(_ value: Int64, _ kind: ExportColumn.Kind) -> String {
        switch kind {
        case .time: return Timestamp(milliseconds: value).iso8601
        case .decimal:
            let (whole, part) = value.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
            let digits = String(part)
            let sign = value < 0 ? "-" : ""
            return "\(sign)\(whole).\(String(repeating: "0", count: 6 - digits.count))\(digits)"
        default: return String(value)
        }
    }
}
