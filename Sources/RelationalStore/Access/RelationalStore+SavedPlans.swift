package import Model
import Store

extension RelationalStore {
    package func savePlan(_ plan: SavedPlan) async throws -> Int64 {
        let definition = try StoredJSON.text(plan.definition)
        return try await transaction(.durable) { db in
            let id =
                try db.first(
                    """
                    INSERT INTO saved_plan (
                        file, occurrence, is_scheduled, token, digest, definition, shown, made_at, made_by, maker)
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id
                    """, plan.file, plan.occurrence, plan.isScheduled, plan.token, plan.digest, definition, plan.shown,
                    plan.madeAt, plan.madeBy, plan.maker
                ) { try $0.int64(0) } ?? 0
            // One statement each, by its index: a row is as large as its campaign.
            try db.execute("DELETE FROM saved_plan WHERE id <= $1", id - Int64(SavedPlans.countMax))
            try db.execute("DELETE FROM saved_plan WHERE made_at < $1", plan.madeAt - SavedPlans.kept)
            return id
        }
    }

    package func savedPlan(_ id: Int64) async throws -> SavedPlan? {
        try await snapshot(.short) { db in
            try db.first("SELECT \(Self.planColumns) FROM saved_plan WHERE id = $1", id, read: Self.plan)
        }
    }

    package func savedPlan(digest: String) async throws -> SavedPlan? {
        try await snapshot(.short) { db in
            try db.first(
                "SELECT \(Self.planColumns) FROM saved_plan WHERE digest = $1 ORDER BY id DESC LIMIT 1", digest,
                read: Self.plan)
        }
    }

    package func renamePlan(_ id: Int64, to occurrence: String) async throws {
        try await transaction(.quick) { db in
            try db.execute("UPDATE saved_plan SET occurrence = $2 WHERE id = $1", id, occurrence)
        }
    }

    package func savedPlans(file: String?, before id: Int64?, limit: Int) async throws -> [SavedPlan] {
        try await snapshot(.short) { db in
            try db.readable(
                """
                SELECT \(Self.planColumns) FROM saved_plan
                WHERE id < $1 AND ($2 IS NULL OR file = $2) ORDER BY id DESC LIMIT $3
                """, values: [id ?? .max, file, limit], read: Self.plan)
        }
    }

    private static var planColumns: String {
        "id, file, occurrence, is_scheduled, token, digest, definition, shown, made_at, made_by, maker"
    }

    private static func plan(_ row: Session.Fields) throws -> SavedPlan {
        SavedPlan(
            id: try row.int64(0), file: try row.text(1), occurrence: try row.text(2), isScheduled: try row.bool(3),
            token: try row.textOrNil(4), digest: try row.text(5),
            definition: try StoredJSON.value(try row.text(6)), shown: try row.text(7), madeAt: try row.timestamp(8),
            madeBy: try row.text(9), maker: try row.text(10))
    }
}
