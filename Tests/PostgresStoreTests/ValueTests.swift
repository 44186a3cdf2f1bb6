import Model
import PostgresStore
import TestSupport
import Testing

/// What goes to the server comes back as it was.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct ValueTests {
    @Test func `every type goes there and comes back`() async throws {
        try await withPool { pool in
            try await pool.read { db in
                let row = try #require(
                    try db.rows(
                        "SELECT $1, $2, $3, $4, $5, $6, $7, $8", Int64.min, Int32.max, "é\n\u{1F389}", [UInt8](0...255),
                        true, -0.1, Timestamp(milliseconds: 1_700_000_000_123), Int16(-7)
                    ).first)
                #expect(try row.int64(0) == .min && row.value(1) == Int32.max && row.text(2) == "é\n\u{1F389}")
                #expect(try row.bytes(3) == Array(0...255) && row.bool(4) && row.double(5) == -0.1)
                #expect(try row.timestamp(6).milliseconds == 1_700_000_000_123 && row.int64(7) == -7)
            }
        }
    }

    @Test func `arrays go there and come back, with nothing in them and with NULL among them`() async throws {
        try await withPool { pool in
            try await pool.read { db in
                let row = try #require(
                    try db.rows(
                        "SELECT $1, $2, $3, $4, $5, $6, $7", [Int64.min, 0, 7], [Int64](), ["a", "", "{\",}"],
                        [[UInt8](), [0, 255]], [Int32(1), -1], ["x", nil], [Int64?.none, 3]
                    ).first)
                #expect(
                    try row.int64s(0) == [.min, 0, 7] && row.int64s(1) == [] && row.texts(2) == ["a", "", "{\",}"])
                #expect(try row.value(3) == [[UInt8](), [0, 255]] && row.value(4) == [Int32(1), -1])
                #expect(try row.value(5) == ["x", nil] && row.value(6) == [Int64?.none, 3])
            }
        }
    }

    @Test func `NULL is nil, and nothing else`() async throws {
        try await withPool { pool in
            try await pool.read { db in
                let row = try #require(
                    try db.rows(
                        "SELECT $1, $2, $3, $4, $5", Int64?.none, String?.none, [UInt8]?.none, [Int64]?.none, ""
                    ).first)
                #expect(try row.int64OrNil(0) == nil && row.textOrNil(1) == nil && row.bytesOrNil(2) == nil)
                #expect(try row.value(3, as: [Int64]?.self) == nil && row.textOrNil(4) == "")
                #expect(throws: PostgresError.unexpectedValue(column: 0, expected: "Int64", found: "NULL")) {
                    try row.int64(0)
                }
            }
        }
    }

    @Test func `a column of another type than asked for is an error, not another value`() async throws {
        try await withPool { pool in
            try await pool.read { db in
                let row = try #require(try db.rows("SELECT 1.5::float8, 'x'").first)
                #expect(throws: PostgresError.self) { try row.int64(0) }
                #expect(throws: PostgresError.self) { try row.int64(1) }
                #expect(throws: PostgresError.self) { try row.int64(2) }
                #expect(throws: PostgresError.self) { try row.values(Double.self, String.self, Int64.self) }
                let (number, text) = try row.values(Double.self, String?.self)
                #expect(number == 1.5 && text == "x")
            }
        }
    }

    @Test func `ten megabytes go there and come back`() async throws {
        let bytes = (0..<10_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try await withPool { pool in
            let back = try await pool.read { db in try db.first("SELECT $1", bytes) { try $0.bytes(0) } }
            #expect(back == bytes)
        }
    }

    @Test func `rows come one by one, and a reader may stop in the middle`() async throws {
        struct Enough: Error {}
        try await withPool { pool in
            try await pool.read { db in
                var sum: Int64 = 0
                try db.each("SELECT generate_series(1, $1)", 10_000) { sum += try $0.int64(0) }
                #expect(sum == 50_005_000)
            }
            await #expect(throws: Enough.self) {
                try await pool.read { db in
                    try db.each("SELECT generate_series(1, 10000000)") { _ in throw Enough() }
                }
            }
            #expect(try await pool.read { try $0.first("SELECT 1") { try $0.int64(0) } } == 1)
        }
    }

    @Test func `100,000 rows are copied in and out`() async throws {
        try await withPool { pool in
            let copied = try await pool.write { db in
                try db.run("CREATE TABLE thing (id bigint PRIMARY KEY, name text, token bytea, is_good boolean)")
                return try db.copyIn("COPY thing (id, name, token, is_good) FROM STDIN (FORMAT binary)") { writer in
                    for id in 0..<Int64(100_000) {
                        try writer.row(id, id % 7 == 0 ? nil : "n\(id)", [UInt8(truncatingIfNeeded: id)], id % 2 == 0)
                    }
                }
            }
            #expect(copied == 100_000)
            let facts = try await pool.read { db in
                var expected: Int64 = 0
                var faults = 0
                let count = try db.copyOut("COPY (SELECT * FROM thing ORDER BY id) TO STDOUT (FORMAT binary)") { row in
                    let (id, name) = try row.values(Int64.self, String?.self)
                    let isRight = try row.bytes(2) == [UInt8(truncatingIfNeeded: id)] && row.bool(3) == (id % 2 == 0)
                    if id != expected || name != (id % 7 == 0 ? nil : "n\(id)") || !isRight { faults += 1 }
                    expected += 1
                }
                return (count, faults)
            }
            #expect(facts == (100_000, 0))
        }
    }

    @Test func `a copy that is given up leaves nothing, and the connection as it was`() async throws {
        struct GivenUp: Error {}
        try await withPool { pool in
            try await pool.write { try $0.run("CREATE TABLE thing (id bigint)") }
            await #expect(throws: GivenUp.self) {
                try await pool.write { db in
                    try db.copyIn("COPY thing FROM STDIN (FORMAT binary)") { writer in
                        try writer.row(Int64(1))
                        throw GivenUp()
                    }
                }
            }
            await #expect(throws: GivenUp.self) {
                try await pool.read { db in
                    try db.copyOut("COPY (SELECT generate_series(1, 9000000)) TO STDOUT (FORMAT binary)") { _ in
                        throw GivenUp()
                    }
                }
            }
            let wrong = await postgresError {
                try await pool.write { db in
                    _ = try db.copyIn("COPY thing FROM STDIN (FORMAT binary)") { try $0.row("too long for a bigint") }
                }
            }
            #expect(wrong?.kind == .other)
            #expect(try await pool.write { try $0.first("SELECT count(*) FROM thing") { try $0.int64(0) } } == 0)
        }
    }
}
