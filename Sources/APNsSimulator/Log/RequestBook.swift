/// What the simulator writes down: the counts, the log in memory and the log file. One user at a time.
struct RequestBook {
    private let keepsLog: Bool
    private var entries: [SimulatorLogEntry] = []
    private var file: LogFile?
    /// Of the log file, by sequence: a line is written when it is known whether the answer left.
    private var open: [Int: SimulatorLogEntry] = [:]
    var counts = SimulatorCounts()

    init(keepsLog: Bool, path: String?) throws(SimulatorError) {
        self.keepsLog = keepsLog
        if let path { file = try LogFile(path: path) }
    }

    var wantsEntries: Bool { keepsLog || file != nil }
    var log: [SimulatorLogEntry] { entries }

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
