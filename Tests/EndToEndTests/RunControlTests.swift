import APNsSimulator
import Foundation
import TestSupport
import Testing

/// A run that goes on, told to stop from elsewhere: by command, by signal, by the loss of its process.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A run under control` {
    @Test func `a run is let go on without a key where others send it`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            try #require(try place.fanfare("pause", "slow").status == 0)
            _ = try run.finish()
            try FileManager.default.removeItem(atPath: place.folder.file("key.p8"))
            let resumed = try place.fanfare("resume", "slow", "--no-send")
            #expect(resumed.status == 0 && resumed.output.contains("running"), "\(resumed.errors)")
            // Who is to send it here needs the key, and the run is as it was.
            #expect(try place.fanfare("resume", "slow").status == 78)
            #expect(try place.fanfare("status", "slow").output.contains("running"))
        }
    }

    @Test func `a run that is resumed beside a daemon is taken up by it, and the command says so`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            try #require(try place.fanfare("pause", "slow").status == 0)
            _ = try run.finish()
            let daemon = try RunningProgram(["serve"], in: place.folder)
            try daemon.wait { daemon.errors.contains("files read") }
            let resumed = try place.fanfare("resume", "slow", "--no-send")
            #expect(!resumed.output.contains("no process sends it"), "\(resumed.output)")
            #expect(resumed.output.contains("the daemon ("), "\(resumed.output)")
            daemon.signal(SIGTERM)
            #expect(try daemon.finish().status == 0)
        }
    }

    @Test func `the status of a run says what the rest waits for`() async throws {
        try await OwnThread.run {
            let place = try Installation(devices: 20) { options in
                options.faults = [
                    FaultRule(
                        when: .number(20),
                        action: .answer(status: 429, reason: "TooManyRequests", retryAfter: "1800"))
                ]
            }
            try place.importDevices()
            let run = try RunningProgram(["run", "new-podcast", "--yes"] + Installation.words, in: place.folder)
            var status = ""
            try run.wait {
                status = (try? place.fanfare("status", "new-podcast").output) ?? ""
                return status.contains("Waiting")
            }
            #expect(status.contains("1 waits for their retry at "), "\(status)")
            let json = try place.fanfare("status", "new-podcast", "--json").output
            #expect(json.contains(#""reason" : "retry""#) && json.contains(#""deliveries" : 1"#), "\(json)")
            run.signal(SIGINT)
            #expect(try run.finish().status == 75)
        }
    }

    @Test func `a pass over what is due tells its runs after a signal, too`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            run.signal(SIGINT)
            #expect(try run.finish().status == 75)
            #expect(try place.fanfare("status").output.contains(", no process sends it"))
            #expect(try place.fanfare("status", "slow").output.contains("no process sends it"))
            let before = place.simulator.counts().accepted
            let pass = try RunningProgram(["run", "--due", "--json"], in: place.folder)
            try pass.wait { place.simulator.counts().accepted >= before + 20 }
            pass.signal(SIGINT)
            let stopped = try pass.finish()
            #expect(stopped.status == 75)
            #expect(stopped.output.contains(#""campaign" : "slow""#), "\(stopped.output)\(stopped.errors)")
            #expect(stopped.errors.contains("stopped early"), "\(stopped.errors)")
        }
    }

    @Test(arguments: StoreKind.available)
    func `a paused run waits for its resume, and nobody is sent to twice`(kind: StoreKind) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation.slow(store: store)
            let run = try place.startSlowRun()
            let paused = try place.fanfare("pause", "slow", "--reason", "wrong link")
            #expect(paused.status == 0, "\(paused.errors)")
            #expect(paused.output.contains("paused by"))
            #expect(paused.output.contains("0 in flight"))
            let stopped = try run.finish()
            #expect(stopped.status == 75)
            #expect(stopped.errors.contains("wrong link; `fanfare resume 1` continues it"), "\(stopped.errors)")
            let accepted = place.simulator.counts().accepted
            #expect(accepted < Installation.slowDevices)
            let again = try place.fanfare("run", "slow", "--occurrence", "a", "--yes")
            #expect(again.status == 75, "\(again.errors)")
            #expect(!again.errors.contains("this command continues that run"), "\(again.errors)")
            #expect(again.errors.contains("run 1, paused; it stays paused until `fanfare resume 1`"))
            #expect(place.simulator.counts().accepted == accepted)
            #expect(try place.fanfare("status", "--json").output.contains(#""paused_by" : "#))
            place.simulator.setFaults([])
            let resumed = try place.fanfare("resume", "slow/a")
            #expect(resumed.status == 0, "\(resumed.errors)")
            try place.expectOnceEach()
            #expect(try place.fanfare("pause", "1").status == 65)
            #expect(try place.fanfare("run", "slow", "--occurrence", "a", "--yes").status == 0)
            try place.expectOnceEach()
        }
    }

    @Test(arguments: StoreKind.available)
    func `the rest of a cancelled run is suppressed`(kind: StoreKind) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation.slow(store: store)
            let run = try place.startSlowRun()
            let cancelled = try place.fanfare("cancel", "1", "--json")
            #expect(cancelled.status == 0, "\(cancelled.errors)")
            #expect(cancelled.output.contains(#""state" : "cancelled""#))
            #expect(try run.finish().status == 0)
            let accepted = place.simulator.counts().accepted
            #expect(accepted < Installation.slowDevices)
            let report = try place.fanfare("report", "slow").output
            #expect(report.contains("cancelled  "), "\(report)")
            #expect(try place.fanfare("report", "slow", "--check").output.contains("The counts balance."))
            #expect(try place.fanfare("resume", "slow").status == 65)
            #expect(place.simulator.counts().accepted == accepted)
        }
    }

    @Test(arguments: [SIGTERM, SIGINT, SIGHUP], StoreKind.available)
    func `a signal stops it in good order, and the same command goes on`(signal: Int32, kind: StoreKind) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation.slow(store: store)
            let run = try place.startSlowRun()
            run.signal(signal)
            let stopped = try run.finish()
            #expect(stopped.status == 75, "\(stopped.errors)")
            let status = try place.fanfare("status", "slow").output
            #expect(status.contains("State       running"), "\(status)")
            #expect(status.contains("0 in flight"), "\(status)")
            place.simulator.setFaults([])
            #expect(try place.fanfare("run", "slow", "--occurrence", "a", "--yes").status == 0)
            try place.expectOnceEach()
        }
    }

    @Test(arguments: StoreKind.available, [Installation.slowRun, ["run", "--due"]])
    func `a second signal does not wait for answers, and what is in doubt is said so`(
        kind: StoreKind, words: [String]
    ) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation.slow(store: store, faults: [FaultRule(when: .every(5), action: .silence)])
            if words != Installation.slowRun {
                let first = try place.startSlowRun()
                first.signal(SIGKILL)
                _ = try first.finish()
            }
            let run = try place.startSlowRun(words)
            run.signal(SIGINT)
            try run.wait { run.errors.contains("press Ctrl-C again to stop immediately") }
            run.signal(SIGINT)
            let stopped = try run.finish()
            #expect(stopped.status == 75)
            #expect(stopped.errors.contains("stopped immediately"), "\(stopped.errors)")
            place.simulator.setFaults([])
            let report = try place.fanfare("report", "slow", "--check")
            #expect(report.errors.contains("was abandoned by"), "\(report.errors)")
            #expect(report.output.contains("The counts balance."))
            #expect(try place.fanfare("pause", "slow").errors.contains("are sent once more"))
            #expect(try place.fanfare("resume", "slow").status == 0)
            let accepted = Set(place.simulator.log().filter { $0.status == 200 }.compactMap(\.token))
            #expect(accepted.count == Installation.slowDevices)
        }
    }

    @Test func `a second process leaves it alone until the first is gone, and then need not wait`() async throws {
        try await OwnThread.run {
            let place = try Installation.slow()
            let run = try place.startSlowRun()
            let second = try place.fanfare("run", "slow", "--occurrence", "a", "--yes")
            #expect(second.status == 75)
            #expect(second.errors.contains("another process owns run 1"), "\(second.errors)")
            #expect(second.errors.contains("continues that run, unless another process sends it"), "\(second.errors)")
            run.signal(SIGKILL)
            _ = try run.finish()
            place.simulator.setFaults([])
            let third = try place.fanfare("run", "slow", "--occurrence", "a", "--yes")
            #expect(third.status == 0, "\(third.errors)")
            let accepted = Set(place.simulator.log().filter { $0.status == 200 }.compactMap(\.token))
            #expect(accepted.count == Installation.slowDevices)
        }
    }

    @Test(arguments: StoreKind.available)
    func `cancelling what a killed process left ends it at once`(kind: StoreKind) async throws {
        let store = try await kind.address()
        try await OwnThread.run {
            let place = try Installation.slow(store: store)
            let run = try place.startSlowRun()
            run.signal(SIGKILL)
            _ = try run.finish()
            let cancelled = try place.fanfare("cancel", "slow")
            #expect(cancelled.status == 0)
            #expect(cancelled.output.contains("0 pending, 0 in flight"), "\(cancelled.output)")
            #expect(try place.fanfare("report", "slow", "--check").output.contains("The counts balance."))
        }
    }
}
