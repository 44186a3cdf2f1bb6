import GRDB
import Model
import Store

/// The queries about a run's stages that a lease runs first.
enum SQLiteStages {
    /// Returns the last stage if it has begun and no stage is halted. Returns `nil` if ``StageController/permit()`` has
    /// to decide.
    ///
    /// - Parameter count: the number of the campaign's stages.
    static func lastBegun(_ db: Database, run: Int64, of count: Int) throws -> Int? {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT max(stage), count(*) > 1 AND count(*) = :count AND count(opened_at) = :count,
                        count(*) FILTER (WHERE released_by IS NULL
                            AND (after_go IS NOT NULL OR json_extract(decision, '$.verdict') <> :go))
                    FROM run_stage WHERE run_id = :run
                    """), arguments: ["run": run, "count": count, "go": StageVerdict.go.rawValue])
        guard let row, row[1], (row[2] as Int) == 0 else { return nil }
        return row[0]
    }
}
