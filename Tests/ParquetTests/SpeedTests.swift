import Foundation
import Parquet
import Testing

/// Measures the writer: `PARQUET_BENCHMARK=1 swift test -c release --filter SpeedTests`.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["PARQUET_BENCHMARK"] != nil), .serialized) struct SpeedTests {
    private static let columns = [
        ParquetColumn("id", .int64), ParquetColumn("run", .int32), ParquetColumn("token", .string),
        ParquetColumn("user", .string, isNullable: true), ParquetColumn("state", .enumeration),
        ParquetColumn("reason", .enumeration, isNullable: true), ParquetColumn("locale", .string, isNullable: true),
        ParquetColumn("sent", .timestamp, isNullable: true), ParquetColumn("answered", .timestamp, isNullable: true),
        ParquetColumn("isCanary", .boolean), ParquetColumn("latency", .double, isNullable: true),
        ParquetColumn("cost", .decimal, isNullable: true),
    ]

    /// Makes rows as a store of deliveries might have them: a token and a user of their own in each.
    private static func batch(_ rows: Range<Int>) -> [ParquetValues] {
        let reasons = ["BadDeviceToken", "Unregistered", "TooManyRequests", "DeviceTokenNotForTopic"]
        let locales = ["en", "de", "fr", "pt-BR", "zh-Hans"]
        let hash = { (row: Int) in UInt64(bitPattern: Int64(row)) &* 0x9E37_79B9_7F4A_7C15 }
        let token = { (row: Int) in
            let digits = String(hash(row) | 1 << 63, radix: 16)
            return digits + digits + digits + digits
        }
        return [
            .int64s(rows.map { Int64($0) }), .int32s(rows.map { Int32($0 / 250_000) }), .strings(rows.map(token)),
            .strings(rows.map { $0 % 10 == 0 ? nil : "user-\(hash($0) % 1_000_000)" }),
            .strings(rows.map { hash($0) % 20 == 0 ? "failed" : "accepted" }),
            .strings(rows.map { hash($0) % 20 == 0 ? reasons[$0 % 4] : nil }),
            .strings(rows.map { $0 % 9 == 0 ? nil : locales[Int(hash($0) % 5)] }),
            .int64s(rows.map { 1_790_000_000_000 + Int64($0) }),
            .int64s(rows.map { hash($0) % 50 == 0 ? nil : 1_790_000_000_000 + Int64($0) + Int64(hash($0) % 500) }),
            .booleans(rows.map { $0 < 1000 }),
            .doubles(rows.map { hash($0) % 50 == 0 ? nil : Double(hash($0) % 500) / 1000 }),
            .int64s(rows.map { $0 % 3 == 0 ? nil : Int64($0 % 1_000_000) }),
        ]
    }

    @Test(arguments: [1000, 10_000]) func `1,000,000 rows of 12 columns`(batchRows: Int) throws {
        let batches = stride(from: 0, to: 1_000_000, by: batchRows).map { Self.batch($0..<($0 + batchRows)) }
        for _ in 0..<3 {
            var bytes = 0
            let time = try ContinuousClock().measure {
                let writer = try ParquetWriter(columns: Self.columns) { bytes += $0.count }
                for batch in batches { try writer.write(batch) }
                try writer.finish()
            }
            print("\(batchRows) rows a batch: \(time), \(bytes) bytes")
        }
    }

    @Test func `the most memory while 5,000,000 rows are written`() throws {
        let writer = try ParquetWriter(columns: Self.columns) { _ in }
        for start in stride(from: 0, to: 5_000_000, by: 10_000) {
            try writer.write(Self.batch(start..<(start + 10_000)))
            guard (start + 10_000).isMultiple(of: 1_000_000) else { continue }
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            print("\(writer.rows) rows:", status.split(separator: "\n").first { $0.hasPrefix("VmHWM") } ?? "")
        }
        try writer.finish()
    }
}
