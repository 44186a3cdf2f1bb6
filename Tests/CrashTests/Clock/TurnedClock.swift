import Foundation
import GRDB
import TestSupport
import Testing

/// The wall clock of all processes that are started with ``environment``. A test sets it at will.
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

    /// - Parameter offset: the time by which the clock is ahead of the true time.
    func turn(to offset: Duration) {
        var seconds = offset.components.seconds
        _ = pwrite(file, &seconds, MemoryLayout.size(ofValue: seconds), 0)
    }
}

/// An installation whose daemon uses a ``TurnedClock``. The simulator keeps the true time.
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

    /// Writes a campaign for all devices.
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

    /// Writes a campaign for all devices that starts at this moment, to the second.
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

    /// Returns the number of clock steps that senders have recorded.
    func steps() throws -> Int { try count("event WHERE kind = 'clock_stepped'") }

    /// Sets the clock, and waits until a sender has recorded the step. A step that is undone before that has no effect.
    func turn(to offset: Duration) throws {
        let before = try steps()
        clock.turn(to: offset)
        try wait(for: "the step on record") { try steps() > before }
    }

    /// Sets the clock wrong for `span`, or longer if no sender records the step before.
    func turn(by offset: Duration, for span: Duration) throws {
        try turn(to: offset)
        usleep(UInt32(span / .milliseconds(1)) * 1_000)
        try turn(to: .zero)
    }

    /// Sets the clock in the middle of a run. The daemon is stopped between the last check and the step, because the
    /// run could finish in the meantime.
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

    /// Stops the daemon and compares its store with the requests that the simulator received. Returns the time of each
    /// run's first request, by the true clock, in milliseconds.
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
