import Parquet
import Testing

/// Files at the limits of the format and of the writer are read by others as they were written.
@Suite(.enabled(if: PythonReader.python != nil), .serialized) struct ReaderTests {
    /// Whether a row is null, in a column that is nullable or not.
    private static let patterns: [(name: String, isNullable: Bool, isNull: @Sendable (Int, Int) -> Bool)] = [
        ("required", false, { _, _ in false }), ("none", true, { _, _ in false }), ("all", true, { _, _ in true }),
        ("odd", true, { row, _ in row % 2 == 1 }), ("first", true, { row, _ in row == 0 }),
        ("last", true, { row, count in row == count - 1 }), ("later half", true, { row, count in 2 * row >= count }),
        ("groups of 8", true, { row, _ in row / 8 % 2 == 0 }), ("groups of 9", true, { row, _ in row / 9 % 2 == 0 }),
    ]

    private func read(_ table: Table, isExtreme: Bool = false) throws -> Report {
        let report = try #require(try PythonReader.read([table], isExtreme: isExtreme).first)
        let count = try report.expect(table, "", isExtreme: isExtreme)
        print("\(count) values compared")
        return report
    }

    private func texts(_ count: Int, _ text: (Int) -> String) -> ParquetValues { .strings((0..<count).map(text)) }

    @Test(arguments: [false, true]) func `every kind, pattern of nulls and number of rows around a group of 8`(
        isCompressed: Bool
    ) throws {
        var random = RandomTables(seed: 99)
        let tables = [0, 1, 7, 8, 9, 63, 64, 65].map { rows in
            var table = Table(columns: [], values: [], compress: isCompressed ? Gzip.stored : nil)
            for kind in ParquetColumn.Kind.allCases {
                for pattern in Self.patterns {
                    let column = ParquetColumn("\(kind) \(pattern.name)", kind, isNullable: pattern.isNullable)
                    let values = random.values(ParquetColumn("", kind), rows)
                    table.columns.append(column)
                    table.values.append(values.nulled { pattern.isNull($0, rows) })
                }
            }
            return table
        }
        var count = 0
        for (report, table) in zip(try PythonReader.read(tables), tables) {
            count += try report.expect(table, "\(table.rowCount) rows")
            #expect(report.groups == (table.rowCount == 0 ? [] : [table.rowCount]))
            #expect(report.chunks?.allSatisfy { $0.codec == (isCompressed ? "GZIP" : "UNCOMPRESSED") } == true)
        }
        print("\(tables.count) files, \(count) values compared")
    }

    @Test func `the small file whose bytes are on record`() throws { _ = try read(Golden.small()) }

    @Test func `row groups end after 100,000 rows`() throws {
        let rows = 250_000
        let table = Table(
            columns: [ParquetColumn("id", .int64), ParquetColumn("state", .enumeration, isNullable: true)],
            values: [
                .int64s((0..<rows).map { Int64($0) }),
                .strings((0..<rows).map { $0 % 7 == 0 ? nil : "state \($0 % 5)" }),
            ], batches: [1, 99_999, 100_001])
        #expect(try read(table).groups == [100_000, 100_000, 50_000])
    }

    @Test func `row groups end early when they have enough bytes`() throws {
        let values = texts(10_000) { "\($0) \(String(repeating: "x", count: 100))" }
        var table = Table(columns: [ParquetColumn("text", .string)], values: [values])
        table.options.rowGroupBytes = 1
        #expect(try read(table).groups == [4096, 4096, 1808])
    }

    @Test func `a chunk has several pages of at most 1 MiB`() throws {
        let rows = 300_000
        var table = Table(
            columns: [
                ParquetColumn("id", .int64), ParquetColumn("time", .timestamp, isNullable: true),
                ParquetColumn("text", .string), ParquetColumn("bytes", .bytes, isNullable: true),
                ParquetColumn("state", .enumeration, isNullable: true),
            ],
            values: [
                .int64s((0..<rows).map { Int64($0) }),
                .int64s((0..<rows).map { $0 % 3 == 0 ? nil : Int64($0) }),
                texts(rows) { "text \($0)" },
                .bytes((0..<rows).map { $0 % 2 == 0 ? nil : Array("bytes \($0)".utf8) }),
                .strings((0..<rows).map { "state \($0 &* 48_271 % 65_000)" }),
            ])
        table.options.rowGroupRows = rows
        let report = try read(table)
        for (chunk, pages) in zip(try #require(report.chunks), [3, 2, 5, 3, 1]) {
            #expect(chunk.dataPages.count >= pages, "column \(chunk.column)")
            #expect(chunk.dataPages.allSatisfy { $0.size <= 1 << 20 }, "column \(chunk.column)")
        }
    }

    @Test func `a full dictionary is followed by plain pages, and a useless one is not written`() throws {
        let rows = 100_000
        let padding = String(repeating: "é", count: 20)
        let table = Table(
            columns: [
                ParquetColumn("few", .string), ParquetColumn("few, then full", .string, isNullable: true),
                ParquetColumn("distinct", .string), ParquetColumn("distinct, short", .enumeration),
                ParquetColumn("long enumeration", .enumeration), ParquetColumn("half", .string),
            ],
            values: [
                texts(rows) { "\($0 % 100)" },
                .strings((0..<rows).map { $0 % 11 == 0 ? nil : "\($0 < 60_000 ? $0 % 10 : $0) \(padding)" }),
                texts(rows) { "\($0) \(padding)" }, texts(rows) { "\($0)" }, texts(rows) { "\($0) \(padding)" },
                texts(rows) { "\($0 / 2)" },
            ])
        let chunks = try #require(try read(table).chunks)
        #expect(chunks.map { $0.dictionaryPages > 0 } == [true, true, false, true, true, false])
        #expect(chunks.map { $0.plainPages > 0 } == [false, true, true, false, false, true])
        #expect(chunks[1].encodings.contains("RLE_DICTIONARY") && chunks[1].encodings.contains("PLAIN"))
        #expect(chunks[4].pages[0].size > 1 << 20)
    }

    @Test func `each row group begins with a dictionary again`() throws {
        let values = texts(300) { (100..<200).contains($0) ? "distinct \($0)" : "\($0 % 5)" }
        var table = Table(columns: [ParquetColumn("text", .string)], values: [values])
        table.options.rowGroupRows = 100
        #expect(try read(table).chunks?.map { $0.dictionaryPages > 0 } == [true, false, true])
    }

    @Test func `runs of indices of one, two and three bytes`() throws {
        let counts = [200, 300, 40_000, 70_000]
        let tables = counts.map { count in
            // Each value once, and then runs of the last values.
            let entries = (0..<count) + (0..<100).flatMap { Array(repeating: count - 1 - $0, count: 5 + $0) }
            return Table(
                columns: [ParquetColumn("state", .enumeration)], values: [texts(entries.count) { "\(entries[$0])" }])
        }
        for (report, table) in zip(try PythonReader.read(tables), tables) { try report.expect(table, "") }
    }

    @Test func `the last group of indices is filled to 8`() throws {
        let table = Table(columns: [ParquetColumn("state", .enumeration)], values: [texts(300) { "\($0)" }])
        // The bit width, the header of a run, and 38 groups of 8 indices of 9 bits.
        #expect(try read(table).chunks?[0].dataPages.map(\.size) == [1 + 1 + 38 * 9])
    }

    @Test func `texts that are equal in Unicode but not in bytes stay different`() throws {
        let forms = ["é", "e\u{0301}", "Å", "A\u{030A}", "\u{212B}"]
        let table = Table(
            columns: [ParquetColumn("text", .string), ParquetColumn("state", .enumeration)],
            values: [texts(100) { forms[$0 % 5] }, texts(100) { forms[$0 % 5] }])
        let chunks = try #require(try read(table).chunks)
        #expect(chunks.map { $0.pages[0].rows } == [5, 5])
    }

    @Test func `timestamps of 64 bits`() throws {
        let table = Table(
            columns: [ParquetColumn("time", .timestamp), ParquetColumn("nullable", .timestamp, isNullable: true)],
            values: [.int64s([.min, .max, 0, -1]), .int64s([nil, .min, nil, .max])])
        #expect(try read(table, isExtreme: true).chunks?.allSatisfy(\.hasRange) == true)
    }

    @Test func `values longer than a page, and too long for statistics`() throws {
        let long = String(repeating: "日本語", count: 150_000)
        let table = Table(
            columns: [ParquetColumn("text", .string), ParquetColumn("bytes", .bytes, isNullable: true)],
            values: [
                .strings(["", long, "short", long + "x"]), .bytes([Array(long.utf8), nil, [], Array(long.utf8)]),
            ])
        let chunks = try #require(try read(table).chunks)
        #expect(chunks.map(\.hasRange) == [false, false])
        #expect(chunks.map(\.dataPages.count) == [4, 3])
    }

    @Test func `pages that the program gzip compressed`() throws {
        let rows = 50_000
        var random = RandomTables(seed: 5)
        let columns = ParquetColumn.Kind.allCases.map { ParquetColumn("\($0)", $0, isNullable: true) }
        var table = Table(columns: columns, values: columns.map { random.values($0, rows) }, compress: Gzip.program)
        table.options.rowGroupRows = 20_000
        let report = try read(table)
        #expect(report.groups == [20_000, 20_000, 10_000])
        #expect(report.chunks?.allSatisfy { $0.codec == "GZIP" } == true)
    }

    @Test func `metadata and the program's name`() throws {
        var table = Table(columns: [ParquetColumn("id", .int32)], values: [.int32s([1])])
        table.options.createdBy = "Fanfare version 1.2.3 (build abc)"
        table.options.metadata = [("column.id", "Die Nummer des Geräts 🎺"), ("", ""), ("created", "2026")]
        #expect(try read(table).metadata == ["column.id": "Die Nummer des Geräts 🎺", "": "", "created": "2026"])
    }

    @Test func `300 columns, whose lists have longer headers`() throws {
        var random = RandomTables(seed: 6)
        let columns = (0..<300).map {
            ParquetColumn("column \($0)", ParquetColumn.Kind.allCases[$0 % 9], isNullable: $0 % 2 == 0)
        }
        var table = Table(columns: columns, values: columns.map { random.values($0, 50) })
        table.options.rowGroupRows = 3
        #expect(try read(table).groups?.count == 17)
    }
}

extension ParquetValues {
    /// Returns the values with nulls at some rows.
    fileprivate func nulled(_ isNull: (Int) -> Bool) -> ParquetValues {
        func replaced<Value>(_ values: [Value?]) -> [Value?] {
            values.enumerated().map { isNull($0) ? nil : $1 }
        }
        return switch self {
        case .booleans(let values): .booleans(replaced(values))
        case .int32s(let values): .int32s(replaced(values))
        case .int64s(let values): .int64s(replaced(values))
        case .doubles(let values): .doubles(replaced(values))
        case .strings(let values): .strings(replaced(values))
        case .bytes(let values): .bytes(replaced(values))
        }
    }
}
