import GRDB
package import Model
package import Store

extension SQLiteFileStore {
    package func runs(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [Run] {
        try await read(.short) { db in
            try ListedRun.page(before: id, limit: limit) { before, limit in
                try RunRow.list(
                    db, "WHERE id IN (\(Self.listedRunsSQL)) ORDER BY id DESC",
                    [
                        "before": before ?? .max, "limit": limit, "campaign": filter.campaign,
                        "tests": filter.includesTests, "states": StoredJSON.array(filter.states.map(\.rawValue)),
                        "any_state": filter.states.isEmpty, "from": filter.createdFrom?.milliseconds ?? .min,
                        "to": filter.createdBefore?.milliseconds ?? .max,
                    ])
            }
        }
    }

    /// Reads nothing but the index, a few dozen bytes for each run.
    static let listedRunsSQL = """
        SELECT id FROM run INDEXED BY run_listing
        WHERE id < :before AND (:campaign IS NULL OR campaign = :campaign) AND is_test <= :tests
            AND (:any_state OR state IN (SELECT value FROM json_each(:states)))
            AND created_at >= :from AND created_at < :to
        ORDER BY id DESC LIMIT :limit
        """

    package func events(_ filter: EventFilter, before id: Int64?, limit: Int) async throws -> EventPage {
        try await read { db in
            var arguments: StatementArguments = ["before": id ?? .max, "limit": limit]
            var conditions = ["event.id < :before"]
            let asked: [(column: String, test: String, value: (any DatabaseValueConvertible)?)] = [
                ("run_id", "=", filter.run), ("actor", "=", filter.actor), ("kind", "=", filter.kind),
                ("at", ">=", filter.since?.milliseconds),
            ]
            for (column, test, value) in asked {
                guard let value else { continue }
                conditions.append("event.\(column) \(test) :\(column)")
                arguments += [column: value]
            }
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT \(Self.eventColumns), event.id FROM event LEFT JOIN run ON run.id = event.run_id
                    WHERE \(conditions.joined(separator: " AND ")) ORDER BY event.id DESC LIMIT :limit
                    """, arguments: arguments)
            return EventPage(
                events: try rows.map(Self.event), next: rows.count == limit ? rows.last.map { $0[11] as Int64 } : nil)
        }
    }
}
