import Foundation
import Parquet
import Synchronization
import Testing

/// What `read_parquet.py` says of a file.
struct Report: Decodable {
    struct Reading: Decodable {
        let names: [String]
        let types: [String]
        let nullable: [Bool]
        let columns: [[String?]]
    }

    struct Page: Decodable {
        let type: Int
        let encoding: Int
        let rows: Int
        let size: Int
    }

    struct Chunk: Decodable {
        let group: Int
        let column: Int
        let codec: String
        let encodings: [String]
        let hasRange: Bool
        let pages: [Page]

        var dataPages: [Page] { pages.filter { $0.type == 0 } }
        /// Dictionary encoded pages have encoding 8.
        var dictionaryPages: Int { dataPages.count { $0.encoding == 8 } }
        var plainPages: Int { dataPages.count { $0.encoding == 0 } }
    }

    let failure: String?
    let rows: Int?
    let createdBy: String?
    let metadata: [String: String]?
    let groups: [Int]?
    let chunks: [Chunk]?
    let problems: [String]?
    let pyarrow: Reading?
    let duckdb: Reading?
    let pandas: Reading?
}

/// Reads files with pyarrow, DuckDB and pandas, in the Python of `PARQUET_PYTHON`.
enum PythonReader {
    static let python = ProcessInfo.processInfo.environment["PARQUET_PYTHON"]

    /// Writes each table to a file, and returns a report on each.
    ///
    /// - Parameter isExtreme: whether timestamps are beyond what DuckDB and pandas can hold.
    static func read(_ tables: [Table], isExtreme: Bool = false) throws -> [Report] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "parquet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var paths: [String] = []
        for (index, table) in tables.enumerated() {
            let file = folder.appending(path: "\(index)\(isExtreme ? ".extreme" : "").parquet")
            try Data(try table.bytes()).write(to: file)
            paths.append(file.path)
        }
        return try process.withLock { process in
            let path = try #require(python)
            let running = try process ?? PythonProcess(path)
            // A process that fails is no process for the next test.
            process = nil
            let reports = try paths.map { try JSONDecoder().decode(Report.self, from: running.report(on: $0)) }
            process = running
            return reports
        }
    }

    /// One for all tests, since its libraries take longer to load than most files to read.
    private static let process = Mutex<PythonProcess?>(nil)

    static func run(_ program: String, _ arguments: [String], input: URL) throws -> Data {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardInput = try FileHandle(forReadingFrom: input)
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return data
    }
}

/// A Python that reads the file of each line it is given, and exits with the tests.
private struct PythonProcess {
    private let process = Process()
    private let paths = Pipe()
    private let reports = Pipe()

    init(_ python: String) throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "read_parquet.py")
        process.executableURL = URL(fileURLWithPath: python)
        process.arguments = [script.path]
        process.standardInput = paths
        process.standardOutput = reports
        try process.run()
    }

    func report(on path: String) throws -> Data {
        try paths.fileHandleForWriting.write(contentsOf: Data("\(path)\n".utf8))
        var line = Data()
        while line.last != 0x0A {
            let piece = reports.fileHandleForReading.availableData
            try #require(!piece.isEmpty, "Python ended")
            line += piece
        }
        return line
    }
}

extension Report {
    private static let arrowTypes: [ParquetColumn.Kind: String] = [
        .boolean: "bool", .int32: "int32", .int64: "int64", .double: "double", .string: "string",
        .enumeration: "string", .timestamp: "timestamp[ms, tz=UTC]", .decimal: "decimal128(18, 6)", .bytes: "binary",
    ]
    private static let duckTypes: [ParquetColumn.Kind: String] = [
        .boolean: "BOOLEAN", .int32: "INTEGER", .int64: "BIGINT", .double: "DOUBLE", .string: "VARCHAR",
        .enumeration: "VARCHAR", .timestamp: "TIMESTAMP WITH TIME ZONE", .decimal: "DECIMAL(18,6)", .bytes: "BLOB",
    ]
    private static let pandasTypes: [ParquetColumn.Kind: String] = [
        .boolean: "boolean", .int32: "Int32", .int64: "Int64", .double: "Float64", .string: "string",
        .enumeration: "string", .timestamp: "datetime64[ms, UTC]", .decimal: "object", .bytes: "object",
    ]

    /// Expects every value, type and name in the report to be the table's. Returns the number of compared values.
    @discardableResult
    func expect(_ table: Table, _ comment: Comment, isExtreme: Bool = false) throws -> Int {
        #expect(failure == nil, comment)
        #expect(problems == [], comment)
        #expect(rows == table.rowCount, comment)
        #expect(createdBy == table.options.createdBy, comment)
        var count = 0
        let arrow = try #require(pyarrow, comment)
        count += compare(arrow, table, Self.arrowTypes, comment)
        #expect(arrow.nullable == table.columns.map(\.isNullable), comment)
        guard !isExtreme else { return count }
        count += compare(try #require(duckdb, comment), table, Self.duckTypes, comment)
        // pandas has one missing value, NaN or null.
        count += compare(try #require(pandas, comment), table, Self.pandasTypes, comment) { $0 == "nan" ? nil : $0 }
        return count
    }

    private func compare(
        _ reading: Reading, _ table: Table, _ types: [ParquetColumn.Kind: String], _ comment: Comment,
        _ seen: (String?) -> String? = { $0 }
    ) -> Int {
        #expect(reading.names == table.columns.map(\.name), comment)
        #expect(reading.types == table.columns.map { types[$0.kind] ?? "" }, comment)
        var count = 0
        for (column, (found, values)) in zip(table.columns, zip(reading.columns, table.values)) {
            let expected = values.texts.map(seen)
            let read = found.map(seen)
            let row = zip(read, expected).enumerated().first { $1.0 != $1.1 }
            #expect(read.count == expected.count, "\(comment) \(column.name)")
            #expect(row == nil, "\(comment) \(column.name) \(column.kind)")
            count += read.count
        }
        return count
    }
}
