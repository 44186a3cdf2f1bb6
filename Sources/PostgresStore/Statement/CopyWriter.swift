import CPostgres

extension PostgresSession {
    /// Writes the rows of `body` by `COPY table (columns) FROM STDIN (FORMAT binary)`, which is the fastest way.
    /// Returns the number of rows. An error of `body` aborts the COPY, and with it the transaction.
    @discardableResult
    package func copyIn(_ text: String, _ body: (inout CopyWriter) throws -> Void) throws -> Int {
        try beginCopy(text, PGRES_COPY_IN)
        var writer = CopyWriter(link)
        do {
            try body(&writer)
            try writer.finish()
        } catch {
            guard link.failure == nil else { throw error }
            // The server responds with its own error, which is less useful than that of `body`.
            try link.sent(PQputCopyEnd(link.handle, "given up"))
            while try link.next() != nil {}
            throw error
        }
        try link.sent(PQputCopyEnd(link.handle, nil))
        return try endCopy()
    }

    /// Reads rows as they arrive, by `COPY (SELECT ...) TO STDOUT (FORMAT binary)`. Returns the number of rows.
    @discardableResult
    package func copyOut(_ text: String, _ body: (CopiedRow) throws -> Void) throws -> Int {
        try beginCopy(text, PGRES_COPY_OUT)
        var isFirst = true
        while let message = try nextMessage() {
            defer { PQfreemem(message.baseAddress) }
            do {
                guard let row = try CopiedRow(UnsafeRawBufferPointer(message), isFirst: isFirst) else { continue }
                isFirst = false
                try body(row)
            } catch {
                link.abandon()
                throw error
            }
        }
        return try endCopy()
    }

    private func beginCopy(_ text: String, _ expected: ExecStatusType) throws {
        try link.prepareToSend()
        link.mayKeep = !isInTransaction
        try link.sent(PQsendQuery(link.handle, text))
        guard let result = try link.next() else { throw link.lost(link.trouble) }
        guard result.status != expected else { return }
        while try link.next() != nil {}
        if let fault = result.fault { throw refusal(fault) }
        throw link.failed("no COPY of this direction")
    }

    private func endCopy() throws -> Int {
        var fault: ServerFault?
        var count = 0
        while let result = try link.next() {
            fault = fault ?? result.fault
            count = max(count, result.affected)
        }
        if let fault { throw refusal(fault) }
        link.mayKeep = false
        return count
    }

    /// Returns `nil` at the end.
    private func nextMessage() throws -> UnsafeMutableRawBufferPointer? {
        while true {
            var bytes: UnsafeMutablePointer<CChar>?
            let length = PQgetCopyData(link.handle, &bytes, 1)
            switch length {
            case 0: try link.awaitInput()
            case 1...: return UnsafeMutableRawBufferPointer(start: bytes, count: Int(length))
            default: return nil
            }
        }
    }
}

/// The rows of a COPY to the server.
package struct CopyWriter {
    private static let signature = Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0x00]

    private let link: PostgresLink
    private var bytes: [UInt8]

    init(_ link: PostgresLink) {
        self.link = link
        // The signature, no flags, no extension.
        bytes = Self.signature + [UInt8](repeating: 0, count: 8)
        bytes.reserveCapacity(PostgresLimits.copyChunkBytes * 2)
    }

    /// Adds a row. The values must have the order and the exact types of the COPY's columns.
    package mutating func row<each Value: PostgresValue>(_ values: repeat each Value) throws {
        let start = bytes.count
        bytes.append(bigEndian: Int16(0))
        var count: UInt8 = 0
        for value in repeat each values {
            bytes.appendField(value)
            count += 1
        }
        // No table of ours has more than 255 columns.
        bytes[start + 1] = count
        if bytes.count >= PostgresLimits.copyChunkBytes { try sendBytes() }
    }

    /// Adds a row to a table whose columns are known only at run time.
    package mutating func row(of values: [some PostgresValue]) throws {
        bytes.append(bigEndian: Int16(values.count))
        for value in values { bytes.appendField(value) }
        if bytes.count >= PostgresLimits.copyChunkBytes { try sendBytes() }
    }

    fileprivate mutating func finish() throws {
        bytes.append(bigEndian: Int16(-1))
        try sendBytes()
    }

    private mutating func sendBytes() throws {
        let code = bytes.withUnsafeBytes { memory in
            PQputCopyData(link.handle, memory.bindMemory(to: CChar.self).baseAddress, Int32(memory.count))
        }
        try link.sent(code)
        try link.flush()
        bytes.removeAll(keepingCapacity: true)
    }
}

/// A row of a COPY from the server. The columns have no types, so the caller must request the right type. The row is
/// valid until the closure returns.
package struct CopiedRow: PostgresFields {
    private static let headerBytes = 19

    private var fields: [UnsafeRawBufferPointer?] = []

    /// Returns `nil` for the end mark. libpq returns one row at a time. The header precedes the first row.
    fileprivate init?(_ message: UnsafeRawBufferPointer, isFirst: Bool) throws(PostgresError) {
        let header = isFirst ? min(Self.headerBytes, message.count) : 0
        var reader = FieldReader(UnsafeRawBufferPointer(rebasing: message[header...]))
        guard let count = reader.int16(), count >= 0 else { return nil }
        fields.reserveCapacity(Int(count))
        for column in 0..<Int(count) {
            guard let field = reader.field() else {
                throw .unexpectedValue(column: column, expected: "a column of a COPY", found: "cut off")
            }
            fields.append(field.bytes)
        }
    }

    package var columns: Int { fields.count }
    package func field(_ column: Int) -> UnsafeRawBufferPointer? { fields[column] }
    package func type(_ column: Int) -> UInt32 { 0 }
}
