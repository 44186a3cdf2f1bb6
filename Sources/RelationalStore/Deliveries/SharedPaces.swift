import Model
package import Store

/// The buckets of the paces that all senders of the store share. The transaction of a lease fills and empties them.
///
/// With a server's clock, there is one bucket per name. With the callers' clocks, there is one per name and machine
/// boot, because uptimes are comparable only within one boot.
package struct SharedPaces<Session: SQLSession> {
    private static var keptMs: Int64 { 7 * 86_400_000 }
    private static var server: String { "server" }

    private let db: Session
    /// The clocks that fill the buckets. With a server's clock, each lock of a bucket updates them.
    private var clocks: ClockReading
    private let paces: [SharedPace]
    private var buckets: [PaceBucket] = []

    /// Locks the buckets until the end of the transaction.
    package init(_ db: Session, _ request: LeaseRequest) throws {
        self.db = db
        clocks = request.clocks ?? ClockReading(wall: request.now, uptime: .zero, boot: "")
        if !db.goesByCallersClock { clocks.boot = Self.server }
        paces = request.paces.sorted { $0.name < $1.name }
        for pace in paces { buckets.append(try db.lockBucket(of: pace, &clocks)) }
    }

    /// Returns how many deliveries all paces together allow now, or an empty lease with the time to wait.
    package mutating func allowed(_ request: LeaseRequest) -> (count: Int, wait: Lease?) {
        switch PaceBucket.allowance(of: paces, &buckets, at: clocks.uptime, limit: request.limit) {
        case .now(let count): (count, nil)
        case .after(let wait): (0, Lease(id: 0, deliveries: [], cursor: request.after, paceWait: wait))
        }
    }

    package mutating func consume(_ count: Int) throws {
        guard count > 0, !paces.isEmpty else { return }
        for index in paces.indices {
            buckets[index].consume(count)
            try write(buckets[index], of: paces[index])
        }
        try db.execute("DELETE FROM pace_bucket WHERE wall_at < $1", clocks.wall.milliseconds - Self.keptMs)
    }

    private func write(_ bucket: PaceBucket, of pace: SharedPace) throws {
        try db.execute(
            """
            INSERT INTO pace_bucket (name, boot, tokens, started_at, filled_at, wall_at) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (name, boot) DO UPDATE SET
                tokens = excluded.tokens, started_at = excluded.started_at, filled_at = excluded.filled_at,
                wall_at = excluded.wall_at
            """, pace.name, clocks.boot, bucket.tokens, bucket.startedAt.wholeMicroseconds,
            bucket.filledAt.wholeMicroseconds, clocks.wall)
    }
}
