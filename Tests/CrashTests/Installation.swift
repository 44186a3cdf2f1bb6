import APNs
import Foundation
import TestSupport
import Testing

/// A folder with everything that a scene needs, and the simulator as a separate process.
final class Installation {
    var store: TrialStore
    private let sample: SampleInstallation
    private let scene: Scene
    private let simulator: ChildProcess
    private var isSimulatorRunning = true

    /// - Parameters:
    ///   - cluster: the server of a scene on PostgreSQL.
    ///   - proxy: the proxy through which senders reach the server.
    init(
        _ scene: Scene, seed: UInt64, on cluster: PostgresCluster? = nil, through proxy: CuttingProxy? = nil,
        standby: PostgresCluster? = nil
    ) throws {
        self.scene = scene
        // One device in forty was uninstalled long after its registration, so APNs answers 410.
        sample = try SampleInstallation(devices: scene.devices, key: try SigningKey.generatedPEM()) {
            $0 % 40 == 7 ? 1_790_000_000_000 : nil
        }
        let folder = sample.directory
        if scene.cap != nil || !scene.stages.isEmpty { try Self.addColumns(to: "\(folder.path)/devices.csv") }
        for name in ["campaigns", "templates"] {
            try FileManager.default.createDirectory(
                atPath: folder.file(name), withIntermediateDirectories: false)
        }
        try folder.write(Self.campaign(scene), to: "campaigns/campaign.yaml")
        try folder.write(Self.template(scene), to: "templates/ground.yaml")
        try folder.write("faults:\n" + scene.faults.map { "  - \($0)\n" }.joined(), to: "faults.yaml")
        store = try cluster.map(TrialStore.made(in:)) ?? .file(folder: folder.path)
        simulator = try Self.startSimulator(scene, folder.path, seed: seed)
        try folder.write(
            try Self.configuration(scene, folder.path, store.address(through: proxy, standby: standby), simulator),
            to: "fanfare.yaml")
    }

    deinit {
        if isSimulatorRunning { stopSimulator() }
    }

    var folder: String { sample.directory.path }

    /// Stops the simulator, which completes the request log.
    func stopSimulator() {
        isSimulatorRunning = false
        simulator.signal(SIGTERM)
        _ = simulator.wait()
    }

    /// Runs a command to its end, without a kill. Returns its exit and its output.
    func fanfare(_ arguments: String...) throws -> (end: ChildProcess.End, output: String, errors: String) {
        let child = try start(arguments, name: "command")
        return (child.wait(), child.output, child.errors)
    }

    /// - Parameter machine: the name of the folder with the machine's own state. Senders with the same name run on the
    ///   same machine. If `fanfare-MACHINE.yaml` exists, it is the configuration.
    func start(
        _ arguments: [String], name: String, machine: String = "machine", environment: [String: String] = [:]
    ) throws -> ChildProcess {
        var environment = environment
        environment["STATE_DIRECTORY"] = "\(folder)/\(machine)"
        let own = "\(folder)/fanfare-\(machine).yaml"
        let configuration = FileManager.default.fileExists(atPath: own) ? own : "\(folder)/fanfare.yaml"
        return try ChildProcess(
            arguments + ["--config", configuration], folder: folder, name: name, environment: environment)
    }

    /// Adds the user of each device, and the tag of the staff.
    private static func addColumns(to path: String) throws {
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        let wider = lines.dropFirst().enumerated().map { device, line in
            "\(line),\(Scene.user(device)),\(Scene.isStaff(device) ? "staff" : "")\n"
        }
        try "\(lines[0]),user_id,tags\n\(wider.joined())".write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func campaign(_ scene: Scene) -> String {
        """
        campaign: campaign
        topic: \(SampleInstallation.topic)
        push_type: \(scene.isSilent ? "background" : "alert")
        template: ground
        audience: everyone
        expires_after: 30m
        on_unknown: \(scene.onUnknown.rawValue)
        retry: {max_attempts: \(Scene.attemptsMax)}
        \(scene.isSilent ? "collapse: none" : "collapse: run")
        \(scene.pace.map { "pace: {rate: \($0)/s}" } ?? "")
        \(stages(scene))

        """
    }

    private static func stages(_ scene: Scene) -> String {
        guard !scene.stages.isEmpty else { return "" }
        let rest = scene.restNeedsApproval ? "{rest: true, needs: approval}" : "{rest: true}"
        return "stages: [\((scene.stages + [rest]).joined(separator: ", "))]"
    }

    private static func cap(_ scene: Scene) -> String {
        scene.cap.map { "{limit: \($0.limit), window: 1h, per: \($0.isOfUser ? "user" : "device")}" } ?? ""
    }

    private static func template(_ scene: Scene) -> String {
        scene.isSilent
            ? "template: ground\ncustom: {reason: test}\n"
            : "template: ground\ndefault_locale: en\nalert:\n  en: {title: Ground, body: Proven}\n"
    }

    private static func startSimulator(_ scene: Scene, _ folder: String, seed: UInt64) throws -> ChildProcess {
        var arguments = [
            "simulator", "--port", "0", "--sandbox-port", "0", "--key",
            "\(SampleInstallation.keyID):\(SampleInstallation.teamID):\(folder)/key.p8",
            "--topic", SampleInstallation.topic,
            "--registry", "\(folder)/registry.jsonl", "--log", "\(folder)/wire.jsonl", "--directory", folder,
            "--answer-delay", "\(scene.answerDelayMs)", "--streams", "\(Scene.streams)",
        ]
        if !scene.faults.isEmpty { arguments += ["--script", "\(folder)/faults.yaml", "--seed", "\(seed)"] }
        return try ChildProcess(arguments, folder: folder, name: "simulator")
    }

    private static func configuration(
        _ scene: Scene, _ folder: String, _ store: String, _ simulator: ChildProcess
    ) throws -> String {
        let deadline = ContinuousClock.now + Process.longest
        while !simulator.output.contains("trust:") {
            try #require(ContinuousClock.now < deadline, "the simulator does not start: \(simulator.errors)")
            usleep(2_000)
        }
        let endpoints = simulator.output.split(separator: "\n").filter { $0.hasPrefix("      ") }
            .map { "  \($0)" }.joined(separator: "\n")
        return """
            store: \(store)
            campaigns: \(folder)/campaigns
            templates: \(folder)/templates
            http: {listen: "127.0.0.1:0"}
            success: {min_accepted: 0, max_rejected: 100%, max_unknown: 100%}
            transport: \(scene.transport)
            apps:
              - topic: \(SampleInstallation.topic)
                team_id: \(SampleInstallation.teamID)
                key_id: \(SampleInstallation.keyID)
                key_path: \(folder)/key.p8
                connections: \(scene.lanes)
                silent_budget: {limit: \(Scene.budget.limit), window: 1h}
                frequency_caps: [\(cap(scene))]
                endpoints:
            \(endpoints)
            \(scene.signatures == 0 ? "" : "approvals: {rules: [{above: 5, needs: \(scene.signatures)}]}")

            """
    }
}
