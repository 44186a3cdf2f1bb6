import Foundation
import TestSupport

/// A run that two people sign. The commands that request, sign, reject and create may be killed.
struct ApprovalCase {
    struct Kill {
        /// The points of the kills, one after another, until the command's effect is recorded.
        var points: [KillPoint]
        /// Whether the effect is recorded after the last kill. Otherwise it is not recorded after any of them.
        var isBehind: Bool
    }

    var ask: Kill?
    /// The kills of the first and the second signature.
    var signatures: [Kill?] = [nil, nil]
    /// The kill of the rejection, after one person has signed.
    var rejection: Kill?
    var make: Kill?
    var send: KillPoint
}

/// Runs the cases one after another, all with the same plan. Each approval is requested after the previous run was
/// created and before it is sent. The signatures that served the previous run are then still stored.
final class ApprovalTrial {
    struct Counts {
        var kills = 0
        var refusals = 0
        var doubtful = 0
        var violations: [String] = []

        var summary: String {
            "\(kills) kills, \(refusals) starts refused, \(doubtful) ever in doubt, \(violations.count) violations"
        }
    }

    private static let author = "carl"
    private static let reason = "wrong words"

    private var counts = Counts()
    private let scene: Scene
    private let cases: [ApprovalCase]
    private let installation: Installation
    private var run = 1
    private var plan = ""
    /// The start time of the command that recorded the last signature, in milliseconds, by run.
    private var signedAt: [Int: Int] = [:]

    init(_ cases: [ApprovalCase], on cluster: PostgresCluster? = nil) throws {
        self.cases = cases
        var scene = Scene(name: "approvals")
        (scene.devices, scene.runs, scene.signatures) = (400, cases.count, 2)
        scene.answerDelayMs = 10
        scene.isOnServer = cluster != nil
        self.scene = scene
        installation = try Installation(scene, seed: 1, on: cluster)
    }

    func execute() throws -> Counts {
        try expect(["devices", "import", "\(installation.folder)/devices.csv"], as: "root", 0)
        try ask(cases.first?.ask)
        for (index, one) in cases.enumerated() {
            if let kill = one.rejection { try reject(kill) }
            try sign(one.signatures)
            try make(one)
            if cases.indices.contains(index + 1) {
                run += 1
                try ask(cases[index + 1].ask)
                run -= 1
            }
            try expect(start, as: Self.author, 0)
            // Starting a finished run again sends nothing.
            try expect(start, as: Self.author, 0)
            run += 1
        }
        try prove()
        return counts
    }

    private var start: [String] { ["run", "campaign", "--occurrence", "\(run)", "--yes"] }

    private func ask(_ kill: ApprovalCase.Kill?) throws {
        try perform(start, as: Self.author, kill) { $0.open != nil }
        try refuse("0 of 2")
        if try examine().open?.signatures.count != 0 { violate("asked for, and not without signatures") }
    }

    private func sign(_ kills: [ApprovalCase.Kill?]) throws {
        for (number, (user, kill)) in zip(["anna", "ben"], kills).enumerated() {
            let words = ["approve", plan]
            signedAt[run] = Self.milliseconds()
            try perform(words, as: user, kill) { $0.open?.signatures.count == number + 1 }
            if number == 0 {
                // A second signature of the same person does not count.
                try expect(words, as: user, 0, output: "1 of 2")
                try refuse("1 of 2")
            } else if kill?.isBehind != true {
                signedAt[run] = Self.milliseconds()
                try expect(words, as: user, 0, output: "approved, 2 of 2")
            }
        }
    }

    private func reject(_ kill: ApprovalCase.Kill) throws {
        try expect(["approve", plan], as: "ben", 0)
        let words = ["reject", plan, "--reason", Self.reason]
        try perform(words, as: "dora", kill) { $0.open == nil }
        try expect(words, as: "dora", kill.isBehind ? 66 : 0)
        try refuse(Self.reason)
        try expect(["plan", "campaign", "--for-approval"], as: Self.author, 0)
        try refuse("0 of 2")
    }

    /// Creates the run, and kills its process while it sends.
    private func make(_ one: ApprovalCase) throws {
        let (run, send) = ("\(run)", ApprovalCase.Kill(points: [one.send], isBehind: true))
        try perform(start, as: Self.author, one.make) { $0.runs[run] != nil }
        try perform(start, as: Self.author, send) { $0.runs[run] != nil && $0.open == nil }
    }

    /// Kills a command at its points. Records a violation if its effect is not recorded as the case expects.
    private func perform(
        _ words: [String], as user: String, _ kill: ApprovalCase.Kill?, isDone: (StoreRecord) -> Bool
    ) throws {
        guard let kill else { return }
        for point in kill.points {
            let end = try child(words, as: user, point.environment).wait()
            counts.kills += 1
            if end != .killed(SIGKILL) { return violate("never came to \(point): \(end)") }
            if isDone(try examine()) {
                if !kill.isBehind { violate("killed at \(point), and on record") }
                return
            }
        }
        if kill.isBehind { violate("killed at \(kill.points), and not on record") }
    }

    private func refuse(_ words: String) throws {
        let child = try child(start, as: Self.author)
        let end = child.wait()
        counts.refusals += 1
        if end != .exited(3) || !child.errors.contains(words) {
            violate("started without its signatures: \(end): \(child.errors)")
        }
        if let named = child.errors.firstMatch(of: /fanfare approve (p2-[0-9a-f-]+)/)?.1 { plan = String(named) }
    }

    /// Checks that the counts balance, and that exactly the existing runs have used up signatures.
    private func examine() throws -> StoreRecord {
        let record = try installation.store.record()
        record.problems.forEach(violate)
        let used = record.approvals.filter { $0.state == "used" }.compactMap(\.run)
        if used.sorted() != record.runs.values.sorted() { violate("runs \(record.runs), signatures of \(used)") }
        if record.approvals.count(where: { $0.state == "open" }) > 1 { violate("asked for twice") }
        return record
    }

    private func prove() throws {
        let verified = try installation.fanfare("verify", "--json")
        if verified.end != .exited(0) || !verified.output.contains("\"approvals\"") {
            violate("verify: \(verified.output)\(verified.errors)")
        }
        _ = try examine()
        installation.stopSimulator()
        let (wire, store) = (
            try WireLog(folder: installation.folder), try installation.store.record(isWhole: true)
        )
        counts.doubtful = store.deliveries.count { $0.doubts > 0 }
        counts.violations += Proof(scene, store, wire).violations
        let asked = wire.firstAsked
        for run in 1...scene.runs {
            self.run = run
            let id = store.runs["\(run)"]
            let approvals = store.approvals.filter { $0.run == id }
            let signatures = approvals.flatMap(\.signatures)
            if approvals.count != 1 || Set(signatures.map(\.identity)) != ["os:anna", "os:ben"] {
                violate("made with \(approvals)")
            }
            let quorum = max(signedAt[run] ?? .max, signatures.map(\.signedAt).max() ?? .max)
            let first = store.deliveries.filter { $0.run == id }.compactMap { asked[$0.id] }.min()
            if first ?? .min < quorum { violate("sent at \(first ?? 0), signed at \(quorum)") }
        }
    }

    private func child(
        _ words: [String], as user: String, _ environment: [String: String] = [:]
    ) throws -> ChildProcess {
        try installation.start(
            words, name: words.first ?? "", environment: environment.merging(["SUDO_USER": user]) { $1 })
    }

    private func expect(_ words: [String], as user: String, _ code: Int32, output: String = "") throws {
        let child = try child(words, as: user)
        let end = child.wait()
        if end != .exited(code) || !(output.isEmpty || child.output.contains(output)) {
            violate("\(words) as \(user): \(end): \(child.output)\(child.errors)")
        }
    }

    private static func milliseconds() -> Int { Int(Date().timeIntervalSince1970 * 1_000) }

    private func violate(_ words: String) { counts.violations.append("run \(run): \(words)") }
}

extension StoreRecord {
    fileprivate var open: Approval? { approvals.first { $0.state == "open" } }
}
