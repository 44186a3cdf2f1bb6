import APNs
import APNsSimulator
import Foundation
import GRDB
import Model
import TestSupport
import Testing

/// A complete small installation in a temporary folder: the repository's example campaigns, a key, a simulator.
final class Installation {
    static let topic = SampleInstallation.topic
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    let folder: TemporaryDirectory
    let store: String
    let simulator: Simulator
    let tokens: [String]

    /// - Parameters:
    ///   - devices: how many registered production devices are in `devices.csv` and at the simulator.
    ///   - store: the path or URL to write into the configuration.
    init(
        devices: Int = 20, store: String = "fanfare.sqlite", change: (inout SimulatorOptions) -> Void = { _ in }
    ) throws {
        self.store = store
        let pem = try SigningKey.generatedPEM()
        let sample = try SampleInstallation(
            devices: devices, key: pem,
            columns: ["locale": "de-AT", "app_version": "4.5", "last_seen_at": "2026-11-01T00:00:00Z"])
        folder = sample.directory
        tokens = sample.tokens
        for name in ["campaigns", "templates"] {
            try FileManager.default.copyItem(
                at: Self.root.appending(path: name).resolvingSymlinksInPath(), to: folder.url.appending(path: name))
        }
        var options = SimulatorOptions(directory: folder.path)
        options.keys = [SimulatorKey(keyID: SampleInstallation.keyID, teamID: SampleInstallation.teamID, pem: pem)]
        options.topics = [Self.topic]
        options.registry = try SimulatorRegistry.load(folder.path + "/registry.jsonl")
        options.keepsLog = true
        options.clock = try RequestSignal(in: folder).clock
        change(&options)
        simulator = try Simulator(options)
        try simulator.start()
        try configure()
    }

    deinit {
        simulator.stop()
    }

    /// Writes `fanfare.yaml`; the parameters are what a test wants to be wrong.
    func configure(
        production: String? = nil, trust: String? = nil, keyID: String = SampleInstallation.keyID,
        keyPath: String = "key.p8",
        more: String = ""
    ) throws {
        try folder.write(
            """
            store: \(store)
            feeds: {allow: ["127.0.0.1"]}
            campaigns: campaigns
            templates: templates
            http: {listen: "127.0.0.1:0"}
            apps:
              - topic: \(Self.topic)
                team_id: \(SampleInstallation.teamID)
                key_id: \(keyID)
                key_path: \(keyPath)
                connections: 1
                endpoints:
                  production: \(production ?? "127.0.0.1:\(simulator.port(for: .production))")
                  sandbox: 127.0.0.1:\(simulator.port(for: .sandbox))
                  trust: \(trust ?? simulator.authorityPath)
            \(more)

            """,
            to: "fanfare.yaml")
    }

    @discardableResult
    func fanfare(_ arguments: String..., environment: [String: String] = [:]) throws -> Program.Result {
        try Program.run(arguments, in: folder, environment: environment)
    }

    @discardableResult
    func fanfare(_ arguments: [String]) throws -> Program.Result { try Program.run(arguments, in: folder) }

    /// Changes the store behind the program's back.
    func change(_ sql: String) throws {
        let queue = try patientQueue()
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }

    /// The store's file; waits for others, however slow the machine is.
    func patientQueue() throws -> DatabaseQueue {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(60)
        return try DatabaseQueue(path: folder.path + "/fanfare.sqlite", configuration: configuration)
    }

    /// As if all runs had been planned, made and last sent so much earlier.
    func ageRuns(byHours hours: Int) throws {
        let gap = hours * 3_600_000
        let queue = try patientQueue()
        try queue.write { db in
            try db.execute(
                sql: """
                    UPDATE run SET
                        created_at = created_at - :gap, started_at = started_at - :gap,
                        heartbeat_at = heartbeat_at - :gap,
                        definition = json_set(
                            definition, '$.plannedAt', json_extract(definition, '$.plannedAt') - :gap)
                    """, arguments: ["gap": gap])
            try db.execute(sql: "UPDATE lease SET leased_at = leased_at - :gap", arguments: ["gap": gap])
            for row in try Row.fetchAll(db, sql: "SELECT id, definition FROM run") {
                try db.execute(
                    sql: "UPDATE run SET definition_hash = :hash WHERE id = :id",
                    arguments: ["id": row[0] as Int64, "hash": Int64(bitPattern: FNV1a.hash(row[1] as String))])
            }
        }
        try queue.close()
    }

    /// Imports the devices and the segment, and requires that it worked.
    func importDevices() throws {
        let devices = try fanfare("devices", "import", "devices.csv")
        try #require(devices.status == 0, "\(devices.errors)")
        try folder.write("installation_id\n" + tokens.indices.map { "install-\($0)\n" }.joined(), to: "fans.csv")
        let segment = try fanfare("segments", "import", "podcast-fans", "fans.csv")
        try #require(segment.status == 0, "\(segment.errors)")
    }

    static let words = ["--var", "title=T", "--var", "link_url=https://example.com"]

    func run(_ campaign: String, _ more: String...) throws -> Program.Result {
        let words = campaign == "new-podcast" ? Self.words : []
        return try Program.run(["run", campaign, "--yes"] + words + more, in: folder)
    }
}
