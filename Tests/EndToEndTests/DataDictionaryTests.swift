import Foundation
import Guide
import GRDB
import TestSupport
import Testing

@testable import fanfare

/// The page with the columns, against the views of a database and the files of an export.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The data dictionary` {
    /// A row of the page: the names in the export and in the view, and the meaning.
    private struct Row: Hashable {
        var exported: String?
        var viewed: String?
        var kind: String
        var meaning: String

        init(_ cells: [String]) {
            let name = { (cell: String) in cell == "–" ? nil : cell }
            (exported, viewed) = (name(cells[0]), name(cells[1]))
            (kind, meaning) = (cells[2], cells[3])
        }
    }

    /// The rows of each table of the page, by the name of the view.
    private func rows() throws -> [String: [Row]] {
        let page = try #require(Guide.complete.page(named: "reference-export"))
        var rows: [String: [Row]] = [:]
        for case .table(let head, let lines) in page.blocks where head.count == 4 {
            rows[head[1].plain] = lines.map { Row($0.map(\.plain)) }
        }
        return rows
    }

    /// Returns the columns of all views of a store, by the name of the view.
    private static func views(of place: Installation, _ cluster: PostgresCluster?) throws -> [String: Set<String>] {
        var names: [(view: String, column: String)]
        if let cluster {
            let database = try #require(place.store.firstMatch(of: #//(test_\d+)\?/#)).1
            let text = try cluster.sql(
                """
                SELECT table_name, column_name FROM information_schema.columns
                JOIN information_schema.views USING (table_schema, table_name) WHERE table_schema = 'public'
                """, database: String(database))
            names = text.split(separator: "\n").map { line in
                let words = line.split(separator: "|").map(String.init)
                return (words[0], words[1])
            }
        } else {
            let queue = try place.patientQueue()
            let sql = """
                SELECT view.name AS view, info.name AS name
                FROM sqlite_schema AS view, pragma_table_info(view.name) AS info WHERE view.type = 'view'
                """
            names = try queue.read { db in try GRDB.Row.fetchAll(db, sql: sql).map { ($0["view"], $0["name"]) } }
            try queue.close()
        }
        return Dictionary(grouping: names, by: \.view).mapValues { Set($0.map(\.column)) }
    }

    @Test(arguments: StoreKind.available)
    func `describes every column of every view, and no other`(kind: StoreKind) async throws {
        let address = try await kind.address()
        let cluster = kind == .postgres ? try await PostgresCluster.shared : nil
        let views = try await OwnThread.run {
            let place = try Installation(devices: 1, store: address)
            try place.importDevices()
            return try Self.views(of: place, cluster)
        }
        let rows = try rows()
        #expect(views.count == 7)
        #expect(rows.mapValues { Set($0.compactMap(\.viewed)) } == views)
        for (view, rows) in rows {
            #expect(rows.count > 1 && rows.allSatisfy { !$0.kind.isEmpty && $0.meaning.hasSuffix(".") }, "\(view)")
            #expect(Set(rows.compactMap(\.viewed)).count == rows.compactMap(\.viewed).count, "\(view)")
        }
    }

    @Test func `describes every column of the export, and no other`() throws {
        let place = try Installation(devices: 3)
        try place.importDevices()
        try #require(try place.run("new-podcast", "--occurrence", "1").status == 0)
        for table in ["runs", "deliveries", "devices", "timeline"] {
            let written = try place.fanfare("export", table, "--format", "csv", "-o", "tables")
            try #require(written.status == 0, "\(written.errors)")
        }
        let rows = try rows()
        let files = try FileManager.default.subpathsOfDirectory(atPath: place.folder.path + "/tables")
        for (view, table) in [
            ("run_view", "runs"), ("delivery_view", "deliveries"), ("device_view", "devices"),
            ("timeline_view", "timeline"),
        ] {
            let file = try #require(files.first { $0.hasPrefix(table) && $0.hasSuffix(".csv") })
            let head = try place.folder.read("tables/" + file).prefix { $0 != "\n" }
            #expect(rows[view]?.compactMap(\.exported).joined(separator: ",") == String(head), "\(table)")
        }
    }
}
