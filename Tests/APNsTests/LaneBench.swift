@testable import APNs
import Platform

/// A machine with its clock and what its lane holds.
struct LaneBench {
    static let second: UInt64 = 1_000_000_000
    static let accepted = PushResponse(status: 200)
    static let endpoint = PushEndpoint(host: "example.com")
    static let trouble = TransportError.unreachable(endpoint, reason: "refused")

    typealias Action = LaneStateMachine.Action

    var machine: LaneStateMachine
    var now: UInt64 = 1000 * second
    var queued = 0
    var unanswered = 0

    init(
        seesSettings: Bool = true, sendsPing: Bool = false, jitter: Double = 0,
        _ change: (inout LaneLimits) -> Void = { _ in }
    ) {
        var limits = LaneLimits()
        change(&limits)
        machine = LaneStateMachine(
            endpoint: Self.endpoint, limits: limits,
            backOff: Backoff(first: .seconds(1), longest: .seconds(60), jitter: { jitter }),
            traits: .init(seesSettings: seesSettings, sendsPing: sendsPing))
    }

    /// - Parameter readUntil: when the sockets were read; nil: just now.
    mutating func next(readUntil: UInt64? = nil) -> Action {
        machine.next(now, readUntil: readUntil ?? now, queued: queued, unanswered: unanswered)
    }

    /// Starts what the machine says, as a lane does.
    mutating func start() -> Int {
        guard case .start(let count, let id) = next() else { return 0 }
        queued -= count
        unanswered += count
        machine.started(count, on: id)
        return count
    }

    mutating func answer(_ answer: PushResponse = accepted, on id: Int) {
        unanswered -= 1
        machine.ended(on: id)
        machine.answered(answer, on: id, at: now)
    }

    mutating func advance(by duration: Duration) { now += duration.nanoseconds }

    struct NothingOpened: Error {}

    /// The connection that is to be opened.
    mutating func begin() throws -> Int {
        guard case .open(let id) = next() else { throw NothingOpened() }
        return id
    }

    /// With one connection that stands; `isProven`: and has answered.
    mutating func open(streams: Int = 1000, isProven: Bool = false) throws -> Int {
        let id = try begin()
        machine.opened(id, streamLimit: streams, at: now)
        guard isProven else { return id }
        queued += 1
        _ = start()
        answer(on: id)
        return id
    }
}
