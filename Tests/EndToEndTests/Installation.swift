import APNs
import APNsSimulator
import Foundation
import GRDB
import Testing

/// A complete small installation in a temporary folder: the repository's example campaigns, a key, a simulator.
final class Installation {
    static let topic = "com.example.wendercast"
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    let folder: TemporaryFolder
    let simulator: Simulator
    let tokens: [String]

    /// - Parameter devices: how many registered production devices are in `devices.csv` and at the simulator.
    init(devices: Int = 20, change: (inout SimulatorOptions) -> Void = { _ in }) throws {
        folder = try TemporaryFolder()
        for name in ["campaigns", "templates"] {
            try FileManager.default.copyItem(
                at: Self.root.appending(path: name).resolvingSymlinksInPath(), to: folder.url.appending(path: name))
        }
        let pem = try SigningKey.generatedPEM()
        try folder.write("key.p8", pem)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder.path + "/key.p8")
        tokens = (0..<devices).map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "ab", count: 28) + String(repeating: "0", count: 8 - digits.count) + digits
        }
        try folder.write(
            "registry.jsonl",
            tokens.map { #"{"token":"\#($0)","environment":"production","topic":"\#(Self.topic)"}"# }
                .joined(separator: "\n") + "\n")
        try folder.write(
            "devices.csv",
            "token,environment,topic,installation_id,locale,app_version,last_seen_at,registered_at\n"
                + tokens.enumerated().map {
                    "\($1),production,\(Self.topic),install-\($0),de-AT,4.5,2026-11-01T00:00:00Z,2026-01-01T00:00:00Z\n"
                }.joined())
        var options = SimulatorOptions(directory: folder.path)
        options.keys = [SimulatorKey(keyID: "TESTKEY001", teamID: "TESTTEAM01", pem: pem)]
        options.topics = [Self.topic]
        options.registry = try SimulatorRegistry.load(folder.path + "/registry.jsonl")
        options.keepsLog = true
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
        production: String? = nil, trust: String? = nil, keyID: String = "TESTKEY001", keyPath: String = "key.p8",
        more: String = ""
    ) throws {
        try folder.write(
            "fanfare.yaml",
            """
            store: fanfare.sqlite
            campaigns: campaigns
            templates: templates
            http: {listen: "127.0.0.1:0"}
            apps:
              - topic: \(Self.topic)
                team_id: TESTTEAM01
                key_id: \(keyID)
                key_path: \(keyPath)
                connections: 1
                endpoints:
                  production: \(production ?? "127.0.0.1:\(simulator.port(for: .production))")
                  sandbox: 127.0.0.1:\(simulator.port(for: .sandbox))
                  trust: \(trust ?? simulator.authorityPath)
            \(more)

            """)
    }

    @discardableResult
    func fanfare(_ arguments: String..., environment: [String: String] = [:]) throws -> Program.Result {
        try Program.run(arguments, in: folder, environment: environment)
    }

    /// Changes the store behind the program's back.
    func change(_ sql: String) throws {
        let queue = try DatabaseQueue(path: folder.path + "/fanfare.sqlite")
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }

    /// Imports the devices and the segment, and requires that it worked.
    func importDevices() throws {
        let devices = try fanfare("devices", "import", "devices.csv")
        try #require(devices.status == 0, "\(devices.errors)")
        try folder.write("fans.csv", "installation_id\n" + tokens.indices.map { "install-\($0)\n" }.joined())
        let segment = try fanfare("segments", "import", "podcast-fans", "fans.csv")
        try #require(segment.status == 0, "\(segment.errors)")
    }

    static let words = ["--var", "title=T", "--var", "link_url=https://example.com"]

    func run(_ campaign: String, _ more: String...) throws -> Program.Result {
        let words = campaign == "new-podcast" ? Self.words : []
        return try Program.run(["run", campaign, "--yes"] + words + more, in: folder)
    }
}
