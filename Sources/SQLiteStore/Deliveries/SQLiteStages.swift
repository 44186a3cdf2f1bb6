import GRDB
import Model
import Store

/// What a lease asks of a run's stages first.
enum SQLiteStages {
    /// The last stage, where it has begun and none is halted; nil: ``StageGate/pass()`` knows.
    ///
    /// - Parameter count: of the campaign's stages.
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
