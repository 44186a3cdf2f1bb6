import Model
import Store
import RelationalStore

/// The buckets of the paces that all senders of the store share, filled and emptied in the transaction that leases: one of
/// each name, by the server's clock. By the callers' each start of a machine has its own, since clocks that nobody sets
/// compare within one only.
struct SharedPaces {
    private static let keptMs: Int64 = 7 * 86_400_000
    private static let server = "server"

    private let db: PostgresSession
    /// By which the buckets are filled; the server's are looked at with each that is locked.
    private var clocks: ClockReading
    private let paces: [SharedPace]
    private var buckets: [PaceBucket] = []

    /// From here to the end of the transaction nobody else takes from the buckets.
    init(_ db: PostgresSession, _ request: LeaseRequest) throws {
        self.db = db
        clocks = request.clocks ?? ClockReading(wall: request.now, uptime: .zero, boot: "")
        if db.time == .database { clocks.boot = Self.server }
        paces = request.paces.sorted { $0.name < $1.name }
        for pace in paces { buckets.append(try read(pace)) }
    }

    /// What all of them allow together.
    mutating func allowance(limit: Int) -> PaceBucket.Allowance {
        PaceBucket.allowance(of: paces, &buckets, at: clocks.uptime, limit: limit)
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
    private mutating func read(_ pace: SharedPace) throws -> PaceBucket {
        let isServers = db.time == .database
        let new = PaceBucket(pace.pace, at: clocks.uptime)
        let row = try db.rows(
            """
            INSERT INTO pace_bucket (name, boot, tokens, started_at, filled_at, wall_at)
            SELECT $1, $2, $3, coalesce($4, clock.now), coalesce($4, clock.now), coalesce($5, clock.now / 1000)
            FROM (SELECT \(StoreTime.nowMicroseconds) AS now) AS clock
            ON CONFLICT (name, boot) DO UPDATE SET name = pace_bucket.name
            RETURNING tokens, started_at, filled_at, \(StoreTime.nowMicroseconds)
            """, pace.name, clocks.boot, new.tokens, isServers ? nil : new.startedAt.wholeMicroseconds,
            db.given(clocks.wall)
        ).first
        guard let row else { return new }
        if isServers {
            clocks.uptime = .microseconds(try row.int64(3))
            clocks.wall = Timestamp(milliseconds: try row.int64(3) / 1000)
        }
        let filledAt = Duration.microseconds(try row.int64(2))
        // The server's clock was set back: it would stand still for as long.
        let ahead = isServers ? max(.zero, filledAt - clocks.uptime) : .zero
        return PaceBucket(
            tokens: try row.double(0), startedAt: .microseconds(try row.int64(1)) - ahead, filledAt: filledAt - ahead)
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
