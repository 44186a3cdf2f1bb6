/// Answers that wait for their time, the nearest first, in the order they came: answers that all wait equally long need
/// one timer, not one each.
struct DelayLine {
    private struct Waiting {
        /// Nanoseconds of the monotonic clock.
        var due: UInt64
        var stream: Int32
        var decision: Decision
    }

    private var line: [Waiting] = []
    private var first = 0

    var isEmpty: Bool { first == line.count }
    var nextDue: UInt64? { isEmpty ? nil : line[first].due }

    /// False, and nothing is kept, when an answer that is due later stands in line already.
    mutating func append(_ decision: Decision, for stream: Int32, due: UInt64) -> Bool {
        if let last = line.last, !isEmpty, last.due > due { return false }
        line.append(Waiting(due: due, stream: stream, decision: decision))
        return true
    }

    /// The next answer whose time has come.
    mutating func take(dueAt now: UInt64) -> (stream: Int32, decision: Decision)? {
        guard !isEmpty, line[first].due <= now else { return nil }
        let next = line[first]
        first += 1
        if isEmpty {
            line.removeAll(keepingCapacity: true)
            first = 0
        } else if first >= 1024, first * 2 >= line.count {
            line.removeFirst(first)
            first = 0
        }
        return (next.stream, next.decision)
    }
}
