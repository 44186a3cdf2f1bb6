import Foundation

/// Splits a file into records. A record is one line, or in CSV several lines if quotes span them.
struct LineCutter {
    /// The maximum size of a record. A longer one is rejected, so that one open quote cannot swallow the file.
    static let recordBytesMax = 1 << 16

    enum Format {
        case lines
        case csv(delimiter: UInt8)
    }

    enum Step {
        /// The record's bytes in ``bytes``, without the line end. In CSV, its fields are in ``fields``.
        case record(Range<Int>)
        case broken(Range<Int>, reason: String)
        case end
    }

    private var source: ByteSource
    var format: Format
    private(set) var fields: [CSVField] = []
    /// The number of the first line of the latest record, from 1.
    private(set) var line = 0
    private var nextLine = 1
    /// The start of the latest record, for ``putBack()``.
    private var latestStart = 0
    /// Whether quotes in the latest record span several lines.
    private(set) var spansLines = false

    init(_ source: ByteSource, format: Format) {
        self.source = source
        self.format = format
    }

    /// Opens a file, and returns a cutter at its first record.
    ///
    /// - Parameter format: `nil` means JSON Lines if the file begins with `{`, otherwise CSV.
    /// - Returns: also the names in the header of CSV; `nil` for JSON Lines.
    static func opened(
        _ path: String, format: ImportFormat? = nil
    ) throws(ImportError) -> (cutter: LineCutter, header: [String]?) {
        var source = try ByteSource(path: path)
        try source.skipMark()
        let first = try source.peek()
        let guessed: ImportFormat = first == UInt8(ascii: "{") ? .jsonLines : .csv
        switch format ?? guessed {
        case .jsonLines: return (LineCutter(source, format: .lines), nil)
        case .csv:
            let line = source.bytes[source.start...].prefix { $0 != 0x0A && $0 != 0x0D }
            var cutter = LineCutter(source, format: .csv(delimiter: CSVHeader.delimiter(of: line)))
            let names = try CSVHeader.names(&cutter)
            return (cutter, names)
        }
    }

    var bytes: [UInt8] { source.bytes }
    var path: String { source.path }

    func close() throws { try source.close() }

    /// Makes ``next()`` return the latest record again.
    mutating func putBack() {
        source.start = latestStart
        nextLine = line
    }

    /// Puts all lines of the latest record except the first one back into the input. Use it for an unusable record,
    /// whose quotes may have swallowed good lines. Returns the range of the first line.
    mutating func keepFirstLine() -> Range<Int> {
        putBack()
        nextLine += 1
        let end = source.bytes[latestStart...].firstIndex(where: Self.endsLine) ?? source.bytes.count
        return pass(lineEndingAt: end)
    }

    /// Returns the next record that is not blank.
    mutating func next() throws(ImportError) -> Step {
        while true {
            let split = split()
            switch split {
            case .incomplete:
                if source.bytes.count - source.start > Self.recordBytesMax {
                    return try reject("the line or its quotes do not end within \(Self.recordBytesMax) bytes")
                }
                try source.fill()
            case .nothing: return .end
            case .broken(let reason): return try reject(reason)
            case .record(let range, let next, let lines):
                if range.count > Self.recordBytesMax {
                    return try reject("longer than \(Self.recordBytesMax) bytes")
                }
                latestStart = source.start
                source.start = next
                line = nextLine
                nextLine += lines
                spansLines = lines > 1
                if !isBlank(range) { return .record(range) }
            }
        }
    }

    private mutating func split() -> CSVSplit {
        guard source.start < source.bytes.count else { return source.isComplete ? .nothing : .incomplete }
        switch format {
        case .csv(let delimiter):
            return CSVField.split(
                source.bytes, from: source.start, isComplete: source.isComplete, delimiter: delimiter, into: &fields)
        case .lines:
            let start = source.start
            guard let end = source.bytes[start...].firstIndex(of: 0x0A) else {
                guard source.isComplete else { return .incomplete }
                return .record(start..<source.bytes.count, next: source.bytes.count, lines: 1)
            }
            let isCRLF = end > start && source.bytes[end - 1] == 0x0D
            return .record(start..<(isCRLF ? end - 1 : end), next: end + 1, lines: 1)
        }
    }

    /// Rejects only the first line of a broken record. The following lines are read as if that line did not exist.
    private mutating func reject(_ reason: String) throws(ImportError) -> Step {
        line = nextLine
        nextLine += 1
        var searched = source.start
        while true {
            if let end = source.bytes[searched...].firstIndex(where: Self.endsLine) {
                return .broken(pass(lineEndingAt: end), reason: reason)
            }
            if source.isComplete { return .broken(pass(lineEndingAt: source.bytes.count), reason: reason) }
            // Keep only the beginning of the line, because the rest of it may be of any length.
            let kept = min(source.bytes.count - source.start, Self.recordBytesMax)
            try source.fillKeeping(kept)
            searched = source.start + kept
        }
    }

    private mutating func pass(lineEndingAt end: Int) -> Range<Int> {
        let range = source.start..<end
        var next = min(end + 1, source.bytes.count)
        if end + 1 < source.bytes.count, source.bytes[end] == 0x0D, source.bytes[end + 1] == 0x0A { next = end + 2 }
        source.start = next
        return range
    }

    private static func endsLine(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    private func isBlank(_ range: Range<Int>) -> Bool {
        source.bytes[range].allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    }
}

/// The bytes of a file in order, read in chunks. Used bytes are dropped, so that memory use stays constant. A pipe or a
/// terminal may provide no data for any time. Reading ends if the task is cancelled in the meantime.
struct ByteSource {
    private static let chunkBytes = 1 << 18
    /// The interval between checks for cancellation while no data arrives.
    private static let askEveryMilliseconds: Int32 = 100

    let path: String
    private let file: FileHandle
    private(set) var bytes: [UInt8] = []
    /// The index of the first unused byte.
    var start = 0
    /// Whether ``bytes`` reaches the end of the file.
    private(set) var isComplete = false

    /// Opens a file. `-` means standard input.
    init(path: String) throws(ImportError) {
        self.path = path == "-" ? "standard input" : path
        if path == "-" {
            file = .standardInput
            return
        }
        // Opening a pipe would otherwise wait for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Adds the next chunk after the unused bytes.
    mutating func fill() throws(ImportError) {
        guard !isComplete else { return }
        let chunk = try readChunk()
        bytes.removeSubrange(..<start)
        start = 0
        isComplete = chunk.isEmpty
        bytes.append(contentsOf: chunk)
    }

    /// Waits for the next bytes. Returns an empty slice at the end of the file.
    private func readChunk() throws(ImportError) -> ArraySlice<UInt8> {
        var chunk = [UInt8](repeating: 0, count: Self.chunkBytes)
        while true {
            var waiting = pollfd(fd: file.fileDescriptor, events: Int16(POLLIN), revents: 0)
            let isReady = poll(&waiting, 1, Self.askEveryMilliseconds) > 0
            if Task.isCancelled { throw .stopped(path: path) }
            guard isReady else { continue }
            let count = read(file.fileDescriptor, &chunk, Self.chunkBytes)
            if count >= 0 { return chunk[..<count] }
            guard errno == EAGAIN || errno == EINTR else {
                throw .unreadable(path: path, reason: String(cString: strerror(errno)))
            }
        }
    }

    /// Truncates the unused bytes to the first `count`, then does the same as ``fill()``.
    mutating func fillKeeping(_ count: Int) throws(ImportError) {
        bytes.removeSubrange((start + count)...)
        try fill()
    }

    /// Skips UTF-8's byte order mark, and refuses UTF-16.
    mutating func skipMark() throws(ImportError) {
        while bytes.count < 3, !isComplete { try fill() }
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { start = 3 }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            throw .header(["\(path):1:1: error: this is UTF-16 text; save it as UTF-8"])
        }
    }

    /// Returns the first byte that is not a blank, without consuming it.
    mutating func peek() throws(ImportError) -> UInt8? {
        while true {
            if let byte = bytes[start...].first(where: { $0 > 0x20 }) { return byte }
            if isComplete { return nil }
            try fill()
        }
    }

    func close() throws {
        if path != "standard input" { try file.close() }
    }
}
