package import Model
package import Store
import RelationalStore

extension PostgresDatabase {
    package func runs(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [Run] {
        try await read(.short) { db in
            try ListedRun.page(before: id, limit: limit) { before, limit in
                try RunRow.list(
                    db,
                    """
                    WHERE id < $1 AND ($2::text IS NULL OR campaign = $2) AND (NOT is_test OR $3)
                        AND (cardinality($4::text[]) = 0 OR state = ANY ($4)) AND created_at >= $5 AND created_at < $6
                    ORDER BY id DESC LIMIT $7
                    """, before ?? .max, filter.campaign, filter.includesTests, filter.states.map(\.rawValue),
                    filter.createdFrom?.milliseconds ?? .min, filter.createdBefore?.milliseconds ?? .max, limit)
            }
        }
    }

    package func events(_ filter: EventFilter, before id: Int64?, limit: Int) async throws -> EventPage {
        try await read { db in
            var conditions = ["event.id < $1"]
            var values: [any PostgresValue] = [id ?? .max, limit]
            let asked: [(column: String, test: String, value: (any PostgresValue)?)] = [
                ("run_id", "=", filter.run), ("actor", "=", filter.actor), ("kind", "=", filter.kind),
                ("at", ">=", filter.since),
            ]
            for (column, test, value) in asked {
                guard let value, !value.isNull else { continue }
                values.append(value)
                conditions.append("event.\(column) \(test) $\(values.count)")
            }
            let rows = try db.rows(
                """
                SELECT \(EventLog.columns) FROM event LEFT JOIN run ON run.id = event.run_id
                WHERE \(conditions.joined(separator: " AND ")) ORDER BY event.id DESC LIMIT $2
                """, values: values)
            return EventPage(
                events: try rows.map(EventLog.event),
                next: rows.count == limit ? try rows.last.map { try $0.int64(11) } : nil)
        }
    }
}
