import APNsSimulator
import Foundation
import GRDB
import TestSupport
import Testing

/// The questions of the guide: the tables of an export and the views of the store give the same answers.
@Suite(
    .ownThread, .timeLimit(.minutes(10)), .enabled(if: ProcessInfo.processInfo.environment["PARQUET_PYTHON"] != nil))
struct `Questions of an analyst` {
    private static let devices = 240
    private static let runs = 6

    /// A store with the SQL that its shell runs.
    private struct Shell {
        let place: Installation
        /// The database of a cluster. `nil` for a file.
        let postgres: (cluster: PostgresCluster, database: String)?

        /// Changes rows behind the program's back.
        func change(_ sql: String) throws {
            guard let postgres else { return try place.change(sql) }
            try postgres.cluster.sql(sql, database: postgres.database)
        }

        /// Returns the cells of a query's rows, as text.
        func rows(_ sql: String) throws -> [[String]] {
            if let postgres {
                let text = try postgres.cluster.sql(sql, database: postgres.database)
                return text.split(separator: "\n").map { line in
                    line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
                }
            }
            let queue = try place.patientQueue()
            defer { try? queue.close() }
            return try queue.read { db in
                try Row.fetchAll(db, sql: sql).map { row in
                    row.databaseValues.map { value in String.fromDatabaseValue(value) ?? "\(value)" }
                }
            }
        }
    }

    /// Devices with versions of the app and users, and several runs of a campaign with variants and a holdout.
    private static func send(_ place: Installation) throws {
        let versions = ["4.5", "4.6", "4.10", ""]
        let lines = try place.folder.read("devices.csv").split(separator: "\n")
        let changed = lines.dropFirst().enumerated().map { number, line in
            line.replacing(",4.5,", with: ",\(versions[number % 4]),") + (number < 100 ? ",user-\(number / 2)" : ",")
        }
        try place.folder.write(([lines[0] + ",user_id"] + changed).joined(separator: "\n") + "\n", to: "devices.csv")
        try place.importDevices()
        try place.writeWeekend()
        for number in 1...runs {
            let run = try place.fanfare("run", "weekend", "--occurrence", "\(number)", "--yes")
            try #require(run.status == 0, "\(run.errors)")
        }
    }

    /// Opens, switched-off alerts and conversions.
    private static func report(_ place: Installation) throws {
        let references = try place.simulator.log().filter { $0.status == 200 }.map { entry in
            let payload = try #require(entry.payload)
            let object = try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any]
            return try #require((object?["fanfare"] as? [String: Any])?["r"] as? String)
        }
        let id = { (number: Int) in "00000000-0000-4000-8000-" + String(format: "%012d", number) }
        var lines = references.enumerated().filter { $0.offset * 7 % 10 < 4 }.map { number, reference in
            #"{"id":"\#(id(number))","type":"opened","ref":"\#(reference)"}"#
        }
        for number in 0..<devices where number % 3 == 0 {
            let source = #""installation_id":"install-\#(number)","topic":"\#(Installation.topic)""#
            lines.append(#"{"id":"\#(id(10_000 + number))","type":"alerts_off",\#(source)}"#)
            lines.append(#"{"id":"\#(id(20_000 + number))","type":"converted","name":"played","value":2.5,\#(source)}"#)
        }
        try place.folder.write(lines.joined(separator: "\n") + "\n", to: "reports.jsonl")
        let imported = try place.fanfare("events", "import", "reports.jsonl")
        try #require(imported.status == 0, "\(imported.output)\(imported.errors)")
    }

    /// Spreads the runs over weeks and the pushes over hours, and lets some devices be gone, or reached only once. The
    /// later a push, the fewer people open it.
    private static func spread(_ shell: Shell) throws {
        try shell.change(
            """
            UPDATE run SET created_at = created_at - (\(runs + 1) - id) * 259200000,
                started_at = started_at - (\(runs + 1) - id) * 259200000;
            UPDATE delivery SET changed_at = changed_at - (\(runs + 1) - run_id) * 259200000 + device_id % 4 * 3600000
            WHERE state = 1;
            UPDATE feedback_event SET happened_at = happened_at - device_id % 3 * 604800000;
            DELETE FROM feedback_event WHERE kind = 2 AND device_id % 4 = 3 AND device_id % 5 < 3;
            UPDATE delivery SET state = 2, status = 410, reason = 'Unregistered'
            WHERE state = 1 AND run_id = 3 AND (device_id % 28 = 1 OR device_id % 16 = 2 OR device_id % 60 = 3);
            UPDATE delivery SET state = 4, reason = 'late' WHERE state = 1 AND run_id > 1 AND device_id % 11 = 0;
            """)
    }

    @Test(arguments: StoreKind.available)
    func `have the same answers in DuckDB and in the store`(kind: StoreKind) async throws {
        let address = try await kind.address()
        let cluster = kind == .postgres ? try await PostgresCluster.shared : nil
        try await OwnThread.run {
            let place = try Installation(devices: Self.devices, store: address) { $0.logsPayloads = true }
            let database = place.store.firstMatch(of: #//(test_\d+)\?/#).map { String($0.1) }
            let shell = Shell(
                place: place, postgres: cluster.flatMap { cluster in database.map { (cluster, $0) } })
            try Self.send(place)
            try Self.report(place)
            try Self.spread(shell)
            for table in ["runs", "deliveries", "events", "devices"] {
                let written = try place.fanfare("export", table, "-o", "warehouse")
                try #require(written.status == 0, "\(table): \(written.errors)")
            }
            let page = Installation.root.appending(path: "Sources/Guide/Guide.docc/FiveQuestions.md")
            let questions = try String(contentsOf: page, encoding: .utf8).matches(
                of: #/```sql\n-- SQLite and PostgreSQL\n([^`]+)```/#)
            let answers = try questions.map { try shell.rows(String($0.1)) }
            try place.folder.write(
                String(decoding: try JSONEncoder().encode(answers), as: UTF8.self), to: "answers.json")
            let python = ProcessInfo.processInfo.environment["PARQUET_PYTHON"] ?? ""
            let script = Installation.root.appending(path: "Tests/EndToEndTests/five_questions.py").path
            let checked = try Program.run(
                [script, place.folder.path, page.path], in: place.folder, program: URL(fileURLWithPath: python))
            #expect(checked.status == 0 && checked.output.contains("the same"), "\(checked.output)\(checked.errors)")
        }
    }
}
