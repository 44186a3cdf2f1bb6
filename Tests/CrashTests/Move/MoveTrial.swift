import Foundation
import Model
import TestSupport

/// Moves a copy of a store. Kills `fanfare move` at random points, and starts it again until it has finished.
final class MoveTrial {
    struct Counts {
        var kills = 0
        /// The number of kills after which the old store, neither store or the new store could send.
        var old = 0, neither = 0, new = 0
        var violations: [String] = []

        var summary: String {
            "\(kills) kills (then the old one in use \(old), neither \(neither), the new one \(new)), "
                + "\(violations.count) violations"
        }
    }

    /// The maximum number of starts until a move must have finished.
    private static let startsMax = 30
    private static let calls = [KillPoint.Call.asked, .told, .wal, .unsynced, .synced]

    let installation: Installation
    private let scene: Scene
    private let cluster: PostgresCluster
    private let toServer: Bool
    private var jitter: SeededGenerator
    private var copies = 0
    /// The database to copy if the move begins on the server.
    private var source = ""
    private(set) var counts = Counts()

    init(_ scene: Scene, on cluster: PostgresCluster, toServer: Bool, seed: UInt64) throws {
        self.scene = scene
        self.cluster = cluster
        self.toServer = toServer
        installation = try Installation(scene, seed: seed)
        jitter = SeededGenerator(seed: seed)
        expect(try installation.fanfare("devices", "import", "\(installation.folder)/devices.csv").end, "import")
        expect(try fanfare(["run", "campaign", "--occurrence", "1", "--yes"], installation.store).end, "run")
        if !toServer {
            let base = try TrialStore.made(in: cluster)
            expect(try fanfare(["move", "--to", address(base)], installation.store).end, "first move")
            guard case .server(_, let name) = base else { return }
            source = name
        }
    }

    /// - Parameter isLast: whether the moved store sends once more and is compared with the simulator's log.
    func execute(isLast: Bool = false) throws {
        let (old, new) = (try copy(), try empty())
        let before = try facts(old)
        var hasEnded = false
        for _ in 0..<Self.startsMax where !hasEnded {
            let (end, errors) = try move(old, new, killedAt: nextPoint())
            switch end {
            case .exited(0): hasEnded = true
            case .killed:
                counts.kills += 1
                try examine(old, new)
            case .exited(let code): violate("move: exit \(code): \(errors)")
            }
        }
        if !hasEnded { violate("not done after \(Self.startsMax) starts") }
        let after = try facts(new)
        if before != after { violate("\(zip(before, after).first { $0 != $1 }.map { "\($0)" } ?? "other rows")") }
        let left = try fanfare(["run", "campaign", "--occurrence", "1", "--yes"], old)
        if left.end != .exited(78) || !left.errors.contains("was moved to \(shown(new))") {
            violate("the store left says: \(left.errors)")
        }
        expect(try fanfare(["verify"], new).end, "verify")
        if isLast { try send(new) }
    }

    /// Kills a move in the middle, and gives it up.
    func giveUp() throws {
        let (old, new) = (try copy(), try empty())
        var point = 8
        while point < 100_000, try move(old, new, killedAt: .at(.told, point)).end != .exited(0) {
            // The new store also records the move. It refuses to send while a move to it is unfinished.
            if try !isUsable(old), try fanfare(["resume", "1"], new).end == .exited(78) { break }
            point *= 2
        }
        expect(try fanfare(["move", "--give-up"], old).end, "give up")
        if try !isUsable(old) || isUsable(new) { violate("given up, and not the old one is in use") }
        let again = try move(old, new, killedAt: nil)
        if again.end != .exited(3) || !again.errors.contains("new address") { violate("again there: \(again)") }
        let other = try empty()
        expect(try move(old, other, killedAt: nil).end, "a move elsewhere")
        if try isUsable(old) || !isUsable(other) { violate("not moved elsewhere") }
        let late = try fanfare(["move", "--give-up"], old)
        if late.end == .exited(0) { violate("given up after its end") }
    }

    private func send(_ store: TrialStore) throws {
        expect(try fanfare(["run", "campaign", "--occurrence", "2", "--yes"], store).end, "a run afterwards")
        installation.stopSimulator()
        counts.violations += Proof(scene, try facts(of: store), try WireLog(folder: installation.folder)).violations
    }

    private func examine(_ old: TrialStore, _ new: TrialStore) throws {
        switch (try isUsable(old), try isUsable(new)) {
        case (true, true): violate("both stores are in use")
        case (true, false): counts.old += 1
        case (false, false): counts.neither += 1
        case (false, true): counts.new += 1
        }
    }

    /// Returns whether a store could send: it refuses `resume` because the run is finished, not because of a move. A
    /// new store that is still empty cannot send.
    private func isUsable(_ store: TrialStore) throws -> Bool {
        let asked = try fanfare(["resume", "1"], store)
        if ![.exited(65), .exited(66), .exited(78)].contains(asked.end) { violate("resume: \(asked)") }
        return asked.errors.contains("run 1 is finished")
    }

    private func nextPoint() -> KillPoint? {
        switch jitter.next() % 6 {
        // Some moves are not killed.
        case 0: return nil
        case 1: return .after(milliseconds: 50 + Int(jitter.next() % 600))
        default:
            let call = Self.calls[Int(jitter.next() % UInt64(Self.calls.count))]
            return .at(call, 1 + Int(jitter.next() % (call == .asked || call == .told ? 180 : 40)))
        }
    }

    private func move(
        _ old: TrialStore, _ new: TrialStore, killedAt point: KillPoint?
    ) throws -> (end: ChildProcess.End, errors: String) {
        let environment = ["FANFARE_STORE": address(old)].merging(point?.environment ?? [:]) { $1 }
        let child = try installation.start(["move", "--to", address(new)], name: "move", environment: environment)
        guard case .after(let milliseconds) = point else { return (child.wait(), child.errors) }
        return (child.wait(killingAfter: .milliseconds(milliseconds)), child.errors)
    }

    private func fanfare(
        _ arguments: [String], _ store: TrialStore
    ) throws -> (end: ChildProcess.End, output: String, errors: String) {
        let child = try installation.start(arguments, name: "command", environment: ["FANFARE_STORE": address(store)])
        return (child.wait(), child.output, child.errors)
    }

    private func copy() throws -> TrialStore {
        guard toServer else {
            let name = "trial_" + UUID().uuidString.lowercased().replacing("-", with: "")
            try cluster.sql("CREATE DATABASE \(name) TEMPLATE \(source)")
            return .server(cluster, database: name)
        }
        let folder = try makeFolder()
        for suffix in ["", "-wal"] {
            let path = "\(installation.folder)/fanfare.sqlite\(suffix)"
            guard FileManager.default.fileExists(atPath: path) else { continue }
            try FileManager.default.copyItem(atPath: path, toPath: "\(folder)/fanfare.sqlite\(suffix)")
        }
        return .file(folder: folder)
    }

    private func empty() throws -> TrialStore {
        toServer ? try TrialStore.made(in: cluster) : .file(folder: try makeFolder())
    }

    private func makeFolder() throws -> String {
        copies += 1
        let folder = "\(installation.folder)/copy\(copies)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        return folder
    }

    private func facts(of store: TrialStore) throws -> StoreRecord { try store.record(isWhole: true) }

    /// Returns a description of each delivery, sorted.
    private func facts(_ store: TrialStore) throws -> [String] {
        try facts(of: store).deliveries.map { "\($0)" }.sorted()
    }

    private func address(_ store: TrialStore) -> String { store.address(through: nil, standby: nil) }
    /// Returns the address as messages show it.
    private func shown(_ store: TrialStore) -> String { String(address(store).prefix { $0 != "?" }) }

    private func expect(_ end: ChildProcess.End, _ what: String) {
        if end != .exited(0) { violate("\(what): \(end)") }
    }

    private func violate(_ words: String) { counts.violations.append(words) }
}
