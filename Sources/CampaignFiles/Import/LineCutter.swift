import Foundation

/// Cuts a file into records, one line each or, in CSV, more where quotes span lines.
struct LineCutter {
    /// A record longer than this is rejected, so that one open quote cannot swallow a file.
    static let recordBytesMax = 1 << 16

    enum Format {
        case lines
        case csv(delimiter: UInt8)
    }

    enum Step {
        /// The record's bytes in ``bytes`` without the line end; in CSV its fields are in ``fields``.
        case record(Range<Int>)
        case broken(Range<Int>, reason: String)
        case end
    }

    private var source: ByteSource
    var format: Format
    private(set) var fields: [CSVField] = []
    /// The line the latest record began in, from 1.
    private(set) var line = 0
    private var nextLine = 1
    /// Where the latest record began, for ``putBack()``.
    private var latestStart = 0
    /// True when the latest record covers several lines by quotes.
    private(set) var spansLines = false

    init(_ source: ByteSource, format: Format) {
        self.source = source
        self.format = format
    }

    var bytes: [UInt8] { source.bytes }
    var path: String { source.path }

    func close() throws { try source.close() }

    /// Makes the record that ``next()`` has just given the next one again.
    mutating func putBack() {
        source.start = latestStart
        nextLine = line
    }

    /// Gives back all but the first line of the record that ``next()`` has just given, when it turned out to be of no
    /// use: its quotes may have swallowed good lines. The range is that first line's.
    mutating func keepFirstLine() -> Range<Int> {
        putBack()
        nextLine += 1
        let end = source.bytes[latestStart...].firstIndex(where: Self.endsLine) ?? source.bytes.count
        return pass(lineEndingAt: end)
    }

    /// The next record that is not blank.
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

    /// Gives up on the first line of a broken record only, so that the lines behind it are read as if it were not there.
    private mutating func reject(_ reason: String) throws(ImportError) -> Step {
        line = nextLine
        nextLine += 1
        var searched = source.start
        while true {
            if let end = source.bytes[searched...].firstIndex(where: Self.endsLine) {
                return .broken(pass(lineEndingAt: end), reason: reason)
            }
            if source.isComplete { return .broken(pass(lineEndingAt: source.bytes.count), reason: reason) }
            // Of a line without end only the beginning is kept.
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

/// The bytes of a file in order, read in chunks; what has been used is dropped, so that memory stays flat. A pipe or a
/// terminal may give nothing for as long as it likes: a task that is cancelled meanwhile ends the reading.
struct ByteSource {
    private static let chunkBytes = 1 << 18
    /// How often it is asked, while nothing arrives, whether the task was cancelled.
    private static let askEveryMilliseconds: Int32 = 100

    let path: String
    private let file: FileHandle
    private(set) var bytes: [UInt8] = []
    /// The first byte that is not used yet.
    var start = 0
    /// True when ``bytes`` reaches to the end of the file.
    private(set) var isComplete = false

    /// `-` is standard input.
    init(path: String) throws(ImportError) {
        self.path = path == "-" ? "standard input" : path
        if path == "-" {
            file = .standardInput
            return
        }
        // To open a pipe waits for its writer otherwise.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
        file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Adds the next chunk behind what is not used yet.
    mutating func fill() throws(ImportError) {
        guard !isComplete else { return }
        let chunk = try readChunk()
        bytes.removeSubrange(..<start)
        start = 0
        isComplete = chunk.isEmpty
        bytes.append(contentsOf: chunk)
    }

    /// Waits for the next bytes; none at the end of the file.
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

    /// Like ``fill()``, after cutting what is not used yet to its first `count` bytes.
    mutating func fillKeeping(_ count: Int) throws(ImportError) {
        bytes.removeSubrange((start + count)...)
        try fill()
    }

    /// Passes over UTF-8's byte order mark; refuses UTF-16.
    mutating func skipMark() throws(ImportError) {
        while bytes.count < 3, !isComplete { try fill() }
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { start = 3 }
        if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            throw .header(["\(path):1:1: error: this is UTF-16 text; save it as UTF-8"])
        }
    }

    /// The first byte that is no blank, without using it.
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
