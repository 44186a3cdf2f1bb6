import Foundation
import Model
import TestSupport
import Testing

/// Several daemons on one store, each as on its own machine. Applies faults during a run, and counts their effects.
final class Fleet {
    static let mixture = [
        Blow.kill, .freeze, .cut, .serverRestart, .connectionsUsedUp, .order(.pause), .order(.serve), .order(.cancel),
    ]

    struct Counts {
        var blows = 0
        var kinds: [Blow: Int] = [:]
        var deliveries = 0
        var doubtful = 0
        var doubles = 0
        /// The number of sent COMMITs that the server has forgotten.
        var forgotten = 0
        /// The summary of the search for such COMMITs.
        var looks = ""
        /// The number of requests of senders that others had taken over.
        var afterTakeover = 0
        /// The number of senders that had no heartbeat for the takeover timeout while the server was there. Others took
        /// them over, as they must, so requests in flight are in doubt. A busy machine starves senders that live.
        var starved = 0
        /// The number of runs that were cancelled while they were sending.
        var cancelled = 0
        var violations: [String] = []
    }

    /// The takeover timeout, in milliseconds.
    static let takeoverMs = 10_000
    /// The takeover timeout, with a margin.
    private static let takeover: Duration = .seconds(13)
    /// The maximum number of connections of a server that belongs to one test.
    static let connections = 60
    /// The time in which a run must finish. Each blow extends it by ``patienceForBlow``.
    private static let patience: Duration = .seconds(600)
    private static let patienceForBlow: Duration = .seconds(30)

    /// The maximum number of consecutive starts of a sender that finds a server without room.
    private static let startsMax = 5

    /// The machine on which a person starts the runs.
    static let person = "person"

    private let scene: Scene
    var cluster: PostgresCluster
    private let standby: PostgresCluster?
    let installation: Installation
    private let proxy: CuttingProxy?
    /// The error of each sender's wall clock, in seconds.
    private let clockOffsets: [Int]
    private(set) var senders: [ChildProcess?]
    private var jitter: SeededGenerator
    private var mixture: [Blow] = []
    var isMixed = false
    private var clocksStandStill = false
    /// The ends of the senders' logs when they were last read.
    var said = ""
    var counts = Counts()
    /// The times at which senders were stopped, and continued after others had taken them over.
    private var frozen: [(stopped: Int, continued: Int)] = []
    private var window: CommitWindow?
    /// The occurrence of the current run.
    var current = 1
    /// The runs that were cancelled while they were sending.
    var cancellations: [Cancellation] = []
    /// The daemon in addition to the senders, see ``Order/serve``.
    var another: ChildProcess?

    /// - Parameters:
    ///   - isCut: whether the senders reach the server through a proxy.
    ///   - clockOffsets: the error of each sender's wall clock, in seconds.
    init(
        _ scene: Scene, senders: Int, seed: UInt64, on cluster: PostgresCluster, isCut: Bool = false,
        standby: PostgresCluster? = nil, clockOffsets: [Int]? = nil
    ) throws {
        self.standby = standby
        self.scene = scene
        self.clockOffsets = clockOffsets ?? Array(repeating: 0, count: senders)
        self.cluster = cluster
        proxy = isCut ? try CuttingProxy(to: cluster) : nil
        installation = try Installation(scene, seed: seed, on: cluster, through: proxy, standby: standby)
        self.senders = Array(repeating: nil, count: senders)
        jitter = SeededGenerator(seed: seed)
    }

    deinit {
        for sender in (senders + [another]).compactMap(\.self) {
            sender.signal(SIGCONT)
            sender.signal(SIGKILL)
            _ = sender.wait()
        }
    }

    /// - Parameters:
    ///   - blows: the maximum number of blows during the run.
    ///   - apart: the time between two blows, in milliseconds.
    func execute(_ blow: Blow, blows: Int, apart: ClosedRange<Int>) throws -> Counts {
        clocksStandStill = blow == .pause
        let imported = try installation.fanfare("devices", "import", "\(installation.folder)/devices.csv")
        guard imported.end == .exited(0) else { return refused("devices import", imported.errors) }
        for index in senders.indices { try start(index) }
        awaitStarts()
        for number in 1...scene.runs { try finish(number, blow, blows: blows * number / scene.runs, apart: apart) }
        if blow.takesServerAway { try awaitEveryStart() }
        try prove()
        return counts
    }

    private func finish(_ number: Int, _ blow: Blow, blows: Int, apart: ClosedRange<Int>) throws {
        current = number
        let run = try installation.start(
            ["run", "campaign", "--occurrence", "\(number)", "--yes"], name: "run", machine: Self.person)
        let deadline = ContinuousClock.now + Self.patience + Self.patienceForBlow * blows
        while try !hasEnded(number), ContinuousClock.now < deadline {
            usleep(UInt32(apart.lowerBound + Int(jitter.next() % UInt64(apart.count))) * 1_000)
            if counts.blows < blows, try isGoingOn(number) { try strike(blow) }
            if blow.takesServerAway { try startThoseThatGaveUp() }
        }
        let expected = cancellations.contains { $0.occurrence == number } ? "cancelled" : "finished"
        if try state(number) != expected || !hasEnded(number) {
            _ = refused("run \(number)", "is \(try state(number)): \(senders.compactMap { $0?.errors.suffix(1_500) })")
        }
        run.signal(SIGKILL)
        _ = run.wait()
    }

    /// Restarts senders that exited with 75, as a service manager does. A sender exits so if the server is unavailable
    /// at its start.
    private func startThoseThatGaveUp() throws {
        for index in senders.indices where senders[index]?.hasEnded == true {
            if senders[index]?.wait() != .exited(75) { _ = refused("sender \(index)", "ended by itself") }
            try start(index)
        }
    }

    /// Waits until all senders have started. The run may finish before the last of them has tried.
    private func awaitEveryStart() throws {
        for _ in 0..<Self.startsMax {
            awaitStarts()
            if senders.allSatisfy({ $0?.hasEnded != true }) { return }
            try startThoseThatGaveUp()
        }
    }

    private func start(_ index: Int) throws {
        let offset = clockOffsets[index]
        var environment: [String: String] = [:]
        if offset != 0 { environment["CLOCK_OFFSET"] = "\(offset)" }
        if clocksStandStill { environment["CLOCK_STANDS"] = "1" }
        if !environment.isEmpty { environment["LD_PRELOAD"] = BuiltProgram.killSwitch }
        senders[index] = try installation.start(
            ["serve"], name: "serve\(index)", machine: "machine\(index)", environment: environment)
    }

    private func strike(_ blow: Blow) throws {
        if blow == .mixed {
            isMixed = true
            if mixture.isEmpty { mixture = Self.mixture.shuffled(using: &jitter) }
            return try strike(mixture.removeLast())
        }
        counts.blows += 1
        counts.kinds[blow, default: 0] += 1
        let index = Int(jitter.next() % UInt64(senders.count))
        switch blow {
        case .kill:
            kill(index)
            try examine()
            try start(index)
        case .loss:
            kill(index)
            wait(Self.takeover)
            try examine()
            try start(index)
        case .freeze, .pause:
            // Other senders take over only a sender that participates in the run.
            if !isMixed { try gather() }
            senders[index]?.signal(SIGSTOP)
            let stopped = Self.milliseconds()
            wait(Self.takeover)
            // If the other senders are stalled as well, their timeout is longer.
            if !isMixed { try awaitTakeover(of: index) }
            try examine()
            // The end of the run, or another blow, would also silence the connections of the other senders.
            if !isMixed { frozen.append((stopped, Self.milliseconds())) }
            senders[index]?.signal(SIGCONT)
            // The sender notices the takeover and exits. It is then started again, as by a service manager.
            wait(.seconds(5))
            kill(index)
            try start(index)
        case .serverRestart, .serverAway:
            if !isMixed { try gather() }
            try cluster.stop()
            wait(blow == .serverAway ? .seconds(15) : .seconds(1))
            try cluster.start()
            try examine()
        case .serverAwayThen(let order): try comeBack(with: order)
        case .order(let order):
            try give(order)
            try examine()
        case .failover: try failOver()
        case .lateFailover: try failOverLate()
        case .connectionsUsedUp:
            useUpConnections()
            try examine()
        case .locksUsedUp:
            useUpLocks()
            try examine()
        case .diskFull:
            try fillDisk()
            try examine()
        case .mixed: break
        case .cut: cut()
        case .backendLoss:
            try loseBackend()
            try examine()
        case .serverCrash:
            try gather()
            try cluster.crash()
            wait(.seconds(1))
            try cluster.start()
            try examine()
        }
    }

    private func loseBackend() throws {
        guard case .server(_, let database) = installation.store else { return }
        if window == nil {
            try gather()
            window = CommitWindow(cluster, database: database)
        }
        try window?.strike()
    }

    func count(_ rows: String) throws -> Int {
        guard case .server(_, let database) = installation.store else { return 0 }
        return Int(try cluster.sql("SELECT count(*) FROM \(rows)", database: database)) ?? 0
    }

    private func cut() {
        guard let proxy else { return }
        switch jitter.next() % 4 {
        case 0: proxy.cut(.before("COMMIT\0"))
        case 1: proxy.cut(.beforeAnswer(to: "COMMIT\0"))
        case 2: proxy.cut(.silence(after: "COMMIT\0"))
        default: proxy.cutAll()
        }
    }

    private func failOver() throws {
        guard let standby, case .server(_, let database) = installation.store else { return }
        try cluster.crash()
        // The time that a person or a program needs to notice the failure.
        wait(.seconds(3))
        try standby.promote()
        cluster = standby
        installation.store = .server(standby, database: database)
        try examine()
    }

    /// Fails over to a standby that lacks the outcomes of about 500 deliveries.
    private func failOverLate() throws {
        try gather()
        try standby?.stopReceiving()
        let left = try pending()
        let deadline = ContinuousClock.now + .seconds(30)
        while try pending() > left - 500, ContinuousClock.now < deadline { wait(.milliseconds(100)) }
        try failOver()
    }

    private func pending() throws -> Int {
        guard case .server(_, let database) = installation.store else { return 0 }
        return Int(try cluster.sql("SELECT coalesce(sum(pending), 0) FROM run", database: database)) ?? 0
    }

    /// Waits until all senders participate in the run, or the run is over. A sender exits with 75 if the server is
    /// unavailable at its start.
    func gather() throws {
        let deadline = ContinuousClock.now + Process.longest
        while try count("run_sender") < senders.count, try isGoingOn(current), ContinuousClock.now < deadline {
            wait(.milliseconds(100))
        }
    }

    /// Waits until other senders have taken over a stopped sender.
    private func awaitTakeover(of index: Int) throws {
        guard let pid = senders[index]?.pid else { return }
        try Patience.wait(for: "the takeover of sender \(index)") {
            try count("sender WHERE lost_at IS NOT NULL AND split_part(name, ':', 2) = '\(pid)'") > 0
                || !isGoingOn(current)
        }
    }

    private func kill(_ index: Int) {
        senders[index]?.signal(SIGKILL)
        _ = senders[index]?.wait()
        senders[index] = nil
    }

    func wait(_ duration: Duration) { usleep(UInt32(duration / .milliseconds(1)) * 1_000) }

    static func milliseconds() -> Int { Int(Date().timeIntervalSince1970 * 1_000) }

    func examine() throws {
        counts.violations += try installation.store.record().problems.map { "after blow \(counts.blows): \($0)" }
    }

    private func isGoingOn(_ number: Int) throws -> Bool { try state(number) == "running" }
    private func hasEnded(_ number: Int) throws -> Bool {
        switch try state(number) {
        case "finished", "paused", "failed": true
        // The last sender to leave a cancelled run records its end.
        case "cancelled": (try? count("run WHERE occurrence = '\(number)' AND finished_at IS NOT NULL")) == 1
        default: false
        }
    }

    func state(_ number: Int) throws -> String {
        guard case .server(_, let database) = installation.store else { return "" }
        // A server that was just hit may not respond yet.
        let sql = "SELECT coalesce(max(state), '') FROM run WHERE occurrence = '\(number)'"
        return (try? cluster.sql(sql, database: database)) ?? "running"
    }

    private func prove() throws {
        // A sender that has just started would die of the signal, because it does not handle the signal yet.
        awaitStarts()
        let starved = try processes(ofLost: Self.isDue)
        counts.starved = starved.count
        for sender in senders.compactMap(\.self) { sender.signal(SIGTERM) }
        for index in senders.indices {
            guard let sender = senders[index] else { continue }
            senders[index] = nil
            let end = sender.wait()
            if end == .exited(75), starved.contains(sender.pid) { continue }
            if end != .exited(0) { _ = refused("sender \(index)", "ended with \(end): \(sender.errors.suffix(1_000))") }
        }
        try endAnother()
        let verified = try installation.fanfare("verify")
        if verified.end != .exited(0) { _ = refused("verify", verified.output + verified.errors) }
        counts.forgotten = try window?.forgotten() ?? 0
        counts.looks = window?.summary ?? ""
        installation.stopSimulator()
        let wire = try WireLog(folder: installation.folder)
        let store = try installation.store.record(isWhole: true)
        let proof = Proof(scene, store, wire, cancelled: cancelled(in: store))
        counts.deliveries = store.deliveries.count
        counts.doubtful = store.deliveries.count { $0.doubts > 0 }
        counts.doubles = proof.doubles
        counts.violations += proof.violations + lateRequests(store, wire)
        for (stopped, continued) in frozen {
            counts.afterTakeover += wire.requests(of: stopped, after: continued, lanes: scene.lanes)
        }
        if counts.afterTakeover > 0 {
            counts.violations.append("\(counts.afterTakeover) requests of senders that others had taken over")
        }
    }

    /// Waits until each sender has started or exited. A sender that finds a cut connection at its start exits with 75.
    private func awaitStarts() {
        for sender in senders.compactMap(\.self) {
            let deadline = ContinuousClock.now + Process.longest
            while !sender.errors.contains("files read"), !sender.hasEnded, ContinuousClock.now < deadline {
                wait(.milliseconds(20))
            }
        }
    }

    @discardableResult func refused(_ what: String, _ why: String) -> Counts {
        counts.violations.append("\(what): \(why)")
        return counts
    }
}

extension Fleet.Counts {
    var summary: String {
        "\(blows) blows (\(kinds.map { "\($0.value) \($0.key)" }.sorted().joined(separator: ", "))), \(deliveries) deliveries, \(doubtful) ever in doubt, \(doubles) doubles under resend, "
            + "\(cancelled) cancelled, \(forgotten) commits forgotten, \(afterTakeover) requests after a takeover, \(violations.count) violations"
    }
}
