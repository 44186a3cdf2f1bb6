import Platform
import Testing

@testable import APNs

/// The value alone, with a clock that the test sets.
@Suite struct `The state machine of a lane` {
    typealias Bench = LaneBench
    static let second = LaneBench.second
    static let accepted = LaneBench.accepted
    static let endpoint = LaneBench.endpoint
    static let trouble = LaneBench.trouble

    // MARK: Opening

    @Test func `a lane without pushes opens nothing and ends when it is finished`() {
        var bench = Bench()
        #expect(bench.next() == .wait(until: .max))
        bench.machine.finish()
        #expect(bench.next() == .end)
    }

    @Test func `the first push opens a connection, once, and starts when it stands`() {
        var bench = Bench()
        bench.queued = 5
        #expect(bench.next() == .open(1))
        #expect(bench.next() == .wait(until: .max))
        bench.machine.opened(1, streamLimit: 1000, at: bench.now)
        #expect(bench.next() == .start(atMost: 1, on: 1))
        #expect(bench.machine.isCurrent(1))
    }

    @Test(arguments: [(0.0, 1000), (1.0, 750)])
    func `connections are opened no faster than the first wait, less jitter`(jitter: Double, milliseconds: Int) throws {
        var bench = Bench(jitter: jitter)
        bench.queued = 5
        let first = try bench.open(isProven: true)
        bench.queued = 5
        bench.machine.closed(first, Self.trouble, at: bench.now)
        let due = bench.now + UInt64(milliseconds) * 1_000_000
        #expect(bench.next() == .wait(until: due))
        bench.now = due
        #expect(bench.next() == .open(2))
    }

    @Test func `nothing starts while the provider token is on its way`() throws {
        var bench = Bench()
        bench.queued = 5
        _ = try bench.open(isProven: true)
        let due = bench.now + 20_000_000
        bench.machine.hold(until: due)
        #expect(bench.next() == .wait(until: due))
        bench.now = due
        #expect(bench.start() == 5)
    }

    // MARK: Warm-up

    @Test func `one push at a time until one is accepted, then as many as peer and lane allow`() throws {
        var bench = Bench { $0.streamsMax = 50 }
        bench.queued = 500
        let id = try bench.open(streams: 100)
        #expect(bench.start() == 1)
        #expect(bench.next() == .wait(until: .max))
        bench.answer(on: id)
        #expect(bench.start() == 50)
        #expect(bench.next() == .wait(until: .max))
        bench.machine.heard(id, streamLimit: 20, at: bench.now)
        for _ in 0..<40 { bench.answer(on: id) }
        #expect(bench.start() == 10)
        #expect(bench.machine.streamLimit(at: bench.now) == 20)
    }

    @Test func `a transport that does not see SETTINGS waits a round before it goes wide`() throws {
        var bench = Bench(seesSettings: false)
        bench.queued = 500
        let id = try bench.open(streams: .max)
        #expect(bench.start() == 1)
        bench.answer(on: id)
        #expect(bench.next() == .wait(until: bench.now + 1_000_000))
        bench.now += 1
        #expect(bench.start() == 499)
    }

    @Test func `a connection that libcurl makes anew is warmed up anew`() throws {
        var bench = Bench(seesSettings: false)
        bench.queued = 1
        let id = try bench.open(streams: .max, isProven: true)
        bench.queued = 10
        bench.machine.reconnected(id, at: bench.now)
        #expect(bench.start() == 1)
        #expect(bench.machine.lost(on: id, Self.trouble, at: bench.now) == .heldOff(failures: 1))
    }

    // MARK: Probing

    @Test func `an idle connection is pinged, and aborted when it stays silent`() throws {
        var bench = Bench(sendsPing: true) { limits in
            limits.idlePingInterval = .seconds(60)
            limits.pingDeadline = .seconds(5)
        }
        bench.queued = 1
        let id = try bench.open()
        bench.queued = 0
        #expect(bench.next() == .wait(until: bench.now + 60 * Self.second))
        bench.advance(by: .seconds(60))
        #expect(bench.next() == .ping(id))
        #expect(bench.next() == .wait(until: bench.now + 5 * Self.second))
        bench.advance(by: .seconds(5))
        #expect(bench.next() == .abort(id, .silent))
        #expect(bench.next() == .wait(until: .max))
    }

    // MARK: Retiring and replacing

    @Test func `after GOAWAY nothing starts, the replacement opens first, and the old one is closed when it is idle`()
        throws
    {
        var bench = Bench()
        bench.queued = 1
        let old = try bench.open(isProven: true)
        bench.queued = 3
        #expect(bench.start() == 3)
        bench.queued = 10
        bench.advance(by: .seconds(10))
        #expect(bench.machine.goingAway(old, Self.trouble, isEnhanceYourCalm: false, at: bench.now) == .retired)
        #expect(!bench.machine.isCurrent(old))
        #expect(bench.next() == .open(2))
        bench.machine.opened(2, streamLimit: 100, at: bench.now)
        #expect(bench.start() == 1)
        for _ in 0..<3 { bench.answer(on: old) }
        #expect(bench.next() == .close(old))
        #expect(bench.next() == .wait(until: .max))
        bench.machine.closed(old, Self.trouble, at: bench.now)
        bench.answer(on: 2)
        #expect(bench.start() == 9)
    }

    @Test func `GOAWAY before the first answer, or as a call to order, holds the lane off`() throws {
        var bench = Bench()
        bench.queued = 1
        let first = try bench.open()
        let cold = bench.machine.goingAway(first, Self.trouble, isEnhanceYourCalm: false, at: bench.now)
        #expect(cold == .heldOff(failures: 1))
        bench.advance(by: .seconds(60))
        let second = try bench.open(isProven: true)
        let called = bench.machine.goingAway(second, Self.trouble, isEnhanceYourCalm: true, at: bench.now)
        #expect(called == .heldOff(failures: 1))
    }

    @Test func `misses in a row retire a connection and an answer between them forgives`() throws {
        var bench = Bench { $0.missedDeadlinesMax = 3 }
        bench.queued = 1
        let id = try bench.open(isProven: true)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .goOn)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .goOn)
        bench.machine.answered(Self.accepted, on: id, at: bench.now)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .goOn)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .goOn)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .retired)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .goOn)
        #expect(bench.next() == .close(id))
    }

    @Test func `without PING a missed deadline lets nothing start until an answer comes or none is waited for`() throws
    {
        var bench = Bench(seesSettings: false)
        bench.queued = 10
        let id = try bench.open(streams: .max, isProven: true)
        bench.now += 1
        bench.queued = 3
        #expect(bench.start() == 3)
        bench.queued = 5
        bench.machine.ended(on: id)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .goOn)
        #expect(bench.next() == .wait(until: .max))
        bench.answer(on: id)
        #expect(bench.next() == .start(atMost: 5, on: id))
        bench.machine.ended(on: id)
        #expect(bench.machine.missedDeadline(on: id, at: bench.now) == .goOn)
        #expect(bench.next() == .start(atMost: 5, on: id))
    }

    @Test(arguments: [PushReason.expiredProviderToken, .unrelatedKeyIdInToken, .shutdown, .idleTimeout])
    func `an answer about the connection retires it`(reason: PushReason) throws {
        var bench = Bench()
        bench.queued = 1
        let id = try bench.open(isProven: true)
        bench.queued = 1
        #expect(bench.start() == 1)
        bench.queued = 1
        bench.advance(by: .seconds(1))
        bench.answer(PushResponse(status: 403, reason: reason), on: id)
        #expect(bench.next() == .open(2))
        #expect(bench.next() == .close(id))
    }

    @Test func `a connection whose stream ids are used up is replaced`() throws {
        var bench = Bench()
        bench.queued = 2
        let id = try bench.open(isProven: true)
        bench.advance(by: .seconds(1))
        bench.machine.exhausted(id)
        #expect(bench.next() == .open(2))
    }

    @Test func `of more than four retiring connections the oldest is aborted`() throws {
        var bench = Bench()
        for _ in 1...5 {
            bench.queued = 1
            let id = try bench.open(isProven: true)
            bench.queued = 1
            #expect(bench.start() == 1)
            bench.machine.exhausted(id)
            bench.advance(by: .seconds(1))
        }
        #expect(bench.next() == .open(6))
        #expect(bench.next() == .abort(1, .crowded))
        #expect(bench.next() == .wait(until: .max))
    }

    @Test func `eight refusals in a row cost the connection, and each cools it down`() throws {
        var bench = Bench()
        bench.queued = 100
        let id = try bench.open(isProven: true)
        for _ in 1...7 {
            #expect(bench.machine.refused(on: id, at: bench.now) == .goOn)
            #expect(bench.next() == .start(atMost: 1, on: id))
        }
        #expect(bench.machine.refused(on: id, at: bench.now) == .heldOff(failures: 1))
    }

    @Test func `a peer that allows no stream for as long as a request may take is left`() throws {
        var bench = Bench { $0.requestDeadline = .seconds(20) }
        bench.queued = 1
        let id = try bench.open(streams: 0)
        #expect(bench.next() == .wait(until: bench.now + 20 * Self.second))
        bench.advance(by: .seconds(20))
        #expect(bench.next() == .close(id))
        #expect(bench.machine.failures == 1)
    }

    // MARK: Reading before judging

    @Test func `a drain ends when what had come by its end was read`() throws {
        var bench = Bench()
        bench.queued = 1
        _ = try bench.open()
        _ = bench.start()
        bench.machine.stop(at: bench.now)
        let read = bench.now
        bench.advance(by: .seconds(26))
        #expect(bench.next(readUntil: read) == .wait(until: read + 20 * Self.second))
        #expect(bench.next() == .end)
    }

    @Test func `a PING without an answer ends a connection when everything was read`() throws {
        var bench = Bench(sendsPing: true) { $0.pingDeadline = .seconds(5) }
        bench.queued = 1
        let id = try bench.open()
        _ = bench.start()
        _ = bench.next()
        bench.advance(by: .seconds(5))
        #expect(bench.next() == .ping(id))
        let read = bench.now
        bench.advance(by: .seconds(26))
        #expect(bench.next(readUntil: read) == .wait(until: read + 5 * Self.second))
        bench.machine.heard(id, streamLimit: 1000, at: bench.now)
        #expect(bench.next() == .wait(until: bench.now + 5 * Self.second))
    }

    // MARK: Back-off and giving up

    @Test(arguments: [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (500, 60)])
    func `the wait doubles from a second to a minute`(failures: Int, seconds: Int) {
        let backOff = Backoff(first: .seconds(1), longest: .seconds(60), jitter: { 0 })
        #expect(backOff.delay(afterFailures: failures) == .seconds(seconds))
        let early = Backoff(first: .seconds(1), longest: .seconds(60), jitter: { 1 })
        #expect(early.delay(afterFailures: failures) == .seconds(seconds) * 0.75)
    }

    @Test func `failed attempts wait longer and longer, until the lane gives up and ends`() {
        var bench = Bench { $0.connectAttemptsMax = 3 }
        bench.queued = 5
        for (attempt, seconds) in [1: 1, 2: 2].sorted(by: { $0.key < $1.key }) {
            #expect(bench.next() == .open(attempt))
            let consequence = bench.machine.openFailed(attempt, Self.trouble, isFinal: false, at: bench.now)
            #expect(consequence == .heldOff(failures: attempt))
            #expect(bench.next() == .wait(until: bench.now + UInt64(seconds) * Self.second))
            bench.advance(by: .seconds(seconds))
        }
        #expect(bench.next() == .open(3))
        #expect(bench.machine.openFailed(3, Self.trouble, isFinal: false, at: bench.now) == .gaveUp)
        #expect(bench.machine.failure == Self.trouble)
        #expect(bench.next() == .end)
    }

    @Test func `a connection that ends before its first answer counts as a failed attempt`() throws {
        var bench = Bench { $0.connectAttemptsMax = 3 }
        bench.queued = 1
        let first = try bench.open()
        #expect(bench.machine.closed(first, Self.trouble, at: bench.now) == .heldOff(failures: 1))
        bench.advance(by: .seconds(1))
        let second = try bench.open()
        #expect(bench.machine.missedDeadline(on: second, at: bench.now) == .heldOff(failures: 2))
        #expect(bench.next() == .close(second))
        bench.machine.closed(second, Self.trouble, at: bench.now)
        bench.advance(by: .seconds(2))
        let third = try bench.begin()
        #expect(bench.machine.openFailed(third, Self.trouble, isFinal: false, at: bench.now) == .gaveUp)
    }

    @Test func `a failed connect does not shorten the pause after too many token updates`() throws {
        var bench = Bench()
        bench.queued = 1
        let old = try bench.open(isProven: true)
        bench.queued = 2
        #expect(bench.start() == 2)
        bench.queued = 10
        bench.advance(by: .seconds(10))
        #expect(bench.machine.goingAway(old, Self.trouble, isEnhanceYourCalm: false, at: bench.now) == .retired)
        let next = try bench.begin()
        bench.answer(PushResponse(status: 429, reason: .tooManyProviderTokenUpdates), on: old)
        let due = bench.now + 30 * Self.second
        #expect(
            bench.machine.openFailed(next, Self.trouble, isFinal: false, at: bench.now) == .heldOff(failures: 1))
        bench.now = due - 1
        #expect(throws: Bench.NothingOpened.self) { try bench.begin() }
        bench.now = due
        _ = try bench.begin()
    }

    @Test func `an answer forgets earlier failures`() throws {
        var bench = Bench { $0.connectAttemptsMax = 2 }
        bench.queued = 1
        let first = try bench.begin()
        let refused = bench.machine.openFailed(first, Self.trouble, isFinal: false, at: bench.now)
        #expect(refused == .heldOff(failures: 1))
        bench.advance(by: .seconds(1))
        let second = try bench.open(isProven: true)
        #expect(bench.machine.failures == 0)
        #expect(bench.machine.closed(second, Self.trouble, at: bench.now) == .goOn)
        bench.queued = 1
        bench.advance(by: .seconds(1))
        let third = try bench.open()
        #expect(bench.machine.closed(third, Self.trouble, at: bench.now) == .heldOff(failures: 1))
    }

    @Test func `a service that was there before is waited for longer`() throws {
        var bench = Bench { limits in
            limits.connectAttemptsMax = 2
            limits.reconnectAttemptsMax = 4
        }
        bench.queued = 1
        let first = try bench.begin()
        let refused = bench.machine.openFailed(first, Self.trouble, isFinal: false, at: bench.now)
        #expect(refused == .heldOff(failures: 1))
        bench.advance(by: .seconds(1))
        let proven = try bench.open(isProven: true)
        bench.machine.exhausted(proven)
        bench.queued = 1
        for failures in 1...4 {
            bench.advance(by: .seconds(60))
            let id = try bench.begin()
            let consequence = bench.machine.openFailed(id, Self.trouble, isFinal: false, at: bench.now)
            #expect(consequence == (failures < 4 ? .heldOff(failures: failures) : .gaveUp))
        }
    }

    @Test func `many requests that report one lost connection count once`() throws {
        var bench = Bench(seesSettings: false)
        bench.queued = 1
        let id = try bench.open(streams: .max)
        #expect(bench.machine.lost(on: id, Self.trouble, at: bench.now) == .heldOff(failures: 1))
        #expect(bench.machine.lost(on: id, Self.trouble, at: bench.now) == .goOn)
        #expect(bench.machine.openFailed(id, Self.trouble, isFinal: false, at: bench.now) == .goOn)
        #expect(bench.machine.failures == 1)
    }

    @Test func `a final fault ends the lane without another attempt`() {
        var bench = Bench()
        bench.queued = 1
        #expect(bench.next() == .open(1))
        let error = TransportError.untrusted(Self.endpoint, reason: "unknown authority")
        #expect(bench.machine.openFailed(1, error, isFinal: true, at: bench.now) == .gaveUp)
        #expect(bench.machine.failure == error)
        bench.machine.fail(Self.trouble, at: bench.now)
        #expect(bench.machine.failure == error)
        #expect(bench.next() == .end)
    }

    // MARK: Waiting and draining
}
