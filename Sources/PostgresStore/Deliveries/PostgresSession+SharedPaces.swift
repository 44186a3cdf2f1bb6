import Model
import RelationalStore
package import Store

extension PostgresSession {
    /// Locks the bucket of a pace. Creates a missing bucket, so that there is a row to lock.
    package func lockBucket(of pace: SharedPace, _ clocks: inout ClockReading) throws -> PaceBucket {
        let isServers = time == .database
        let new = PaceBucket(pace.pace, at: clocks.uptime)
        let row = try rows(
            """
            INSERT INTO pace_bucket (name, boot, tokens, started_at, filled_at, wall_at)
            SELECT $1, $2, $3, coalesce($4, clock.now), coalesce($4, clock.now), coalesce($5, clock.now / 1000)
            FROM (SELECT \(StoreTime.nowMicroseconds) AS now) AS clock
            ON CONFLICT (name, boot) DO UPDATE SET name = pace_bucket.name
            RETURNING tokens, started_at, filled_at, \(StoreTime.nowMicroseconds)
            """, pace.name, clocks.boot, new.tokens, isServers ? nil : new.startedAt.wholeMicroseconds,
            given(clocks.wall)
        ).first
        guard let row else { return new }
        if isServers {
            clocks.uptime = .microseconds(try row.int64(3))
            clocks.wall = Timestamp(milliseconds: try row.int64(3) / 1000)
        }
        let filledAt = Duration.microseconds(try row.int64(2))
        // Otherwise the bucket would not fill for as long as the server's clock was set back.
        let ahead = isServers ? max(.zero, filledAt - clocks.uptime) : .zero
        return PaceBucket(
            tokens: try row.double(0), startedAt: .microseconds(try row.int64(1)) - ahead, filledAt: filledAt - ahead)
    }
}
