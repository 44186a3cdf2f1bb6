import Campaigns
import Foundation
import Logging
import Model
import SQLiteStore
import Senders
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@testable import Daemon

/// The daemon ends for the reasons on one list, and for nothing else.
@Suite(.timeLimit(.minutes(10))) struct `The supervisor of the daemon` {
    private struct Strange: Error {}

    private let clock = ManualClock()

    private var logger: Logger {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return logger
    }

    private func supervisor(_ before: @escaping @Sendable (DaemonPart) throws -> Void = { _ in }) -> Supervisor {
        Supervisor(owner: "me", clock: clock.clock, logger: logger, before: before)
    }

    @Test(arguments: DaemonPart.allCases)
    func `tries each part again after an error that nobody knows, with growing pauses`(part: DaemonPart) async throws {
        let attempts = Watched(0)
        let supervisor = supervisor()
        async let kept: Void = supervisor.keep(part) {
            let count = attempts.change { count in
                count += 1
                return count
            }
            if count <= 6 { throw Strange() }
        }
        for seconds in [1, 2, 4, 8, 10, 10] {
            await clock.sleeper(until: clock.now + .seconds(seconds))
            clock.advance(by: .seconds(seconds))
        }
        try await kept
        #expect(attempts.change { $0 } == 7)
    }

    @Test func `logs the same error once a minute, and another one at once`() async throws {
        let lines = CollectedLines()
        let supervisor = Supervisor(owner: "me", clock: clock.clock, logger: lines.logger())
        let attempts = Watched(0)
        async let kept: Void = supervisor.keep(.runs) {
            let count = attempts.change { count in
                count += 1
                return count
            }
            if count <= 12 { throw StoreError.diskFull(path: count == 2 ? "/other" : "/x") }
        }
        for seconds in [1, 2, 4, 8] + [Int](repeating: 10, count: 8) {
            await clock.sleeper(until: clock.now + .seconds(seconds))
            clock.advance(by: .seconds(seconds))
        }
        try await kept
        // The first, the other one, the first again, and that one after a minute.
        #expect(lines.all.count == 4, "\(lines.all)")
        #expect(lines.all.allSatisfy { $0.level == .warning && $0.message.contains("nothing is lost") })
    }

    @Test func `begins with a short pause again after a part has worked for a while`() async throws {
        let attempts = Watched(0)
        let (supervisor, clock) = (supervisor(), clock)
        async let kept: Void = supervisor.keep(.runs) {
            let count = attempts.change { count in
                count += 1
                return count
            }
            if count == 3 { await clock.sleep(.seconds(11)) }
            if count <= 3 { throw Strange() }
        }
        for seconds in [1, 2, 11, 1] {
            await clock.sleeper(until: clock.now + .seconds(seconds))
            clock.advance(by: .seconds(seconds))
        }
        try await kept
        #expect(attempts.change { $0 } == 4)
    }

    private static let ends: [any Error] = [
        SenderError.otherDaemon("x"), SenderError.registrationLost(path: "/x"), StoreError.senderLost("me"),
        StoreError.newerVersion(path: "/x", found: 9, known: 6),
        StoreError.moved(path: "/x", to: "/y", at: Timestamp(milliseconds: 0)),
    ]

    private static let passing: [any Error] = [
        Strange(), CancellationError(), SenderError.senderFolder(path: "/x", reason: "r"),
        SenderError.lockFileBusy(path: "/x"), SenderError.noLocks(path: "/x", reason: "r"),
        SendingError.runVanished(7), StoreError.busy(path: "/x"), StoreError.diskFull(path: "/x"),
        StoreError.failed(path: "/x", reason: "r"), StoreError.corrupt(path: "/x", reason: "r"),
        StoreError.accessRefused(path: "/x", reason: "r"), StoreError.senderLost("another"),
        StoreError.noSuchSegment("vips", suggestion: nil), Failure(.configuration, "x"),
    ]

    @Test func `has one list of reasons to end`() async throws {
        for error in Self.ends {
            #expect(DaemonEnd.isReason(error, owner: "me"), "\(error)")
            await #expect { try await end(error) } throws: { DaemonEnd.isReason($0, owner: "me") }
        }
        for error in Self.passing { #expect(!DaemonEnd.isReason(error, owner: "me"), "\(error)") }
    }

    private func end(_ error: any Error) async throws {
        try await supervisor().keep(.runs) { throw error }
    }

    @Test func `returns when it is cancelled, whatever is thrown then`() async throws {
        let (supervisor, clock) = (supervisor(), clock)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await supervisor.keep(.runs) { throw Strange() } }
            await clock.sleeper(atLeast: .seconds(1))
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    /// The parts that a daemon on a store of its own does not have: what a store that machines share needs, and what
    /// `fanfare serve` adds. The rules of the project check that each of them is supervised.
    private static let elsewhere: Set<DaemonPart> = [
        .recovery, .webhooks, .reload, .watch, .watchdog, .status, .http,
    ]

    /// Each part meets an error that nobody knows, three times in a row, at its first turns.
    @Test func `keeps every part of a daemon at work, and it sends what is due`() async throws {
        let scene = try await DaemonScene()
        let parts = DaemonPart.allCases.filter { !Self.elsewhere.contains($0) }
        let attempts = Mutex<[DaemonPart: Int]>([:])
        let supervisor = Supervisor(owner: "daemon", clock: scene.clock.clock, logger: logger) { part in
            let count = attempts.withLock { attempts in
                attempts[part, default: 0] += 1
                return attempts[part, default: 0]
            }
            if count <= 3 { throw Strange() }
        }
        let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let daemon = scene.daemon(whole, supervisor: supervisor)
        try await scene.running(daemon, DaemonScene.snapshot(scene.campaign("c"))) {
            try await scene.turn(daemon, until: "c") { $0?.state == .finished }
            // What it is sent by is one part of several that try again side by side.
            for _ in 0..<60 where attempts.withLock({ found in parts.contains { found[$0] ?? 0 < 4 } }) {
                await scene.pass(.seconds(1), daemon)
            }
            #expect(daemon.isAlive && daemon.unready == nil)
        }
        let found = attempts.withLock { $0 }
        for part in parts {
            #expect(found[part] ?? 0 >= 4, "\(part): \(found[part] ?? 0)")
        }
    }

    @Test func `ends a job alone for an error of its own, and all jobs for a reason on the list`() async throws {
        let (supervisor, done) = (supervisor(), Watched<[Int]>([]))
        await #expect(throws: SenderError.otherDaemon("another")) {
            try await supervisor.keep(
                .runs,
                each: { (job: Int) in
                    switch job {
                    case 1: throw Strange()
                    case 3:
                        // Ends with the group.
                        try await Task.sleep(for: .seconds(600))
                    case 4: throw SenderError.otherDaemon("another")
                    default: done.change { $0.append(job) }
                    }
                }
            ) { jobs in
                for job in 1...3 { jobs.yield(job) }
                while done.change({ $0.isEmpty }) { await Task.yield() }
                jobs.yield(4)
                while !Task.isCancelled { await Task.yield() }
            }
        }
        #expect(done.change { $0 } == [2])
    }

    @Test func `ends the daemon with the reason when another process is the daemon`() async throws {
        let scene = try await DaemonScene()
        let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let supervisor = Supervisor(owner: "daemon", clock: scene.clock.clock, logger: logger) { part in
            if part == .runs { throw SenderError.otherDaemon("another") }
        }
        let daemon = scene.daemon(whole, supervisor: supervisor)
        let (snapshots, _) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        await #expect(throws: SenderError.otherDaemon("another")) { try await daemon.run(snapshots) }
    }
}
