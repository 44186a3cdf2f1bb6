import APNs
import Foundation
import Testing

/// A folder with everything a scene needs, and the simulator in a process of its own.
final class Installation {
    static let topic = "com.example.wendercast"
    private static let keyID = "TESTKEY001"
    private static let teamID = "TESTTEAM01"

    let folder: String
    let tokens: [String]
    private let scene: Scene
    private let simulator: ChildProcess
    private var isSimulatorRunning = true

    init(_ scene: Scene, seed: UInt64) throws {
        self.scene = scene
        let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-ground-\(UUID().uuidString)").path
        self.folder = folder
        tokens = (0..<scene.devices).map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "cd", count: 28) + String(repeating: "0", count: 8 - digits.count) + digits
        }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let write = { (name: String, text: String) in
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
        }
        try write("key.p8", try SigningKey.generatedPEM())
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(folder)/key.p8")
        try write("registry.jsonl", Self.registry(tokens))
        try write(
            "devices.csv",
            "token,environment,topic,installation_id,registered_at\n"
                + tokens.enumerated().map { "\($1),production,\(Self.topic),i-\($0),2026-01-01T00:00:00Z\n" }.joined())
        try write("campaign.yaml", Self.campaign(scene))
        try write("ground.yaml", Self.template(scene))
        try write("faults.yaml", "faults:\n" + scene.faults.map { "  - \($0)\n" }.joined())
        simulator = try Self.startSimulator(scene, folder, seed: seed)
        try write("fanfare.yaml", try Self.configuration(scene, folder, simulator))
    }

    deinit {
        if isSimulatorRunning { stopSimulator() }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Completes the request log.
    func stopSimulator() {
        isSimulatorRunning = false
        simulator.signal(SIGTERM)
        _ = simulator.wait()
    }

    /// Runs a command to its end, without a kill, and returns its exit code.
    func fanfare(_ arguments: String...) throws -> (end: ChildProcess.End, output: String, errors: String) {
        let child = try start(arguments, name: "command")
        return (child.wait(), child.output, child.errors)
    }

    func start(_ arguments: [String], name: String, environment: [String: String] = [:]) throws -> ChildProcess {
        try ChildProcess(
            arguments + ["--config", "\(folder)/fanfare.yaml"], folder: folder, name: name, environment: environment)
    }

    private static func registry(_ tokens: [String]) -> String {
        // One in forty was uninstalled long after its registration: 410.
        tokens.enumerated().map { number, token in
            let gone = number % 40 == 7 ? #","gone_since":1790000000000"# : ""
            return #"{"token":"\#(token)","environment":"production","topic":"\#(topic)"\#(gone)}"#
        }
        .joined(separator: "\n") + "\n"
    }

    private static func campaign(_ scene: Scene) -> String {
        """
        campaign: campaign
        topic: \(topic)
        push_type: \(scene.isSilent ? "background" : "alert")
        template: ground
        expires_after: 30m
        on_unknown: \(scene.onUnknown.rawValue)
        \(scene.isSilent ? "collapse: none" : "collapse: run")
        \(scene.pace.map { "pace: {rate: \($0)/s}" } ?? "")

        """
    }

    private static func template(_ scene: Scene) -> String {
        scene.isSilent
            ? "template: ground\ncustom: {reason: test}\n"
            : "template: ground\ndefault_locale: en\nalert:\n  en: {title: Ground, body: Proven}\n"
    }

    private static func startSimulator(_ scene: Scene, _ folder: String, seed: UInt64) throws -> ChildProcess {
        var arguments = [
            "simulator", "--port", "0", "--sandbox-port", "0", "--key", "\(keyID):\(teamID):\(folder)/key.p8",
            "--topic", topic,
            "--registry", "\(folder)/registry.jsonl", "--log", "\(folder)/wire.jsonl", "--directory", folder,
            "--answer-delay", "\(scene.answerDelayMs)",
        ]
        if !scene.faults.isEmpty { arguments += ["--script", "\(folder)/faults.yaml", "--seed", "\(seed)"] }
        return try ChildProcess(arguments, folder: folder, name: "simulator")
    }

    private static func configuration(_ scene: Scene, _ folder: String, _ simulator: ChildProcess) throws -> String {
        let deadline = ContinuousClock.now + .seconds(60)
        while !simulator.output.contains("trust:") {
            try #require(ContinuousClock.now < deadline, "the simulator does not start: \(simulator.errors)")
            usleep(2_000)
        }
        let endpoints = simulator.output.split(separator: "\n").filter { $0.hasPrefix("    ") }
            .map { "    \($0)" }.joined(separator: "\n")
        return """
            store: \(folder)/fanfare.sqlite
            campaigns: \(folder)
            templates: \(folder)
            apps:
              - topic: \(topic)
                team_id: \(teamID)
                key_id: \(keyID)
                key_path: \(folder)/key.p8
                connections: \(scene.lanes)
                silent_budget: {limit: \(Scene.budget.limit), window: 1h}
                endpoints:
            \(endpoints)

            """
    }
}
