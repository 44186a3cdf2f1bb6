import COpenSSL
import Glibc
import HTTP2

/// What the simulator writes down: the counts, the log in memory and the log file. One user at a time.
struct RequestLog {
    private let keepsLog: Bool
    private(set) var entries: [SimulatorLogEntry] = []
    private var file: LogFile?
    /// Of the log file, by sequence: a line is written when it is known whether the answer left.
    private var open: [Int: SimulatorLogEntry] = [:]
    var counts = SimulatorCounts()

    init(keepsLog: Bool, path: String?) throws(SimulatorError) {
        self.keepsLog = keepsLog
        if let path { file = try LogFile(path: path) }
    }

    var wantsEntries: Bool { keepsLog || file != nil }

    /// Entries come in the order of their sequence, which starts at 1.
    mutating func add(_ entry: SimulatorLogEntry) {
        if keepsLog { entries.append(entry) }
        if file != nil { open[entry.sequence] = entry }
    }

    /// The answer never left.
    mutating func loseAnswer(_ sequence: Int) {
        counts.lostAnswers += 1
        change(sequence) { $0.isAnswerLost = true }
    }

    /// An accepted push that waited for its answer was not processed after all: a GOAWAY says so.
    mutating func withdraw(_ sequence: Int, isAnswerLost: Bool) {
        counts.accepted -= 1
        if isAnswerLost { counts.lostAnswers -= 1 }
        change(sequence) { entry in
            entry.status = 0
            entry.isAnswerLost = false
            entry.fault = entry.fault ?? FaultAction.goAway(lastStream: .none, reason: nil).name
        }
    }

    /// Nothing about this request changes any more.
    mutating func finish(_ sequence: Int) {
        guard let entry = open.removeValue(forKey: sequence) else { return }
        file?.append(line: entry.line)
    }

    /// Ends the log file; later requests are not written any more.
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

/// What became of a request so far, kept with it in its tag: enough to correct the counts when the connection ends.
struct RequestMark {
    enum Fate: Int {
        /// Not processed.
        case untouched
        case accepted
        case refused
        /// Accepted, and the answer is known never to leave.
        case acceptedAndLost
        /// Nothing changes any more.
        case final
    }

    var sequence: Int
    var fate: Fate

    init(sequence: Int, fate: Fate) {
        self.sequence = sequence
        self.fate = fate
    }

    /// Nil for a request that was not looked at yet.
    init?(_ request: IncomingRequest) {
        guard request.tag > 0, let fate = Fate(rawValue: request.tag & 7) else { return nil }
        self.init(sequence: request.tag >> 3, fate: fate)
    }

    func write(to request: IncomingRequest) {
        request.tag = sequence << 3 | fate.rawValue
    }
}

/// The hashes of the values of `authorization`, each worked out once: all requests of a client have the same.
struct AuthorizationHashes {
    private static let bytes = 8
    private var last: (value: [UInt8], hash: String)?

    mutating func hash(of value: UnsafeRawBufferPointer) -> String {
        if let last, value.isEqual(to: last.value) { return last.hash }
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256(value.baseAddress?.assumingMemoryBound(to: UInt8.self), value.count, &digest)
        let hash = String(
            decoding: digest.prefix(Self.bytes).flatMap { [Hex.digit($0 >> 4), Hex.digit($0 & 15)] }, as: UTF8.self)
        last = (Array(value), hash)
        return hash
    }
}

/// An append-only file written in large pieces. One user at a time.
final class LogFile {
    private static let bufferBytes = 64 * 1024

    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(path: String) throws(SimulatorError) {
        // Device tokens are in it.
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

    /// A full disk loses lines: there is nobody to tell on this thread.
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
