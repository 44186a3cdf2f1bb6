import COpenSSL
import Glibc
import HTTP2
import Platform

/// The simulator's records: the counts, the log in memory and the log file. The caller's lock protects it.
struct RequestLog {
    private let keepsLog: Bool
    private(set) var entries: [SimulatorLogEntry] = []
    private var file: LogFile?
    /// The entries not yet in the log file, by sequence. A line is written once it is known whether the response was
    /// sent.
    private var open: [Int: SimulatorLogEntry] = [:]
    var counts = SimulatorCounts()

    init(keepsLog: Bool, path: String?) throws(SimulatorError) {
        self.keepsLog = keepsLog
        if let path { file = try LogFile(path: path) }
    }

    var wantsEntries: Bool { keepsLog || file != nil }

    /// Adds an entry. Entries come in the order of their sequence, which starts at 1.
    mutating func add(_ entry: SimulatorLogEntry) {
        if keepsLog { entries.append(entry) }
        if file != nil { open[entry.sequence] = entry }
    }

    /// Records that the response was never sent.
    mutating func loseAnswer(_ sequence: Int) {
        counts.lostAnswers += 1
        change(sequence) { $0.isAnswerLost = true }
    }

    /// Records that an accepted push was not processed, because a GOAWAY excluded it before its response was sent.
    mutating func withdraw(_ sequence: Int, isAnswerLost: Bool) {
        counts.accepted -= 1
        if isAnswerLost { counts.lostAnswers -= 1 }
        change(sequence) { entry in
            entry.status = 0
            entry.isAnswerLost = false
            entry.fault = entry.fault ?? FaultAction.goAway(lastStream: .none, reason: nil).name
        }
    }

    /// Writes the final entry of a request to the file.
    mutating func finish(_ sequence: Int) {
        guard let entry = open.removeValue(forKey: sequence) else { return }
        file?.append(line: entry.line)
        // Write the buffer while no entry is open, so that a reader of the file finds every request.
        if open.isEmpty { file?.flush() }
    }

    /// Ends the log file. Later requests are not written any more.
    mutating func closeFile() {
        for entry in open.values.sorted(by: { $0.sequence < $1.sequence }) { file?.append(line: entry.line) }
        open = [:]
        file = nil
    }

    private mutating func change(_ sequence: Int, _ body: (inout SimulatorLogEntry) -> Void) {
        if keepsLog { body(&entries[sequence - 1]) }
        if var entry = open[sequence] {
            body(&entry)
            open[sequence] = entry
        }
    }
}

/// The current outcome of a request, stored in its tag, for correcting the counts when the connection ends.
struct RequestMark {
    enum Outcome: Int {
        /// Not processed, or rejected with a response that is known to be lost.
        case untouched
        case accepted
        case refused
        /// Accepted, and the response is known to be lost.
        case acceptedAndLost
        /// The outcome is final.
        case final
    }

    var sequence: Int
    var outcome: Outcome

    init(sequence: Int, outcome: Outcome) {
        self.sequence = sequence
        self.outcome = outcome
    }

    /// Returns `nil` for a request that was not examined yet.
    init?(_ request: IncomingRequest) {
        guard request.tag > 0, let outcome = Outcome(rawValue: request.tag & 7) else { return nil }
        self.init(sequence: request.tag >> 3, outcome: outcome)
    }

    func write(to request: IncomingRequest) {
        request.tag = sequence << 3 | outcome.rawValue
    }
}

/// The hashes of `authorization` values. The last one is cached, because all requests of a client have the same value.
struct AuthorizationHashes {
    private static let bytes = 8
    private var last: (value: [UInt8], hash: String)?

    mutating func hash(of value: UnsafeRawBufferPointer) -> String {
        if let last, value.isEqual(to: last.value) { return last.hash }
        let hash = Hex.text(Array(Digest.sha256(value).prefix(Self.bytes)))
        last = (Array(value), hash)
        return hash
    }
}

/// An append-only file that is written in large pieces. It is not thread-safe.
final class LogFile {
    private static let bufferBytes = 64 * 1024

    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(path: String) throws(SimulatorError) {
        // The file contains device tokens.
        descriptor = try TextFile.open(path, O_APPEND)
    }

    deinit {
        flush()
        close(descriptor)
    }

    func append(line: [UInt8]) {
        buffer.append(contentsOf: line)
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= Self.bufferBytes { flush() }
    }

    /// Writes the buffer. A full disk loses lines, because this thread has no caller to report to.
    func flush() {
        var offset = 0
        while offset < buffer.count {
            let count = buffer.withUnsafeBytes {
                write(descriptor, $0.baseAddress.map { $0 + offset }, $0.count - offset)
            }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            offset += count
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
