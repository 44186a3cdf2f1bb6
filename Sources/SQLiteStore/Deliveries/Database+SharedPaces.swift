package import GRDB
import Model
import RelationalStore
package import Store

extension Database {
    package func lockBucket(of pace: SharedPace, _ clocks: inout ClockReading) throws -> PaceBucket {
        try first(
            "SELECT tokens, started_at, filled_at FROM pace_bucket WHERE name = $1 AND boot = $2", pace.name,
            clocks.boot
        ) { row in
            PaceBucket(
                tokens: try row.double(0), startedAt: .microseconds(try row.int64(1)),
                filledAt: .microseconds(try row.int64(2)))
        } ?? PaceBucket(pace.pace, at: clocks.uptime)
    }
}
