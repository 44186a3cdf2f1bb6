import Testing
@testable import APNs

extension `The state machine of a lane` {
    @Test func `after too many token updates nothing starts for half a minute, on any connection`() throws {
        var bench = Bench()
        bench.queued = 1
        let id = try bench.open(isProven: true)
        bench.queued = 1
        #expect(bench.start() == 1)
        bench.queued = 2
        bench.answer(PushResponse(status: 429, reason: .tooManyProviderTokenUpdates), on: id)
        #expect(bench.next() == .close(id))
        #expect(bench.next() == .wait(until: bench.now + 30 * Self.second))
        bench.advance(by: .seconds(30))
        #expect(bench.next() == .open(2))
    }

    @Test func `a stopped lane starts nothing, and waits for its answers no longer than the drain limit`() throws {
        var bench = Bench { $0.drainLimit = .seconds(10) }
        bench.queued = 3
        let id = try bench.open(isProven: true)
        #expect(bench.start() == 3)
        bench.queued = 5
        bench.machine.stop(at: bench.now)
        let end = bench.now + 10 * Self.second
        #expect(bench.next() == .wait(until: end))
        bench.advance(by: .seconds(1))
        bench.machine.stop(at: bench.now)
        bench.answer(on: id)
        #expect(bench.next() == .wait(until: end))
        bench.now = end
        #expect(bench.next() == .end)
    }

    @Test func `a stopped lane ends with its last answer`() throws {
        var bench = Bench()
        bench.queued = 2
        let id = try bench.open(isProven: true)
        #expect(bench.start() == 2)
        bench.machine.stop(at: bench.now)
        bench.answer(on: id)
        bench.answer(on: id)
        #expect(bench.next() == .end)
    }

    @Test func `a finished lane answers what it has first`() throws {
        var bench = Bench()
        bench.queued = 2
        bench.machine.finish()
        let id = try bench.open(isProven: true)
        #expect(bench.start() == 2)
        #expect(bench.next() == .wait(until: .max))
        bench.answer(on: id)
        bench.answer(on: id)
        #expect(bench.next() == .end)
    }
}
