import Foundation
import TestSupport
import Testing

/// Three senders, one of which is killed, slow, disconnected or late.
@Suite(
    .ownThread, .serialized, .timeLimit(.minutes(20)),
    .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `Senders that are not alike` {
    private func scene(
        _ name: String, devices: Int, delayMs: Int = 20, pace: Int? = nil, runs: Int = 1,
        _ onUnknown: Scene.OnUnknown = .resend
    ) -> Scene {
        var scene = Scene(name: name)
        (scene.devices, scene.runs, scene.pace, scene.answerDelayMs) = (devices, runs, pace, delayMs)
        (scene.onUnknown, scene.isOnServer) = (onUnknown, true)
        return scene
    }

    private func expectNothing(_ violations: [String]) {
        for violation in violations.prefix(10) { Issue.record("\(violation)") }
    }

    private func with<Value: Sendable>(
        _ scene: Scene, far: [Int: Machines.Distance] = [:], _ body: @escaping @Sendable (Machines) throws -> Value
    ) async throws -> Value {
        let cluster = try await PostgresCluster.shared
        let (value, violations) = try await OwnThread.run {
            let machines = try Machines(scene, on: cluster, far: far)
            try machines.importDevices()
            return (try body(machines), machines.violations)
        }
        expectNothing(violations)
        return value
    }

    /// On a busy machine the restart may take longer than the takeover timeout, so that another machine has to recover.
    @Test func `a sender that is killed and back at once is recovered by its machine, with its journal`() async throws {
        for _ in 0..<3 { if try await isRecovered() { return } }
        Issue.record("other machines took over each time")
    }

    /// The restarted machine stops for a second, after it has declared its former sender dead and before it
    /// recovers that sender's leases. Returns whether only this machine took over.
    private func isRecovered() async throws -> Bool {
        // The runs are so slow that they usually are in progress together. Where the commands start slowly, the first
        // may be over when the last one starts.
        try await with(scene("held restart", devices: 2_500, delayMs: 2_000, runs: 4, .skip)) { machines in
            try machines.startAll()
            for number in 1...4 { try machines.run(number) }
            try machines.wait("four runs") { try machines.count("run WHERE started_at IS NOT NULL") == 4 }
            let busiest = "SELECT owner FROM lease GROUP BY owner ORDER BY count(DISTINCT run_id) DESC, owner LIMIT 1"
            // The leases found may be settled before a second query.
            var found: Int?
            try machines.wait("leases") {
                found = try machines.machine(ofSender: machines.sql(busiest))
                return found != nil
            }
            guard let victim = found else { return true }
            let killed = Int(Date().timeIntervalSince1970 * 1_000)
            machines.kill(victim)
            try machines.start(
                victim, environment: KillPoint.from("leased_at, environment, entries FROM lease", .told, 1).freezing)
            let isHeld = try machines.wait("its standstill") {
                machines.daemons[victim].map { Machines.isStopped($0.pid) } == true
            }
            if isHeld { usleep(1_000_000) }
            machines.daemons[victim]?.signal(SIGCONT)
            try machines.awaitEnd(ofRuns: 4)
            _ = try machines.prove()
            let unread = "event WHERE kind = 'run_recovered' AND detail LIKE '%in doubt, since%'"
            let early = try machines.count("\(unread) AND at < \(killed + Fleet.takeoverMs)")
            if early > 0 { machines.violations.append("\(early) recoveries without a journal") }
            return try machines.count(unread) == early
        }
    }

    @Test(.nightly) func `a sender 250 ms from the store sends as the others do`() async throws {
        let far = [2: Machines.Distance(toStore: .milliseconds(250))]
        try await with(scene("250 ms", devices: 20_000, pace: 1_500), far: far) { machines in
            try machines.startAll()
            try machines.run(1)
            try machines.awaitEnd()
            let log = machines.daemons[2]?.errors ?? ""
            if log.contains("sending handed to the other senders") {
                machines.violations.append("it left the run: \(log)")
            }
            let recoveries = try machines.count("event WHERE kind = 'run_recovered'")
            if recoveries > 0 { machines.violations.append("\(recoveries) recoveries") }
            _ = try machines.prove()
        }
    }

    @Test(.nightly) func `a sender too far from the store leaves the run to the others, and says why`() async throws {
        let far = [2: Machines.Distance(toStore: .milliseconds(600))]
        try await with(scene("600 ms", devices: 20_000, pace: 1_500), far: far) { machines in
            try machines.startAll()
            try machines.run(1)
            try machines.wait("its word in the log") {
                machines.daemons[2]?.errors.contains("responds too slowly for this machine to send") == true
            }
            try machines.wait("its word in status") {
                let status = try machines.installation.fanfare("status")
                return status.output.contains("too slow  ")
                    && status.output.contains("sends nothing while other senders do")
            }
            try machines.awaitEnd()
            _ = try machines.prove()
            let doubts = try machines.count("event WHERE kind = 'run_recovered'")
            if doubts > 0 { machines.violations.append("\(doubts) recoveries") }
        }
    }

    /// The slow sender has 200 requests in flight, each for 1.5 s. Its leases last for half a minute.
    @Test(.nightly) func `a sender that is slow to send gives back at the end of a run what it has not started`()
        async throws
    {
        let far = [2: Machines.Distance(toAPNs: .milliseconds(1_500))]
        try await with(scene("slow end", devices: 16_000), far: far) { machines in
            // The slow sender is identified by its connections, which are open before the others start.
            try machines.start(2)
            try machines.awaitStart(2)
            try machines.run(1)
            try machines.wait("the slow sender's first answers") {
                try machines.machine(ofSender: machines.sql("SELECT owner FROM run_sender")) == 2
                    && machines.count("run WHERE accepted > 300") == 1
            }
            let others = Int(Date().timeIntervalSince1970 * 1_000)
            for machine in 0..<2 { try machines.start(machine) }
            try machines.awaitEnd()
            let entries = try machines.prove().entries.sorted { $0.time < $1.time }
            let fast = Dictionary(grouping: entries, by: \.connection).values
                .filter { $0[0].time > others }.map { $0[0].connection }
            if !(1...4).contains(fast.count) { machines.violations.append("fast connections: \(fast)") }
            let byFast = entries.suffix(1_000).count { fast.contains($0.connection) }
            print("slow end: \(byFast) of the last 1,000 requests by the fast senders")
            if byFast < 100 { machines.violations.append("\(byFast) of the last 1,000 requests by the fast senders") }
        }
    }

    @Test(.nightly) func `a sender that starts again joins what is left of a run`() async throws {
        // The rest of the run takes longer than the start of a machine.
        try await with(scene("joined late", devices: 4_500, pace: 150)) { machines in
            try machines.startAll()
            try machines.run(1)
            try machines.wait("less than is worth joining for a busy sender") {
                try machines.count("run WHERE pending BETWEEN 1 AND 3500") == 1
            }
            machines.kill(2)
            try machines.start(2)
            try machines.awaitStart(2)
            try machines.wait("the new sender at the run") {
                try machines.sql("SELECT owner FROM run_sender").split(separator: "\n")
                    .contains { machines.machine(ofSender: String($0)) == 2 }
            }
            try machines.awaitEnd()
            _ = try machines.prove()
        }
    }

    @Test func `a stop names the sender that cannot hear it, and returns when nothing can start any more`() async throws
    {
        try await with(scene("deaf", devices: 20_000, pace: 1_500)) { machines in
            try machines.startAll()
            try machines.run(1)
            try machines.wait("all three at the run") { try machines.count("run_sender") >= 3 }
            // The person's command has already started when the machine is stopped, so it is not late on a slow
            // machine.
            let stop = try machines.installation.start(
                ["stop", "--all", "--reason", "wrong text"], name: "stop", machine: "person",
                environment: KillPoint.at(.stopping, 1).freezing)
            try machines.wait("the stop") { Machines.isStopped(stop.pid) }
            machines.daemons[2]?.signal(SIGSTOP)
            stop.signal(SIGCONT)
            _ = stop.wait(killingAfter: Process.longest)
            let returned = Int(Date().timeIntervalSince1970 * 1_000)
            // On a slow machine, another sender may confirm too late as well.
            let deaf = machines.daemons[2].map { ":\($0.pid) has not confirmed the stop:" } ?? "no process"
            for words in [deaf, "It starts nothing more"]
            where !stop.output.contains(words) {
                machines.violations.append("no \"\(words)\": \(stop.output)\(stop.errors)")
            }
            machines.daemons[2]?.signal(SIGCONT)
            // On a slow machine, the other senders have declared it dead, so it exits.
            try machines.wait("its word, or its end") {
                try machines.count("run_sender") == 0 || machines.daemons[2]?.hasEnded == true
            }
            let liftedAt = Int(Date().timeIntervalSince1970 * 1_000)
            let lifted = try machines.installation.start(
                ["stop", "--all", "--lift", "--reason", "right text"], name: "lift", machine: "person")
            _ = lifted.wait()
            try machines.awaitEnd()
            let late = try machines.prove(exits: [0, 75]).requests(within: returned...liftedAt)
            if late > 0 { machines.violations.append("\(late) requests after the stop had returned") }
        }
    }

    @Test func `a store can be moved as soon as all senders have ended in good order`() async throws {
        try await with(scene("moved", devices: 500)) { machines in
            try machines.startAll()
            try machines.run(1)
            try machines.awaitEnd()
            _ = try machines.prove()
            let file = "\(machines.installation.folder)/moved.sqlite"
            let moved = try machines.installation.fanfare("move", "--to", file)
            if moved.end != .exited(0) { machines.violations.append("\(moved.output)\(moved.errors)") }
        }
    }

    @Test(.nightly) func `a table that others lock for twenty seconds ends no sender`() async throws {
        try await with(scene("locked table", devices: 20_000, pace: 1_500)) { machines in
            try machines.startAll()
            try machines.run(1)
            try machines.wait("all three at the run") { try machines.count("run_sender") >= 3 }
            _ = try machines.sql("BEGIN; LOCK TABLE run IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(20); COMMIT")
            try machines.awaitEnd()
            _ = try machines.prove()
        }
    }
}

extension Machines {
    static func isStopped(_ pid: pid_t) -> Bool {
        let facts = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        return facts?.contains(") T ") == true
    }
}
