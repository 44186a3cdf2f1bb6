import GRDB
import Model
import Store

/// The buckets of the paces that all senders of the store share, filled and emptied in the transaction that leases.
/// Each start of a machine has its own, since clocks that nobody sets compare within one only.
struct SharedPaces {
    private static let keptMs: Int64 = 7 * 86_400_000

    private let db: Database
    private let clocks: ClockReading
    private let paces: [SharedPace]
    private var buckets: [PaceBucket] = []

    init(_ db: Database, _ request: LeaseRequest) throws {
        self.db = db
        clocks = request.clocks ?? ClockReading(wall: request.now, uptime: .zero, boot: "")
        paces = request.paces
        for pace in paces { buckets.append(try read(pace)) }
    }

    /// What all of them allow together.
    mutating func allowance(limit: Int) -> PaceBucket.Allowance {
        PaceBucket.allowance(of: paces, &buckets, at: clocks.uptime, limit: limit)
    }

    mutating func take(_ count: Int) throws {
        guard count > 0 else { return }
        for index in paces.indices {
            buckets[index].take(count)
            try write(buckets[index], of: paces[index])
        }
    }

    private func read(_ pace: SharedPace) throws -> PaceBucket {
        let row = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT tokens, started_at, filled_at FROM pace_bucket WHERE name = :name AND boot = :boot"),
            arguments: ["name": pace.name, "boot": clocks.boot])
        guard let row else { return PaceBucket(pace.pace, at: clocks.uptime) }
        return PaceBucket(
            tokens: row[0], startedAt: .microseconds(row[1] as Int64), filledAt: .microseconds(row[2] as Int64))
    }

    private func write(_ bucket: PaceBucket, of pace: SharedPace) throws {
        try db.cachedStatement(
            sql: """
                REPLACE INTO pace_bucket (name, boot, tokens, started_at, filled_at, wall_at)
                VALUES (:name, :boot, :tokens, :started, :filled, :wall)
                """
        ).execute(arguments: [
            "name": pace.name, "boot": clocks.boot, "tokens": bucket.tokens,
            "started": bucket.startedAt.wholeMicroseconds, "filled": bucket.filledAt.wholeMicroseconds,
            "wall": clocks.wall.milliseconds,
        ])
        try db.cachedStatement(sql: "DELETE FROM pace_bucket WHERE wall_at < :before")
            .execute(arguments: ["before": clocks.wall.milliseconds - Self.keptMs])
    }
}
