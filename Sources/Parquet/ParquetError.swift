/// A reason why a Parquet file cannot be written.
package enum ParquetError: Error, Equatable, CustomStringConvertible {
    case noColumns
    case duplicateColumn(String)
    case wrongColumnCount(expected: Int, found: Int)
    case wrongKind(column: String)
    case unequalRowCounts(column: String)
    case unexpectedNull(column: String, row: Int)
    case decimalOutOfRange(column: String, row: Int)
    /// A page has more bytes than the format can express.
    case valueTooLong(column: String)
    case compressionFailed(column: String)
    /// The file is finished, or an earlier write failed.
    case closed

    package var description: String {
        switch self {
        case .noColumns: "a Parquet file needs a column; declare at least one"
        case .duplicateColumn(let name): "two columns have the name \(name); rename one of them"
        case .wrongColumnCount(let expected, let found):
            "the batch has \(found) columns and the file \(expected); pass the values of each column"
        case .wrongKind(let column): "the values do not fit the kind of column \(column); pass values of its kind"
        case .unequalRowCounts(let column):
            "column \(column) has another number of rows than the first column; pass one value for each row"
        case .unexpectedNull(let column, let row):
            "row \(row) of the batch is null in column \(column); declare the column nullable"
        case .decimalOutOfRange(let column, let row):
            "row \(row) of the batch has more than 18 digits in column \(column); use another kind of column"
        case .valueTooLong(let column): "a page of column \(column) passes 2 GiB; write shorter values"
        case .compressionFailed(let column): "the compressor failed in column \(column); write the file again"
        case .closed: "the file is finished or an earlier write failed; write a new file"
        }
    }
}
