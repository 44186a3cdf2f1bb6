import Model
import Store

/// The buckets of the paces that all senders of the store share, filled and emptied in the transaction that leases.
/// Each start of a machine has its own, since clocks that nobody sets compare within one only.
struct SharedPaces {
    private static let keptMs: Int64 = 7 * 86_400_000

    private let db: PostgresSession
    private let clocks: ClockReading
    private let paces: [SharedPace]
    private var buckets: [PaceBucket] = []

    /// From here to the end of the transaction nobody else takes from the buckets.
    init(_ db: PostgresSession, _ request: LeaseRequest) throws {
        self.db = db
        clocks = request.clocks ?? ClockReading(wall: request.now, uptime: .zero, boot: "")
        paces = request.paces.sorted { $0.name < $1.name }
        for pace in paces { buckets.append(try read(pace)) }
    }

    /// What all of them allow together.
    mutating func allowance(limit: Int) -> PaceBucket.Allowance {
        var limit = limit
        var wait: Duration?
        for index in paces.indices {
            switch buckets[index].allowance(of: paces[index].pace, at: clocks.uptime, limit: limit) {
            case .now(let count): limit = min(limit, count)
            case .after(let time): wait = max(wait ?? .zero, time)
            }
        }
        return wait.map { .after($0) } ?? .now(limit)
    }

    mutating func take(_ count: Int) throws {
        guard count > 0, !paces.isEmpty else { return }
        for index in paces.indices {
            buckets[index].take(count)
            try write(buckets[index], of: paces[index])
        }
        try db.execute(
            "DELETE FROM pace_bucket WHERE wall_at < $1", clocks.wall.milliseconds - Self.keptMs)
    }

    /// Made where there is none, so that there is a row to lock.
    private func read(_ pace: SharedPace) throws -> PaceBucket {
        let new = PaceBucket(pace.pace, at: clocks.uptime)
        let kept = try db.first(
            """
            INSERT INTO pace_bucket (name, boot, tokens, started_at, filled_at, wall_at) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (name, boot) DO UPDATE SET name = pace_bucket.name
            RETURNING tokens, started_at, filled_at
            """, pace.name, clocks.boot, new.tokens, new.startedAt.wholeMicroseconds, new.filledAt.wholeMicroseconds,
            clocks.wall
        ) { row in
            PaceBucket(
                tokens: try row.double(0), startedAt: .microseconds(try row.int64(1)),
                filledAt: .microseconds(try row.int64(2)))
        }
        return kept ?? new
    }

    private func write(_ bucket: PaceBucket, of pace: SharedPace) throws {
        try db.execute(
            """
            UPDATE pace_bucket SET tokens = $3, started_at = $4, filled_at = $5, wall_at = $6
            WHERE name = $1 AND boot = $2
            """, pace.name, clocks.boot, bucket.tokens, bucket.startedAt.wholeMicroseconds,
            bucket.filledAt.wholeMicroseconds, clocks.wall)
    }
}

extension Duration {
    fileprivate var wholeMicroseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}
