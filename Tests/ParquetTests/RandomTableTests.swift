import Foundation
import Testing

/// Random files are read by others as they were written.
@Suite(.enabled(if: PythonReader.python != nil), .serialized) struct RandomTableTests {
    private static let rows = [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 500, 2000]

    private static let isNight = ProcessInfo.processInfo.environment["FANFARE_LONG_TESTS"] != nil

    @Test(arguments: 0..<(isNight ? 16 : 3)) func `random tables are read by pyarrow, DuckDB and pandas`(seed: Int)
        throws
    {
        var random = RandomTables(seed: UInt64(seed))
        let tables = Self.rows.map { random.table(rows: $0) }
        var count = 0
        for (index, (report, table)) in zip(try PythonReader.read(tables), tables).enumerated() {
            count += try report.expect(table, "seed \(seed), table \(index)")
        }
        print("seed \(seed): \(tables.count) files, \(count) values compared")
    }
}
