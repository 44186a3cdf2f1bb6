import HTTP2
import Platform

/// The simulator's decision on a request: the response, and the fault script's effect on it.
struct Decision: Sendable {
    var verdict: Verdict
    /// `nil` if the request's own id is returned.
    var madeID: MessageID?
    var delayMs = 0
    /// The fault in place of the response, or in addition to it.
    var fault: FaultAction?
    /// The request's number in the log, from 1.
    var sequence = 0

    /// Whether the push was checked and its client receives no response.
    var losesAnswer: Bool { verdict.status != 0 && fault?.withholdsAnswer == true }

    mutating func take(_ action: FaultAction?) {
        guard let action else { return }
        fault = action
        switch action {
        case .answer(let status, let reason, let timestamp, let retryAfter):
            let isSilent = status == 200 || reason.isEmpty
            verdict = Verdict(status: status, reason: isSilent ? nil : reason, timestamp: timestamp)
            verdict.retryAfter = retryAfter
        case .page(let status, let body, let retryAfter):
            verdict = Verdict(status: status, page: body)
            verdict.retryAfter = retryAfter
        case .delay(let milliseconds): delayMs += milliseconds
        case .silence, .silentConnection, .reset, .cutAnswer, .goAway, .streamLimit, .close, .outage: break
        }
    }

    /// Applies a fault before the checks. Returns true if the fault makes the checks unnecessary. The request is then
    /// usually not processed.
    mutating func isSettledByFault(_ connection: PushConnection, _ request: IncomingRequest) -> Bool {
        switch fault {
        case .answer, .page: return true
        case .delay, .cutAnswer, .streamLimit, nil: return false
        case .silence, .silentConnection, .reset, .close, .outage: break
        case .goAway(let last, _, _, _, _):
            if connection.lastStream(of: last, at: request.stream) >= request.stream { return false }
        }
        leaveUntouched()
        return true
    }

    /// Marks the request as not examined, because the fault came first.
    mutating func leaveUntouched() {
        verdict = Verdict(status: 0, reason: nil)
    }
}

/// Delayed responses in the order in which they are due, which is also the order of their requests. All of them share
/// one timer.
struct DelayQueue {
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

    /// Adds a response. Returns false and adds nothing if a response with a later time is already waiting.
    mutating func append(_ decision: Decision, for stream: Int32, due: UInt64) -> Bool {
        if let last = line.last, !isEmpty, last.due > due { return false }
        line.append(Waiting(due: due, stream: stream, decision: decision))
        return true
    }

    /// Returns the next response whose time has come.
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

/// An `apns-id` that the simulator creates: a random UUID of version 4 in lower case.
struct MessageID: Hashable, Sendable {
    static let characters = PushID.textCount

    private let id: PushID

    init(using generator: inout SplitMix64) {
        id = PushID(
            high: generator.next() & ~0xf000 | 0x4000, low: generator.next() & ~(0b11 << 62) | 0b10 << 62)
    }

    /// Writes the id. `room` must hold 36 bytes.
    func write(to room: UnsafeMutableRawBufferPointer) { id.write(to: room) }

    var text: String { id.description }
}
