import Foundation
import GRDB
import TestSupport
import Testing

/// The wall clock of all processes that are started with ``environment``, which a test sets as it likes.
final class TurnedClock {
    let environment: [String: String]
    private let file: Int32

    init(folder: String) throws {
        let path = "\(folder)/clock"
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        environment = ["LD_PRELOAD": BuiltProgram.killSwitch, "CLOCK_FILE": path]
        turn(to: .zero)
    }

    deinit { close(file) }

    /// - Parameter offset: how far the clock is ahead of the true time.
    func turn(to offset: Duration) {
        var seconds = offset.components.seconds
        _ = pwrite(file, &seconds, MemoryLayout.size(ofValue: seconds), 0)
    }
}

/// An installation whose daemon goes by a ``TurnedClock``. The simulator keeps the true time.
final class TurnedInstallation {
    let scene: Scene
    let clock: TurnedClock
    private let installation: Installation
    private var daemon: ChildProcess?

    init(_ scene: Scene) throws {
        self.scene = scene
        installation = try Installation(scene, seed: 1)
        clock = try TurnedClock(folder: installation.folder)
        try fanfare("devices", "import", "\(installation.folder)/devices.csv")
    }

    deinit {
        daemon?.signal(SIGKILL)
        _ = daemon?.wait()
    }

    /// Writes a campaign for everybody.
    func write(_ name: String, _ more: String, expiresAfter: String = "30m") throws {
        try Data(
            """
            campaign: \(name)
            topic: \(SampleInstallation.topic)
            push_type: alert
            template: ground
            audience: everyone
            expires_after: \(expiresAfter)
            \(more)

            """.utf8
        ).write(to: URL(fileURLWithPath: "\(installation.folder)/campaigns/\(name).yaml"))
    }

    /// Writes a campaign for everybody that starts at this moment, to the second.
    func write(_ name: String, at moment: Date) throws {
        try write(name, "schedule: {at: \"\(moment.formatted(.iso8601).prefix(19))\", zone: UTC}")
    }

    func startDaemon() throws {
        let daemon = try installation.start(["serve"], name: "serve", environment: clock.environment)
        self.daemon = daemon
        try wait(for: "the daemon") { daemon.errors.contains("files read") || daemon.hasEnded }
    }

    func stopDaemon() {
        daemon?.signal(SIGTERM)
        #expect(daemon?.wait(killingAfter: .seconds(60)) == .exited(0), "\(daemon?.errors.suffix(1_500) ?? "")")
        daemon = nil
    }

    func fanfare(_ words: String...) throws {
        let child = try installation.start(words, name: "command", environment: clock.environment)
        try #require(child.wait(killingAfter: Process.longest) == .exited(0), "\(words): \(child.errors)")
    }

    func count(_ rows: String) throws -> Int {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(60)
        let queue = try DatabaseQueue(path: "\(installation.folder)/fanfare.sqlite", configuration: configuration)
        let count = try queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(rows)") ?? 0 }
        try queue.close()
        return count
    }

    func wait(for what: String, until condition: () throws -> Bool) throws {
        try Patience.wait(for: "\(what)\n\(daemon?.errors.suffix(3_000) ?? "")", until: condition)
    }

    /// How often somebody has noticed that the clock was set, and has written it down.
    func steps() throws -> Int { try count("event WHERE kind = 'clock_stepped'") }

    /// Sets the clock, and waits until somebody has noticed: one that is set back before that was never wrong.
    func turn(to offset: Duration) throws {
        let before = try steps()
        clock.turn(to: offset)
        try wait(for: "the step on record") { try steps() > before }
    }

    /// The clock is wrong for so long, or for longer if nobody notices before.
    func turn(by offset: Duration, for span: Duration) throws {
        try turn(to: offset)
        usleep(UInt32(span / .milliseconds(1)) * 1_000)
        try turn(to: .zero)
    }

    /// Sets the clock in the middle of a run. The daemon stands still between the last look and the step: a run would go on
    /// to its end meanwhile.
    func turn(to offset: Duration, while isMidway: () throws -> Bool) throws {
        let before = try steps()
        try wait(for: "the middle of the run") {
            guard try isMidway() else { return false }
            daemon?.signal(SIGSTOP)
            defer { daemon?.signal(SIGCONT) }
            guard try isMidway() else { return false }
            clock.turn(to: offset)
            return true
        }
        try wait(for: "the step on record") { try steps() > before }
    }

    /// Ends the daemon and holds its store against what the simulator saw. Returns when each run's first request came, by
    /// the true time in milliseconds.
    @discardableResult
    func prove() throws -> [Int64: Int] {
        stopDaemon()
        try fanfare("verify")
        installation.stopSimulator()
        let wire = try WireLog(folder: installation.folder)
        let record = try installation.store.record(isWhole: true)
        let proof = Proof(scene, record, wire)
        for violation in proof.violations { Issue.record("\(scene): \(violation)") }
        #expect(proof.doubles == 0)
        let asked = wire.firstAsked
        return Dictionary(record.deliveries.map { ($0.run, asked[$0.id] ?? .max) }, uniquingKeysWith: min)
    }
}
