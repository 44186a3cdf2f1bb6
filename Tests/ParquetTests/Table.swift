import Foundation
import Parquet

/// The rows of a test file, and how the file is written.
struct Table {
    var columns: [ParquetColumn]
    var values: [ParquetValues]
    var options = ParquetOptions()
    var compress: Compressor?
    /// The rows of each batch. The last batch has the rest.
    var batches: [Int] = []

    var rowCount: Int { values.first?.count ?? 0 }

    func write(to sink: @escaping ([UInt8]) throws -> Void) throws {
        let writer = try ParquetWriter(columns: columns, options: options, compress: compress, sink: sink)
        var start = 0
        for count in batches + [rowCount] {
            let rows = start..<min(start + count, rowCount)
            try writer.write(values.map { $0[rows] })
            start = rows.upperBound
        }
        try writer.finish()
    }

    func bytes() throws -> [UInt8] {
        let output = Output()
        try write { output.bytes += $0 }
        return output.bytes
    }
}

/// The bytes of a file in memory.
final class Output {
    var bytes: [UInt8] = []
}

extension ParquetValues {
    subscript(rows: Range<Int>) -> ParquetValues {
        switch self {
        case .booleans(let values): .booleans(Array(values[rows]))
        case .int32s(let values): .int32s(Array(values[rows]))
        case .int64s(let values): .int64s(Array(values[rows]))
        case .doubles(let values): .doubles(Array(values[rows]))
        case .strings(let values): .strings(Array(values[rows]))
        case .bytes(let values): .bytes(Array(values[rows]))
        }
    }

    /// The values as `read_parquet.py` prints them.
    var texts: [String?] {
        switch self {
        case .booleans(let values): values.map { $0.map { $0 ? "true" : "false" } }
        case .int32s(let values): values.map { $0.map(String.init) }
        case .int64s(let values): values.map { $0.map(String.init) }
        case .doubles(let values): values.map { $0.map { $0.isNaN ? "nan" : Self.hex($0.bitPattern) } }
        case .strings(let values): values.map { $0.map { Self.hex(Array($0.utf8)) } }
        case .bytes(let values): values.map { $0.map(Self.hex) }
        }
    }

    private static func hex(_ bits: UInt64) -> String {
        let digits = String(bits, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.count)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
