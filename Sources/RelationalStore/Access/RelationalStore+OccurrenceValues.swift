package import Model
package import Store

extension RelationalStore {
    package func giveValues(_ values: OccurrenceValues, by actor: Actor) async throws -> GivenValues {
        let variables = try StoredJSON.text(values.variables)
        return try await transaction(.durable) { db in
            // The lock lets one transaction at a time count the rows. There are only a few changes per day.
            try db.lock(table: "occurrence_values")
            let run = try db.first(
                "SELECT id FROM run WHERE campaign = $1 AND occurrence = $2", values.campaign, values.occurrence
            ) { try $0.int64(0) }
            if let run { return .started(run) }
            try db.execute(
                "DELETE FROM occurrence_values WHERE starts_at < $1", values.givenAt - GivenValues.kept)
            let others =
                try db.first(
                    "SELECT count(*) FROM occurrence_values WHERE NOT (campaign = $1 AND occurrence = $2)",
                    values.campaign, values.occurrence
                ) { try $0.int(0) } ?? 0
            guard others < GivenValues.countMax else { return .tooMany }
            try db.execute(
                """
                INSERT INTO occurrence_values (
                    campaign, occurrence, starts_at, variables, given_at, given_by, giver)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT (campaign, occurrence) DO UPDATE SET
                    starts_at = excluded.starts_at, variables = excluded.variables, given_at = excluded.given_at,
                    given_by = excluded.given_by, giver = excluded.giver
                """, values.campaign, values.occurrence, values.startsAt, variables, values.givenAt, values.givenBy,
                values.giver)
            let names = values.variables.keys.sorted().joined(separator: ", ")
            try db.record(
                .valuesGiven, by: actor, "\(values.campaign), \(values.occurrence): \(names)", now: values.givenAt)
            return .stored
        }
    }

    package func removeValues(
        campaign: String, occurrence: String, by actor: Actor, now: Timestamp
    ) async throws -> Bool {
        try await transaction(.durable) { db in
            let removed = try db.execute(
                "DELETE FROM occurrence_values WHERE campaign = $1 AND occurrence = $2", campaign, occurrence)
            guard removed > 0 else { return false }
            try db.record(.valuesRemoved, by: actor, "\(campaign), \(occurrence)", now: now)
            return true
        }
    }

    package func values(campaign: String, occurrence: String) async throws -> OccurrenceValues? {
        try await snapshot(.short) { db in
            try db.first(
                """
                SELECT \(Self.valuesColumns) FROM occurrence_values WHERE campaign = $1 AND occurrence = $2
                """, campaign, occurrence, read: Self.values)
        }
    }

    package func values(startingFrom moment: Timestamp) async throws -> [OccurrenceValues] {
        try await snapshot(.short) { db in
            try db.all(
                """
                SELECT \(Self.valuesColumns) FROM occurrence_values WHERE starts_at >= $1
                ORDER BY starts_at, campaign
                """, moment, read: Self.values)
        }
    }

    private static var valuesColumns: String {
        "campaign, occurrence, starts_at, variables, given_at, given_by, giver"
    }

    private static func values(_ row: Session.Fields) throws -> OccurrenceValues {
        OccurrenceValues(
            campaign: try row.text(0), occurrence: try row.text(1), startsAt: try row.timestamp(2),
            variables: try StoredJSON.value(try row.text(3)), givenAt: try row.timestamp(4),
            givenBy: try row.text(5), giver: try row.text(6))
    }
}
