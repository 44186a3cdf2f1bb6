import Foundation
import TestSupport
import Testing

/// Three daemons on one store, each as on its own machine. A machine may have a slow network to the store or to APNs.
final class Machines {
    /// The additional round-trip times of a machine.
    struct Distance {
        var toStore: Duration?
        var toAPNs: Duration?
    }

    static let number = 3

    let installation: Installation
    let cluster: PostgresCluster
    private let database: String
    private let scene: Scene
    private var proxies: [DelayingProxy] = []
    private(set) var daemons: [ChildProcess?] = Array(repeating: nil, count: Machines.number)
    private var persons: [ChildProcess] = []
    var violations: [String] = []

    init(_ scene: Scene, on cluster: PostgresCluster, far: [Int: Distance] = [:]) throws {
        self.scene = scene
        self.cluster = cluster
        installation = try Installation(scene, seed: 1, on: cluster)
        guard case .server(_, let database) = installation.store else { throw NoServer() }
        self.database = database
        for (machine, distance) in far { try place(machine, distance) }
    }

    private struct NoServer: Error {}

    deinit {
        for child in daemons.compactMap(\.self) + persons {
            child.signal(SIGCONT)
            child.signal(SIGKILL)
            _ = child.wait()
        }
    }

    /// Gives a machine a configuration that uses proxies.
    private func place(_ machine: Int, _ distance: Distance) throws {
        var text = try String(contentsOfFile: "\(installation.folder)/fanfare.yaml", encoding: .utf8)
        if let roundTrip = distance.toStore {
            let proxy = try DelayingProxy(to: .cluster(folder: cluster.folder), roundTrip: roundTrip)
            proxies.append(proxy)
            text = text.replacing(cluster.url(database), with: proxy.url(database))
        }
        if let roundTrip = distance.toAPNs {
            for match in text.matches(of: /127\.0\.0\.1:([1-9][0-9]+)/).reversed() {
                guard let port = UInt16(match.output.1) else { continue }
                let proxy = try DelayingProxy(to: .loopback(port: port), roundTrip: roundTrip)
                proxies.append(proxy)
                text.replaceSubrange(match.range, with: "127.0.0.1:\(proxy.port)")
            }
        }
        try text.write(
            toFile: "\(installation.folder)/fanfare-machine\(machine).yaml", atomically: true, encoding: .utf8)
    }

    func importDevices() throws {
        let imported = try installation.fanfare("devices", "import", "\(installation.folder)/devices.csv")
        if imported.end != .exited(0) { violations.append("devices import: \(imported.errors)") }
    }

    func start(_ machine: Int, environment: [String: String] = [:]) throws {
        daemons[machine] = try installation.start(
            ["serve"], name: "serve\(machine)", machine: "machine\(machine)", environment: environment)
    }

    func startAll() throws {
        for machine in 0..<Self.number { try start(machine) }
        for machine in 0..<Self.number { try awaitStart(machine) }
    }

    func awaitStart(_ machine: Int) throws {
        try wait("machine \(machine) to start") { daemons[machine]?.errors.contains("files read") == true }
    }

    func kill(_ machine: Int) {
        daemons[machine]?.signal(SIGKILL)
        _ = daemons[machine]?.wait()
        daemons[machine] = nil
    }

    /// Starts a run as a person does. The daemons send it.
    func run(_ occurrence: Int) throws {
        persons.append(
            try installation.start(
                ["run", "campaign", "--occurrence", "\(occurrence)", "--yes"], name: "run\(occurrence)",
                machine: "person"))
    }

    func sql(_ text: String) throws -> String { try cluster.sql(text, database: database) }

    func count(_ rows: String) throws -> Int { Int(try sql("SELECT count(*) FROM \(rows)")) ?? -1 }

    /// Returns whether `condition` becomes true in time. Records a violation if not.
    @discardableResult
    func wait(_ what: String, until condition: () throws -> Bool) throws -> Bool {
        let deadline = ContinuousClock.now + Process.longest
        while ContinuousClock.now < deadline {
            if try condition() { return true }
            usleep(50_000)
        }
        let logs = daemons.compactMap { $0.map { "\($0.errors.suffix(1_500))" } }.joined(separator: "\n--\n")
        violations.append("waited in vain for \(what): \(logs)")
        return false
    }

    func awaitEnd(ofRuns runs: Int = 1) throws {
        try wait("the end of \(runs) runs") { try count("run WHERE state = 'finished'") == runs }
    }

    static func process(ofSender name: String) -> pid_t? {
        name.split(separator: ":").dropFirst().first.flatMap { pid_t($0) }
    }

    /// Returns the machine whose daemon has this sender name.
    func machine(ofSender name: String) -> Int? {
        let pid = Self.process(ofSender: name)
        return daemons.firstIndex { $0?.pid == pid && pid != nil }
    }

    /// Stops the commands and the daemons, and compares the store with the requests that the simulator received.
    func prove(exits: Set<Int32> = [0]) throws -> WireLog {
        for person in persons { person.signal(SIGKILL) }
        for person in persons { _ = person.wait() }
        persons = []
        for daemon in daemons.compactMap(\.self) { daemon.signal(SIGTERM) }
        for machine in daemons.indices {
            guard let daemon = daemons[machine] else { continue }
            daemons[machine] = nil
            if case .exited(let code) = daemon.wait(), exits.contains(code) { continue }
            violations.append("machine \(machine) did not end in good order: \(daemon.errors.suffix(1_000))")
        }
        let verified = try installation.fanfare("verify")
        if verified.end != .exited(0) { violations.append("verify: \(verified.output + verified.errors)") }
        installation.stopSimulator()
        let wire = try WireLog(folder: installation.folder)
        violations += Proof(scene, try installation.store.record(isWhole: true), wire).violations
        return wire
    }
}
