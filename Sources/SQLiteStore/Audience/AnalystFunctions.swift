import CKernel
import GRDBSQLite

/// The functions of SQLite that compare each part of one text with another text, with a cost that is linear in both.
///
/// SQLite calls no progress handler while a function runs. Its own functions take minutes for two texts of a megabyte,
/// and the time limit of an `audience_sql` would not stop them. The results are the same.
enum AnalystFunctions {
    private typealias Context = OpaquePointer
    private typealias Arguments = UnsafeMutablePointer<OpaquePointer?>

    static func add(to connection: OpaquePointer) throws(DatabaseCode) {
        try add("instr", 2, to: connection) { context, _, values in AnalystFunctions.instr(context, values) }
        try add("replace", 3, to: connection) { context, _, values in AnalystFunctions.replace(context, values) }
        try add("trim", 2, to: connection) { context, _, values in
            AnalystFunctions.trim(context, values, atStart: true, atEnd: true)
        }
        try add("ltrim", 2, to: connection) { context, _, values in
            AnalystFunctions.trim(context, values, atStart: true, atEnd: false)
        }
        try add("rtrim", 2, to: connection) { context, _, values in
            AnalystFunctions.trim(context, values, atStart: false, atEnd: true)
        }
    }

    /// The code of SQLite for a function that it does not accept.
    struct DatabaseCode: Error {
        let code: Int32
    }

    private static func add(
        _ name: String, _ arguments: Int32, to connection: OpaquePointer,
        _ body: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void
    ) throws(DatabaseCode) {
        let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC
        let code = sqlite3_create_function_v2(connection, name, arguments, flags, nil, body, nil, nil, nil)
        guard code == SQLITE_OK else { throw DatabaseCode(code: code) }
    }

    /// Returns the bytes of a text, or of any other value as a text. `nil` for NULL.
    private static func bytes(_ value: OpaquePointer?) -> UnsafeRawBufferPointer? {
        let type = sqlite3_value_type(value)
        guard type != SQLITE_NULL else { return nil }
        let start =
            type == SQLITE_BLOB ? sqlite3_value_blob(value) : sqlite3_value_text(value).map { UnsafeRawPointer($0) }
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(value)))
    }

    /// Returns the place of the first occurrence from `start` on. glibc searches in linear time.
    private static func place(
        of sought: UnsafeRawBufferPointer, in all: UnsafeRawBufferPointer, from start: Int
    ) -> Int? {
        guard let first = all.baseAddress, let word = sought.baseAddress else { return nil }
        return memmem(first + start, all.count - start, word, sought.count).map { UnsafeRawPointer($0) - first }
    }

    private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }

    /// `instr(text, word)`: the place in characters, or in bytes if both values are blobs. 0 if there is none.
    private static func instr(_ context: Context?, _ values: Arguments?) {
        guard let all = bytes(values?[0]), let sought = bytes(values?[1]) else { return sqlite3_result_null(context) }
        guard !sought.isEmpty else { return sqlite3_result_int(context, 1) }
        guard let place = place(of: sought, in: all, from: 0) else { return sqlite3_result_int(context, 0) }
        let areBlobs =
            sqlite3_value_type(values?[0]) == SQLITE_BLOB && sqlite3_value_type(values?[1]) == SQLITE_BLOB
        let before = areBlobs ? place : all[..<place].count { !isContinuation($0) }
        sqlite3_result_int64(context, Int64(before + 1))
    }

    /// `replace(text, word, replacement)`.
    private static func replace(_ context: Context?, _ values: Arguments?) {
        guard let all = bytes(values?[0]), let sought = bytes(values?[1]) else { return sqlite3_result_null(context) }
        guard !sought.isEmpty else {
            // This turns a blob into a text, and leaves a number as it is.
            _ = sqlite3_value_text(values?[0])
            return sqlite3_result_value(context, values?[0])
        }
        guard let replacement = bytes(values?[2]) else { return sqlite3_result_null(context) }
        let bytesMax = Int(sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1))
        var text: [UInt8] = []
        text.reserveCapacity(all.count)
        var start = 0
        while let place = place(of: sought, in: all, from: start) {
            text += all[start..<place]
            text += replacement
            guard text.count <= bytesMax else { return sqlite3_result_error_toobig(context) }
            start = place + sought.count
        }
        text += all[start...]
        text.withUnsafeBytes { finish(context, $0) }
    }

    /// `trim(text, characters)`.
    private static func trim(_ context: Context?, _ values: Arguments?, atStart: Bool, atEnd: Bool) {
        guard var text = bytes(values?[0]), let signs = bytes(values?[1]) else { return sqlite3_result_null(context) }
        let known = characters(signs)
        /// Returns the number of bytes of the first or last character, if the character is to be removed.
        func removable(fromEnd: Bool) -> Int? {
            (1...bytesOfCharacterMax).first { count in
                guard count <= text.count else { return false }
                return known.contains(packed(fromEnd ? text.suffix(count) : text.prefix(count)))
            }
        }
        while atStart, let count = removable(fromEnd: false) {
            text = UnsafeRawBufferPointer(rebasing: text.dropFirst(count))
        }
        while atEnd, let count = removable(fromEnd: true) {
            text = UnsafeRawBufferPointer(rebasing: text.dropLast(count))
        }
        finish(context, text)
    }

    private static let bytesOfCharacterMax = 4

    private static func characters(_ bytes: UnsafeRawBufferPointer) -> Set<UInt64> {
        var all: Set<UInt64> = []
        var start = 0
        for end in 1..<max(1, bytes.count + 1) where end == bytes.count || !isContinuation(bytes[end]) {
            if end - start <= bytesOfCharacterMax { all.insert(packed(bytes[start..<end])) }
            start = end
        }
        return all
    }

    /// Returns a number for a character. Texts of different lengths have different numbers.
    private static func packed(_ bytes: Slice<UnsafeRawBufferPointer>) -> UInt64 {
        bytes.reduce(1) { $0 << 8 | UInt64($1) }
    }

    private static func finish(_ context: Context?, _ text: UnsafeRawBufferPointer) {
        guard let start = text.baseAddress, !text.isEmpty else { return sqlite3_result_text(context, "", 0, nil) }
        sqlite3_result_text64(
            context, start.assumingMemoryBound(to: CChar.self), UInt64(text.count), copied, UInt8(SQLITE_UTF8))
    }

    /// SQLITE_TRANSIENT, which C defines as a cast of -1. It tells SQLite to copy the text.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
}
