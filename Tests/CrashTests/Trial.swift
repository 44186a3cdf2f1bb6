import Foundation
import Model
import TestSupport

/// Runs one scene from its first start to its end, and counts what happens.
final class Trial {
    struct Counts {
        var kills = 0
        var killsDuringRecovery = 0
        var restarts = 0
        var deliveries = 0
        /// The deliveries that were ever in doubt.
        var doubtful = 0
        var unknown = 0
        var doubles = 0
        var budgetViolations = 0
        /// The maximum number of deliveries that one kill left in doubt.
        var doubtsMax = 0
        var points: [String: Int] = [:]
        var violations: [String] = []
    }

    /// The maximum number of starts until a run must have finished.
    private static let startsMax = 40
    private(set) var counts = Counts()
    private let scene: Scene
    private let installation: Installation
    private var jitter: SeededGenerator
    private var killsLeft: Int
    /// The stage whose approval the last start requested.
    private var stage: String?

    init(_ scene: Scene, seed: UInt64, killsMax: Int, on cluster: PostgresCluster? = nil) throws {
        self.scene = scene
        installation = try Installation(scene, seed: seed, on: cluster)
        jitter = SeededGenerator(seed: seed)
        let isKilledByChance = scene.isKilled && scene.script.isEmpty
        killsLeft = scene.burst != nil ? scene.kills : isKilledByChance ? killsMax : 0
    }

    func execute() throws -> Counts {
        let imported = try installation.fanfare("devices", "import", "\(installation.folder)/devices.csv")
        guard imported.end == .exited(0) || refused("devices import", imported.errors) else { return counts }
        for run in 1...scene.runs {
            let killsBefore = killsLeft * (scene.runs - run) / (scene.runs - run + 1)
            guard try finish(run, killingDownTo: killsBefore) else { return counts }
        }
        let verified = try installation.fanfare("verify")
        if verified.end != .exited(0) { _ = refused("verify", verified.output + verified.errors) }
        let audit = try installation.fanfare("audit")
        // The journal of a killed process must be available on the machine that recovers its run.
        if audit.output.contains("are in doubt, because") {
            _ = refused("a recovery without its journal", audit.output)
        }
        installation.stopSimulator()
        let store = try installation.store.record(isWhole: true)
        let proof = Proof(scene, store, try WireLog(folder: installation.folder))
        counts.deliveries = store.deliveries.count
        counts.doubtful = store.deliveries.count { $0.doubts > 0 }
        counts.violations += wireBound(store)
        counts.unknown = store.deliveries.count { $0.state == 3 }
        counts.doubles = proof.doubles
        counts.budgetViolations = proof.budgetViolations
        counts.violations += proof.violations
        return counts
    }

    /// Starts the run repeatedly until it reports that it has finished.
    private func finish(_ run: Int, killingDownTo killsKept: Int) throws -> Bool {
        var hasOpenLeases = false
        var command = ScriptedKill.Command.run
        var script = (scene.script.indices.contains(run - 1) ? scene.script[run - 1] : [])[...]
        for _ in 0..<Self.startsMax {
            let isScripted = script.first?.command == command
            let point = isScripted ? script.removeFirst().point : killsLeft > killsKept ? nextPoint(hasOpenLeases) : nil
            let (end, errors) = try start(command, run, killedAt: point)
            if isScripted, end != .killed(SIGKILL) {
                return refused("run \(run)", "never came to \(point?.description ?? "")")
            }
            switch end {
            case .exited(0) where command == .approve: command = .run
            case .exited(0): return script.isEmpty || refused("run \(run)", "never came to \(script)")
            case .killed:
                killsLeft -= isScripted ? 0 : 1
                hasOpenLeases = try examine(point)
                command = .run
            // A circuit breaker paused the run, or the process asks to be started again.
            case .exited(69), .exited(75):
                counts.restarts += 1
                command = .run
            case .exited(76) where !scene.stages.isEmpty:
                counts.restarts += 1
                stage = errors.firstMatch(of: /fanfare approve [0-9]+ --stage ([0-9]+)/).map { String($0.1) }
                command = stage != nil ? .approve : .resume
            case .exited(let code): return refused("\(command): exit \(code)", errors)
            }
        }
        return refused("run \(run)", "not done after \(Self.startsMax) starts")
    }

    private func nextPoint(_ hasOpenLeases: Bool) -> KillPoint {
        scene.burst.map { KillPoint.inBurst($0, using: &jitter) }
            ?? KillPoint.random(hasOpenLeases: hasOpenLeases, isOnServer: scene.isOnServer, using: &jitter)
    }

    private func start(
        _ command: ScriptedKill.Command, _ run: Int, killedAt point: KillPoint?
    ) throws -> (end: ChildProcess.End, errors: String) {
        let words =
            switch command {
            case .run: ["run", "campaign", "--occurrence", "\(run)", "--yes"]
            case .resume: [command.rawValue, "campaign/\(run)"]
            case .approve: [command.rawValue, "campaign/\(run)", "--stage", stage ?? ""]
            }
        let child = try installation.start(words, name: command.rawValue, environment: point?.environment ?? [:])
        guard case .after(let milliseconds) = point else { return (child.wait(), child.errors) }
        return (child.wait(killingAfter: .milliseconds(milliseconds)), child.errors)
    }

    /// Examines the store as a kill left it. Returns whether deliveries are in flight.
    private func examine(_ point: KillPoint?) throws -> Bool {
        counts.kills += 1
        counts.restarts += 1
        let record = try installation.store.record()
        if record.isBeforeRecovery { counts.killsDuringRecovery += 1 }
        counts.points[point?.kind ?? "", default: 0] += 1
        counts.doubtsMax = max(counts.doubtsMax, record.leasedByOne)
        counts.violations += record.problems.map { "after a kill at \(point?.description ?? ""): \($0)" }
        let most = scene.lanes * 2 * 1_000
        if record.leasedByOne > most {
            counts.violations.append("\(record.leasedByOne) in doubt after a kill, at most \(most) may be")
        }
        return record.hasOpenLeases
    }

    /// Returns a violation if a scene without faults has more requests in doubt than were on the wire at its kills.
    private func wireBound(_ store: StoreRecord) -> [String] {
        let doubts = store.deliveries.reduce(0) { $0 + $1.doubts }
        let most = counts.kills * scene.lanes * Scene.streams
        return scene.faults.isEmpty && doubts > most
            ? ["\(doubts) requests in doubt after \(counts.kills) kills, at most \(most) were on the wire"] : []
    }

    /// Records a violation. Always returns `false`.
    private func refused(_ what: String, _ why: String) -> Bool {
        counts.violations.append("\(what): \(why)")
        return false
    }
}

extension Trial.Counts {
    static func + (one: Self, other: Self) -> Self {
        var sum = one
        sum.kills += other.kills
        sum.killsDuringRecovery += other.killsDuringRecovery
        sum.restarts += other.restarts
        sum.deliveries += other.deliveries
        sum.doubtful += other.doubtful
        sum.unknown += other.unknown
        sum.doubles += other.doubles
        sum.budgetViolations += other.budgetViolations
        sum.doubtsMax = max(one.doubtsMax, other.doubtsMax)
        sum.points.merge(other.points, uniquingKeysWith: +)
        sum.violations += other.violations
        return sum
    }

    var summary: String {
        let points = points.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return "\(kills) kills (\(points); \(killsDuringRecovery) of them before the recovery was done), "
            + "\(restarts) restarts, \(deliveries) deliveries, \(doubtful) ever in doubt (at most \(doubtsMax) by one kill), "
            + "\(unknown) unknown, \(doubles) doubles under resend, \(budgetViolations) budget violations, "
            + "\(violations.count) violations"
    }
}
