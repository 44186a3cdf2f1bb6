/// The limits and descriptions of a Parquet file.
package struct ParquetOptions: Sendable {
    /// The number of rows after which a row group is closed.
    package var rowGroupRows = 100_000
    /// The number of buffered bytes after which a row group is closed early. The writer checks it every 4096 rows.
    package var rowGroupBytes = 128 << 20
    /// The number of bytes in a data page before compression. A single longer value has a page of its own.
    package var pageBytes = 1 << 20
    /// The number of bytes in the dictionary of a string column. Enumerations have no such limit.
    package var dictionaryBytes = 1 << 20
    /// The key-value metadata of the file, such as descriptions of columns.
    package var metadata: [(key: String, value: String)] = []
    /// The name of the program that writes the file, in the form that the format's documentation recommends.
    package var createdBy = "Parquet for Swift version 1.0.0 (build 1)"

    package init() {}

    /// The options with each limit in the range that the format can express.
    var clamped: ParquetOptions {
        var options = self
        options.rowGroupRows = max(1, rowGroupRows)
        options.pageBytes = min(max(32, pageBytes), 1 << 27)
        options.dictionaryBytes = min(dictionaryBytes, 1 << 27)
        return options
    }
}
