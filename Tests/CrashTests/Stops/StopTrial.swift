import Foundation
import TestSupport

/// A case in which a run is stopped at a point, started again under the stop, lifted and finished. The commands and the
/// sender may be killed.
struct StopCase: CustomStringConvertible {
    /// The sender's fate after the stop.
    enum Sender {
        case goesOn, isKilled
    }

    /// The point at which the sender is halted before the stop.
    var frozenAt: KillPoint
    /// The point at which an earlier sender was killed. The halted sender then recovers its leases.
    var after: KillPoint?
    var sender = Sender.goesOn
    /// The point at which the command that stops is killed.
    var stop: KillPoint?
    /// The point at which the command that lifts is killed.
    var lift: KillPoint?
    /// Whether the sender continues only after the store has recorded the stop.
    var waitsForRecord = false
    /// Whether the stop file is removed after the store has recorded the stop.
    var losesFile = false

    var description: String {
        "stopped at \(frozenAt)\(after.map { " after a kill at \($0)" } ?? ""), the sender \(sender), "
            + "stop killed at \(stop?.description ?? "no point"), lift at \(lift?.description ?? "none")"
    }
}

final class StopTrial {
    struct Counts {
        var kills = 0
        var refusals = 0
        var doubtful = 0
        var doubles = 0
        var violations: [String] = []

        var summary: String {
            "\(kills) kills, \(refusals) starts refused, \(doubtful) ever in doubt, \(doubles) doubles under resend, "
                + "\(violations.count) violations"
        }
    }

    /// Texts that occur only in the messages to the store about the stop and its lifting.
    static let reason = "wrong words"
    static let remedy = "put right"

    private(set) var counts = Counts()
    private let scene: Scene
    private let cases: [StopCase]
    private let installation: Installation
    private var name = ""
    /// The intervals without permitted requests, in milliseconds.
    private var silences: [(name: String, interval: ClosedRange<Int>)] = []

    /// - Parameter cases: the cases, each with its own run.
    init(_ cases: [StopCase], on cluster: PostgresCluster? = nil) throws {
        self.cases = cases
        var scene = Scene(name: "stops")
        (scene.devices, scene.runs) = (400, cases.count)
        // At this pace a run cannot finish before it learns of its stop.
        (scene.pace, scene.answerDelayMs) = (600, 10)
        scene.isOnServer = cluster != nil
        self.scene = scene
        installation = try Installation(scene, seed: 1, on: cluster)
    }

    func execute() throws -> Counts {
        expect(try installation.fanfare("devices", "import", "\(installation.folder)/devices.csv").end, 0, "import")
        let file = try installation.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
        for (index, one) in cases.enumerated() {
            name = "run \(index + 1), \(one)"
            try stop(one, run: index + 1, file)
            let quiet = Self.milliseconds()
            try hold(one, run: index + 1, file)
            try lift(one, run: index + 1, file, since: quiet)
            try finish(index + 1)
        }
        try prove()
        return counts
    }

    /// Stops the run from another machine, while the sender is halted for longer than the takeover timeout.
    func executeTakeover() throws -> Counts {
        name = "takeover"
        expect(try installation.fanfare("devices", "import", "\(installation.folder)/devices.csv").end, 0, "import")
        let taken = try start(1, KillPoint.at(.received, 8).freezing, machine: "first")
        defer { taken.signal(SIGKILL) }
        try wait("a sender that stands still") { Self.state(of: taken.pid) == "T" || taken.hasEnded }
        // The command waits for that sender for longer than the takeover timeout.
        expect(try installation.fanfare("stop", "--all", "--reason", Self.reason).end, 0, "stop")
        // The simulator has by now received what the sender had written before it was halted.
        let quiet = Self.milliseconds()
        try refuse(1, machine: "second")
        try examine()
        if try installation.store.record().leased == 0 {
            violate("what it had in flight was taken over under the stop")
        }
        silences.append((name, quiet...Self.milliseconds()))
        expect(try installation.fanfare("stop", "--all", "--lift", "--reason", Self.remedy).end, 0, "lift")
        try finish(1, machine: "second")
        let continued = Self.milliseconds()
        taken.signal(SIGCONT)
        let end = taken.wait()
        if case .exited(let code) = end, [0, 75, 76].contains(code) {} else { violate("the first sender: \(end)") }
        silences.append(("the first sender, continued", continued...Self.milliseconds()))
        try prove()
        return counts
    }

    /// Stops the run. Returns when the stop is in force and no process sends.
    private func stop(_ one: StopCase, run: Int, _ file: String) throws {
        if let before = one.after { expectKilled(try start(run, before.environment).wait(), before) }
        let sender = try start(run, one.frozenAt.freezing)
        try wait("a sender that stands still") { Self.state(of: sender.pid) == "T" || sender.hasEnded }
        let command = try installation.start(
            ["stop", "--all", "--reason", Self.reason], name: "stop", environment: one.stop?.environment ?? [:])
        // The command may have to wait for a transaction of the halted sender.
        let patience = ContinuousClock.now + (one.waitsForRecord ? .seconds(2) : .zero)
        try wait("the stop") {
            command.hasEnded || ContinuousClock.now > patience && FileManager.default.fileExists(atPath: file)
        }
        if one.sender == .isKilled {
            sender.signal(SIGKILL)
            counts.kills += 1
        }
        sender.signal(SIGCONT)
        let end = command.wait()
        // A sender that continues may have recorded the stop before the command did.
        if let point = one.stop, one.sender == .isKilled || end != .exited(0) {
            expectKilled(end, point)
        } else {
            expect(end, 0, "stop")
        }
        switch (sender.wait(), one.sender) {
        case (.killed, .isKilled), (.exited(76), .goesOn): break
        case (let end, _): violate("the sender: \(end): \(sender.errors)")
        }
        try examine()
        if try !isInForce(file) {
            if one.stop?.isBefore(.stopping) != true { violate("killed behind the file, and not in force") }
            expect(try installation.fanfare("stop", "--all", "--reason", Self.reason).end, 0, "stop once more")
        }
    }

    /// Checks that a start under the stop sends, recovers and counts nothing.
    private func hold(_ one: StopCase, run: Int, _ file: String) throws {
        try refuse(run)
        if one.losesFile {
            if try !isOnRecord() { violate("a start did not put the stop on record") }
            try? FileManager.default.removeItem(atPath: file)
            try refuse(run)
        }
        try examine()
    }

    private func lift(_ one: StopCase, run: Int, _ file: String, since quiet: Int) throws {
        var until = Self.milliseconds()
        if let point = one.lift {
            let words = ["stop", "--all", "--lift", "--reason", Self.remedy]
            expectKilled(try installation.start(words, name: "lift", environment: point.environment).wait(), point)
            try examine()
            if try isInForce(file) {
                // The stop is only partly lifted. The same command completes the lifting.
                try refuse(run)
                until = Self.milliseconds()
                let again = try installation.fanfare("stop", "--all", "--lift", "--reason", Self.remedy).end
                // If the lifting is already recorded, the next sender completes it.
                if again != .exited(65) { expect(again, 0, "lift again") }
            }
        } else {
            expect(try installation.fanfare("stop", "--all", "--lift", "--reason", Self.remedy).end, 0, "lift")
        }
        silences.append((name, quiet...max(quiet, until)))
        if try isInForce(file) { violate("lifted, and in force") }
        expect(try installation.fanfare("stop", "--all", "--lift", "--reason", Self.remedy).end, 65, "lifted before")
    }

    private func finish(_ run: Int, machine: String = "machine") throws {
        let child = try start(run, [:], machine: machine)
        let end = child.wait()
        if end != .exited(0) { violate("the run afterwards: \(end): \(child.errors)") }
    }

    private func refuse(_ run: Int, machine: String = "machine") throws {
        let child = try start(run, [:], machine: machine)
        let end = child.wait()
        counts.refusals += 1
        if end != .exited(76) || !child.errors.contains("fanfare stop --all --lift") {
            violate("started while it was stopped: \(end): \(child.errors)")
        }
    }

    private func start(
        _ run: Int, _ environment: [String: String], machine: String = "machine"
    ) throws -> ChildProcess {
        // The test reads the errors of a halted sender later, so they have their own file.
        let name = environment.isEmpty ? "run" : "sender"
        return try installation.start(
            ["run", "campaign", "--occurrence", "\(run)", "--yes"], name: name, machine: machine,
            environment: environment)
    }

    private func isInForce(_ file: String) throws -> Bool {
        if FileManager.default.fileExists(atPath: file) { return true }
        return try isOnRecord()
    }

    private func isOnRecord() throws -> Bool { try installation.store.record().isStopped }

    private func examine() throws {
        counts.violations += try installation.store.record().problems.map { "\(name): \($0)" }
    }

    private func prove() throws {
        expect(try installation.fanfare("verify").end, 0, "verify")
        installation.stopSimulator()
        let (wire, store) = (
            try WireLog(folder: installation.folder), try installation.store.record(isWhole: true)
        )
        let proof = Proof(scene, store, wire)
        counts.doubles = proof.doubles
        counts.doubtful = store.deliveries.count { $0.doubts > 0 }
        counts.violations += proof.violations
        for (name, interval) in silences {
            let asked = wire.requests(within: interval)
            if asked > 0 { counts.violations.append("\(name): \(asked) requests while it was in force") }
        }
    }

    private func wait(_ what: String, until condition: () throws -> Bool) throws {
        let deadline = ContinuousClock.now + Process.longest
        while try !condition() {
            if ContinuousClock.now > deadline { return violate("\(what): not in time") }
            usleep(2_000)
        }
    }

    /// Returns the state of a process, which is `T` if the process is stopped.
    private static func state(of process: pid_t) -> String {
        let facts = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return facts.split(separator: ")").last?.split(separator: " ").first.map(String.init) ?? ""
    }

    private static func milliseconds() -> Int { Int(Date().timeIntervalSince1970 * 1_000) }

    private func expectKilled(_ end: ChildProcess.End, _ point: KillPoint) {
        counts.kills += 1
        if end != .killed(SIGKILL) { violate("never came to \(point): \(end)") }
    }

    private func expect(_ end: ChildProcess.End, _ code: Int32, _ what: String) {
        if end != .exited(code) { violate("\(what): \(end)") }
    }

    private func violate(_ words: String) { counts.violations.append("\(name): \(words)") }
}

extension KillPoint {
    fileprivate func isBefore(_ call: Call) -> Bool { self == .at(call, 1) }
}
