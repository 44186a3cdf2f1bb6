@testable import APNs
import Model
import Platform
import Senders
@testable import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

/// What a run does while its store takes nothing.
@Suite(.timeLimit(.minutes(10))) struct `A run whose store takes nothing` {
    private static let locked = StoreError.busy(path: "/s")
    private static let window: Duration = .seconds(600)
    private let clock = ManualClock()

    private func control() -> RunControl {
        RunControl(counts: DeliveryCounts(), isFrozen: true, trustWindow: Self.window)
    }

    private static func count(_ asked: Watched<Int>) -> Int {
        asked.change { count in
            count += 1
            return count
        }
    }

    private var mayStart: (RunControl) -> Bool { { $0.trust.gate.answer(at: BootClock.now()) == .open } }

    /// Waits for the store until `isBack`, while the clock goes on by seconds.
    private func insist(_ control: RunControl, until isBack: @escaping @Sendable () -> Bool) async -> (any Error)? {
        async let driver: Void = clock.run(inShortStepsOf: .milliseconds(900)) {}
        async let second: Void = clock.run(inStepsOf: .seconds(5))
        var failure: (any Error)?
        do {
            try await control.storeBackoff.insisting(clock.clock) { if !isBack() { throw Self.locked } }
        } catch {
            failure = error
        }
        clock.release()
        _ = await (driver, second)
        return failure
    }

    @Test(arguments: [
        StopReason.stateChanged(.paused), .unreachable("away"), .breaker("wrong"), .stopRequested,
    ])
    func `ends within its patience once a stop is asked for, whatever else has stopped it before`(
        first: StopReason
    ) async throws {
        let control = control()
        control.stop(first)
        control.stop(.stopRequested)
        let start = clock.uptime
        // Far more often than the patience lasts, so that a failure ends as well.
        let asked = Watched(0)
        let failure = await insist(control) { Self.count(asked) > 1000 }
        #expect(failure as? StoreError == Self.locked)
        #expect(clock.uptime - start >= .seconds(10) && clock.uptime - start <= .seconds(20))
    }

    @Test func `counts its patience by a clock that nobody sets`() async throws {
        let control = control()
        control.stop(.stopRequested)
        let start = clock.uptime
        let asked = Watched(0)
        let failure = await insist(control) { [clock] in
            let times = Self.count(asked)
            if times == 3 { clock.setWall(by: .seconds(-3600)) }
            return times > 1000
        }
        #expect(failure as? StoreError == Self.locked)
        #expect(clock.uptime - start <= .seconds(20))
    }

    @Test func `starts nothing before somebody has asked for it again`() async throws {
        let control = control()
        #expect(mayStart(control))
        let asked = Watched(0)
        #expect(await insist(control) { Self.count(asked) > 3 } == nil)
        #expect(Self.count(asked) == 5 && control.storeBackoff.wait == nil)
        #expect(!mayStart(control), "it may have been cancelled meanwhile")
        control.renewTrust(from: .now())
        #expect(mayStart(control))
    }

    @Test func `goes on with a sign of life that is taken, once nobody waits any more`() throws {
        let control = control()
        control.storeBackoff.storeRefused(Self.locked, at: clock.now)
        #expect(control.storeBackoff.wait == StoreWait(since: clock.now, reason: .locked))
        #expect(!mayStart(control))
        control.renewTrust(from: .now())
        #expect(mayStart(control) && control.storeBackoff.wait == nil)
    }

    @Test func `goes on to say that no lease is taken, whatever heartbeats are`() throws {
        let control = control()
        let wait = StoreWait(since: clock.now, reason: .diskFull)
        control.storeBackoff.refused(.lease, .diskFull(path: "/s"), at: clock.now)
        #expect(!mayStart(control) && control.storeBackoff.wait == wait)
        control.renewTrust(from: .now())
        #expect(mayStart(control) && control.storeBackoff.wait == wait)
        control.storeBackoff.taken(.lease)
        #expect(control.storeBackoff.wait == nil)
    }

    @Test func `goes on to say that no heartbeat is taken, whatever leases are`() throws {
        let control = control()
        let wait = StoreWait(since: clock.now, reason: .away)
        control.storeBackoff.refused(.heartbeat, .unreachable(path: "/s", reason: "x"), at: clock.now)
        control.storeBackoff.taken(.lease)
        #expect(!mayStart(control) && control.storeBackoff.wait == wait)
        control.storeBackoff.taken(.heartbeat)
        control.renewTrust(from: .now())
        #expect(mayStart(control) && control.storeBackoff.wait == nil)
    }

    @Test func `says so where other processes can read it`() throws {
        let folder = try TemporaryDirectory()
        let senders = SenderFolder(besideStore: folder.file("s.sqlite"), command: "run", now: { [clock] in clock.now })
        let registration = try senders.register()
        let journal = try PushJournal(
            path: registration.journalPath,
            identity: .current(store: PushID(high: 1, low: 2), sender: registration.number))
        let control = RunControl(
            counts: DeliveryCounts(), isFrozen: true, trustWindow: Self.window, journal: journal)
        #expect(senders.holder(registration.name).storeWait == nil)
        control.storeBackoff.storeRefused(.diskFull(path: "/s"), at: clock.now)
        #expect(senders.holder(registration.name).storeWait == StoreWait(since: clock.now, reason: .diskFull))
        control.renewTrust(from: .now())
        #expect(senders.holder(registration.name).storeWait == nil)
        control.storeBackoff.refused(.lease, .diskFull(path: "/s"), at: clock.now)
        #expect(senders.holder(registration.name).storeWait != nil)
        control.storeBackoff.runEnded()
        #expect(senders.holder(registration.name).storeWait == nil)
        registration.release()
    }
}
