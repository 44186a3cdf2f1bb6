import APNsSimulator
import ArgumentParser
import Campaigns
import Foundation
import Model
import Senders
import Sending
import Store

/// Runs two senders on one database server, each as if on its own machine. Kills one in the middle of a broadcast, and
/// compares the record with what the simulator received.
struct FailoverDemo: Sendable {
    let programs: PostgresPrograms
    let folder: DemoFolder
    /// Whether a person named the folder. The demo's files then remain there.
    let isNamed: Bool
    let devices: Int

    private var server: String { "\(folder.path)/postgres" }
    private var machines: String { "\(folder.path)/machines" }

    func play() async throws {
        let processes = try DemoProcesses(
            server: server, removing: [machines] + (isNamed ? [] : [folder.path]), logs: folder.path)
        do {
            try await play(processes)
            processes.terminateAll()
        } catch {
            processes.terminateAll()
            throw error
        }
        let left = "campaigns/, devices.csv, simulator.jsonl, and the logs of the senders and the server"
        Console.print(
            "\n# Server and senders have exited; "
                + (isNamed ? "left in \(folder.path): \(left)" : "no files remain"))
    }

    private func play(_ processes: DemoProcesses) async throws {
        // Let the server's user pass through the folder, but not list it.
        if programs.owner != nil { chmod(folder.path, 0o711) }
        let cluster = try DemoCluster(programs, in: server, processes)
        let simulator = try folder.prepare(devices: devices)
        defer { simulator.stop() }
        Console.print("# A PostgreSQL server, reachable only over a socket in \(server)")
        try await cluster.start()
        // The pace is slow enough to kill a sender in the middle of the run.
        try folder.writeConfiguration(
            simulator, store: cluster.url,
            more: "http: {listen: \"127.0.0.1:0\"}\npace: {rate: \(devices / 8)/s}\n")
        try folder.enter()
        setenv("XDG_STATE_HOME", "\(machines)/here", 1)
        let scene = DemoScene(simulator: simulator)
        try await scene.play("devices", "import", "devices.csv")
        try await scene.play("segments", "import", "podcast-fans", "fans.csv")
        try await Failover(
            scene: scene, processes: processes, session: Settings.parse([]).session(.reading), machines: machines
        ).play()
    }
}

/// The run, its senders, and the kill of one sender.
private struct Failover: Sendable {
    private static let startTime: Duration = .seconds(30)
    private static let takeoverTime: Duration = .seconds(40)
    private static let lookEvery: Duration = .milliseconds(100)

    let scene: DemoScene
    let processes: DemoProcesses
    let session: Session
    let machines: String

    func play() async throws {
        for number in 1...2 { try await startSender(number) }
        try await scene.play("status")
        let before = scene.simulator.log().count
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await scene.play(
                    "run", "new-podcast", "--occurrence", "episode-42", "--yes", "--var", "title=The Long Way Home",
                    "--var", "link_url=https://example.com/42")
            }
            group.addTask { try await strike() }
            while try await group.next() != nil {}
        }
        try await scene.play("status")
        try await scene.play("report", "new-podcast", "--check")
        try await scene.play("verify")
        try await compare(WireAccount(scene.simulator.log().dropFirst(before)))
        try await processes.stop()
    }

    private func startSender(_ number: Int) async throws {
        let log = "sender-\(number)"
        Console.print("\n$ fanfare serve          # sender \(number), as on a machine of its own; its log: \(log).log")
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        let process = try processes.startSender(
            [program, "serve"], log: log, in: FileManager.default.currentDirectoryPath,
            machine: "\(machines)/\(number)")
        try await processes.wait(for: "sender \(number)", process, atMost: Self.startTime) {
            let senders = try await session.runs.overview(limit: 1).senders ?? []
            return senders.count { $0.state == .alive && $0.facts.isDaemon } == number
        }
    }

    /// Kills the run's owner between a quarter and half of the run, and waits until the other sender has taken over.
    private func strike() async throws {
        let victim = try await leadInTheMiddle()
        let name = ProcessName.shown(victim)
        guard let pid = name.split(separator: ":").last.flatMap({ Int32($0) }), try await processes.kill(pid) else {
            throw Failure(.internalError, "\(name) owns the run, and is not a sender of the demo")
        }
        let killedAt = ContinuousClock.now
        Console.print(
            "\n# kill -9 \(pid): it led the run, after \(scene.simulator.log().count.grouped) requests; "
                + "the other sender continues, and takes over its leases after 10 s without a heartbeat")
        try await scene.play("status")
        while ContinuousClock.now - killedAt < Self.takeoverTime {
            let overview = try await session.runs.overview(limit: 1)
            let coordinator = overview.senders?.first { $0.isCoordinator && $0.state == .alive }?.name
            if let coordinator, coordinator != victim, overview.runs.first?.run.owner != victim {
                let waited = (ContinuousClock.now - killedAt) / .seconds(1)
                return Console.print(
                    "\n# \(Int(waited.rounded())) s later \(ProcessName.shown(coordinator)) has taken over")
            }
            try await Task.sleep(for: Self.lookEvery)
        }
        throw Failure(.internalError, "no sender took over from \(name)")
    }

    private func leadInTheMiddle() async throws -> String {
        while true {
            if let run = try await session.runs.overview(limit: 1).runs.first?.run {
                guard !run.state.isFinal else {
                    throw Failure(.internalError, "the run was over before a sender could be killed")
                }
                let counts = run.counts
                if run.isFrozen, let lead = run.owner, counts.settled * 4 >= counts.audience {
                    let others = try await session.runs.others(at: run)
                    if others > 0 || counts.settled * 2 >= counts.audience { return lead }
                }
            }
            try await Task.sleep(for: Self.lookEvery)
        }
    }

    /// Compares the record with what the simulator received.
    private func compare(_ wire: WireAccount) async throws {
        let run = try await session.useCases.run("new-podcast")
        let report = try await session.useCases.reports.result(of: run, now: session.now)
        Console.print("\n# APNs' side: " + wire.text)
        Console.print(
            "# Recorded: \(report.counts.accepted.grouped) accepted, "
                + "\(report.possibleDuplicates.grouped) of them possibly twice: the sender died before recording a "
                + "response"
        )
        guard report.counts.accepted == wire.accepted, wire.twice <= report.possibleDuplicates else {
            throw Failure(
                .internalError,
                "APNs accepted \(wire.accepted.grouped) tokens, \(wire.twice.grouped) of them twice: not what "
                    + "was recorded")
        }
        Console.print("# Both sides agree.")
    }
}
