import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

/// Names that an earlier version recorded without a limit.
@Suite(.timeLimit(.minutes(5))) struct `Names of older reports` {
    @Test func `hundreds of thousands are read as some dozen, with the most frequent by name`() async throws {
        try await withStore { store in
            try await store.pool.write { db in
                try db.execute(
                    sql: """
                        WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 300000)
                        INSERT INTO feedback_count (
                            run_id, kind, name, variant, locale_index, minute, events, value_micros)
                        SELECT 7, 3, 'name ' || n, -1, -1, 5, 1, 0 FROM number;
                        INSERT INTO feedback_count VALUES (7, 3, 'save', -1, -1, 5, 9, 0), (7, 2, '', 0, 1, 5, 4, 0)
                        """)
            }
            let clock = ContinuousClock()
            var counts: [FeedbackCell] = []
            let time = try await clock.measure { counts = try await store.feedbackCounts(ofRun: 7) }
            #expect(counts.count == 52 && counts.map(\.events).reduce(0, +) == 300_013, "\(time)")
            #expect(
                counts.first
                    == FeedbackCell(
                        kind: .opened, name: "", variant: 0, locale: 1, minute: 5, events: 4, valueMicros: 0))
            #expect(counts.first { $0.name == "save" }?.events == 9)
            #expect(counts.first { $0.name == "other" }?.events == 300_000 - 49)
        }
    }
}
