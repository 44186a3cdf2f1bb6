import APNs
import APNsSimulator
import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import OutputFiles

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "The whole product in a minute: simulator, devices, a broadcast and its report.",
        discussion: """
            Every step is one of the ordinary commands, printed before it runs; only the devices are made up. \
            With --postgres, if it is installed, two senders share the demo's own server, and one of them is \
            killed in the middle. Nothing remains afterwards, except the files in a folder that you named.
            """)

    @Option(help: "A new or empty folder (default: a temporary folder).") var dir: String?
    @Option(help: "The number of devices to create.") var devices = 20_000
    @Flag(help: "Keep the simulator and the pages running until Ctrl-C, to try them and other commands.") var stay =
        false
    @Flag(help: "Run two senders on a PostgreSQL server of the demo, and show a takeover when one is killed.")
    var postgres = false

    func validate() throws {
        let least = postgres ? 5_000 : 100
        guard (least...1_000_000).contains(devices) else { throw ValidationError("--devices: \(least) to 1000000") }
        guard !(stay && postgres) else { throw ValidationError("--stay is for the demo without --postgres") }
    }

    func run() async throws {
        let programs = postgres ? try PostgresPrograms() : nil
        Self.leaveEnvironment()
        let folder = try DemoFolder(dir)
        if let programs {
            let (dir, devices) = (dir, devices)
            return try await Interruptible.run("the demo has stopped completely") {
                try await FailoverDemo(programs: programs, folder: folder, isNamed: dir != nil, devices: devices).play()
            }
        }
        let simulator = try folder.prepare(devices: devices)
        defer { simulator.stop() }
        try folder.writeConfiguration(simulator)
        try folder.enter()
        let scene = DemoScene(simulator: simulator)
        try await scene.broadcast()
        try await scene.silentPushes()
        try await scene.comparison(devices: devices)
        printSummary(folder)
        if stay { try await serve(folder, simulator) }
    }

    /// Clears environment variables of the user's installation, so that the demo does not use it.
    private static func leaveEnvironment() {
        let names = ProcessInfo.processInfo.environment.keys.sorted()
        let ours = names.filter { $0.hasPrefix("FANFARE_") }
        if !ours.isEmpty {
            Console.print("# Set in the environment, and ignored here: \(ours.joined(separator: ", "))")
        }
        let ofServices = ["STATE_DIRECTORY", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"]
        for name in ours + ofServices + names.filter({ $0.hasPrefix("PG") }) { unsetenv(name) }
    }

    /// Serves the pages, with a pace slow enough to watch a broadcast.
    private func serve(_ folder: DemoFolder, _ simulator: Simulator) async throws {
        try folder.writeConfiguration(simulator, more: DemoFolder.staying)
        Console.print(
            """

            # The simulator and the daemon keep running: open the link below in a browser. Broadcasts are now sent at
            # 1,000 per second, so that you can watch them. Press Ctrl-C to stop.
            """)
        try await DemoScene(simulator: simulator).play("serve", "--link", "--log-level", "warning")
    }

    private func printSummary(_ folder: DemoFolder) {
        Console.print(
            """

            # Left in \(folder.path):
            #   fanfare.yaml, campaigns/, templates/   what people write
            #   devices.csv, fans.csv, events.jsonl    what was imported
            #   fanfare.sqlite                         devices, runs and the outcome of every token
            #   simulator.jsonl                        every request that the simulator received
            # Try next, there:
            """)
        Console.print("cd \(folder.path)")
        for command in [
            "report new-podcast --format csv",
            "plan breaking-news --var headline='WenderCast wins' --var link_url=https://example.com/7",
            "devices show install-1",
        ] {
            Console.print("\(Self.program) \(command)")
        }
    }

    /// The name or path by which this program can be started from another folder.
    private static var program: String {
        let called = CommandLine.arguments[0]
        return called.contains("/") ? URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path : called
    }
}

/// Runs the demo's commands in sequence, and shows each run from APNs' side as well.
struct DemoScene {
    let simulator: Simulator

    func broadcast() async throws {
        try await play("devices", "import", "devices.csv")
        try await play("segments", "import", "podcast-fans", "fans.csv")
        try await play("validate")
        let arguments = [
            "--var", "title=The Long Way Home", "--var", "link_url=https://example.com/42",
        ]
        try await play(["plan", "new-podcast"] + arguments)
        try await watched { try await play(["run", "new-podcast", "--occurrence", "episode-42", "--yes"] + arguments) }
        try await play("report", "new-podcast", "--check")
    }

    /// Sends silent pushes. The budget is three background pushes per hour, so the fourth run reaches no device.
    func silentPushes() async throws {
        for number in 1...4 {
            try await watched {
                try await play("run", "refresh-episodes", "--occurrence", "refresh-\(number)", "--yes")
            }
        }
        try await play("report", "refresh-episodes", "--check")
    }

    /// Sends two texts and holds some devices out. Then people react, and the report says what the push changed.
    func comparison(devices: Int) async throws {
        let started = Timestamp(Date())
        let before = simulator.log().count
        try await watched { try await play("run", DemoCampaign.name, "--yes") }
        let pushes = simulator.log().dropFirst(before)
        Console.print("\n# People react for \(WrittenDuration.text(DemoPeople.within)), and their apps report it.")
        try await Task.sleep(for: DemoPeople.within)
        var people = DemoPeople(now: Timestamp(Date()))
        // The tokens do not depend on the time.
        var made = DemoDevices(now: started)
        let installations = (0..<devices).map { made.device($0) }.map { ($0.token, $0.installation) }
        people.get(
            pushes, installations: Dictionary(installations) { first, _ in first }, topic: DemoDevices.topic)
        people.live(devices: devices, topic: DemoDevices.topic, since: started)
        let truth = people.truth.sorted { $0.key < $1.key }.map { "\($0.value.grouped) \($0.key)" }
        Console.print("# In reality: \(truth.joined(separator: ", ")). Some reports are lost, and some are sent twice.")
        let file = try OutputFile("events.jsonl", .closedToOthers)
        try file.write(people.lines.joined(separator: "\n") + "\n")
        try file.finish()
        try await play("events", "import", "events.jsonl")
        try await play("report", DemoCampaign.name)
    }

    func play(_ arguments: String...) async throws {
        try await play(arguments)
    }

    func play(_ arguments: [String]) async throws {
        let shown = arguments.map { $0.contains(" ") ? "'\($0)'" : $0 }.joined(separator: " ")
        Console.print("\n$ fanfare \(shown)")
        guard var command = try Fanfare.parseAsRoot(arguments) as? any AsyncParsableCommand else { return }
        try await command.run()
    }

    /// Runs a step and prints what the simulator received from it.
    private func watched(_ step: () async throws -> Void) async throws {
        let before = simulator.log().count
        try await step()
        Console.print("\n# APNs' side: " + WireAccount(simulator.log().dropFirst(before)).text)
    }
}

/// A summary of the requests that the simulator received.
struct WireAccount {
    let text: String
    /// The number of accepted tokens, and the number of tokens that were accepted more than once.
    let accepted, twice: Int

    init(_ entries: some Collection<SimulatorLogEntry>) {
        let accepted = entries.filter { $0.status == 200 }
        let acceptances = Dictionary(accepted.map { ($0.token ?? "", 1) }, uniquingKeysWith: +)
        let twice = acceptances.values.filter { $0 > 1 }.count
        (self.accepted, self.twice) = (acceptances.count, twice)
        let connections = Set(entries.map(\.connection)).count
        let early = entries.filter { !$0.hadAcceptance }.map(\.openStreams).max() ?? 0
        text =
            "\(entries.count.grouped) requests on \(connections) connections, \(accepted.count.grouped) accepted, "
            + "\(twice) tokens twice; at most \(early) stream open before the first accepted request"
    }
}

/// The demo's folder. It contains everything a real installation has, with generated devices and keys.
struct DemoFolder {
    static let teamID = "DEMOTEAM01"
    static let keyID = "DEMOKEY001"
    static let keyFile = "AuthKey_\(keyID).p8"

    let path: String

    /// - Parameter path: an empty or new folder. `nil` creates a new one among the temporary files.
    init(_ path: String?) throws {
        self.path = try path.map(Self.fresh) ?? Self.temporary()
    }

    private static func fresh(_ path: String) throws -> String {
        let files = FileManager.default
        if files.fileExists(atPath: path), try !files.contentsOfDirectory(atPath: path).isEmpty {
            throw Failure(.configuration, "\(path) is not empty; name a new folder with --dir")
        }
        try files.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return URL(fileURLWithPath: path).standardizedFileURL.path
    }

    private static func temporary() throws -> String {
        var template = Array("\(NSTemporaryDirectory())/fanfare-demo-XXXXXX".replacing("//", with: "/").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Failure(.configuration, "cannot create a folder in \(NSTemporaryDirectory()); name one with --dir")
        }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Writes what an installation needs except the configuration, and starts a simulator that knows the devices.
    func prepare(devices: Int) throws -> Simulator {
        let key = try writeExamples()
        Console.print("# \(devices.grouped) WenderCast devices in 8 locales, 6 time zones and both environments")
        for (trouble, count) in try writeDevices(count: devices, now: Timestamp(Date())) {
            Console.print("#   \(count.grouped.rightAligned(to: 6)) \(trouble.rawValue)")
        }
        let simulator = try Self.simulator(in: path, key: key)
        Console.print(
            "# A simulator of APNs on 127.0.0.1: production \(simulator.port(for: .production)), "
                + "sandbox \(simulator.port(for: .sandbox))")
        return simulator
    }

    /// Starts a simulator that accepts the key and knows the devices of a demo's folder.
    static func simulator(in path: String, key: String) throws -> Simulator {
        var options = SimulatorOptions(directory: path)
        options.keys = [SimulatorKey(keyID: keyID, teamID: teamID, pem: key)]
        options.topics = [DemoDevices.topic]
        options.registry = try SimulatorRegistry.load("\(path)/registry.jsonl")
        options.keepsLog = true
        options.logsPayloads = true
        options.logPath = "\(path)/simulator.jsonl"
        let simulator = try Simulator(options)
        try simulator.start()
        return simulator
    }

    func enter() throws {
        guard FileManager.default.changeCurrentDirectoryPath(path) else {
            throw Failure(.configuration, "cannot enter \(path)")
        }
    }

    /// Writes campaigns, templates and a new signing key. Returns the key as PEM.
    private func writeExamples() throws -> String {
        for folder in ["campaigns", "templates"] {
            try FileManager.default.createDirectory(
                atPath: "\(path)/\(folder)", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
        for file in ExampleFiles.all.map({ ($0.name, $0.text) }) + DemoCampaign.files { try write(file.0, file.1) }
        let pem = try SigningKey.generatedPEM()
        try write(Self.keyFile, pem)
        return pem
    }

    /// The configuration of a demo that stays: pages on a free port, where files may be edited.
    static let staying = """
        http: {listen: "127.0.0.1:0", editing: true}
        pace: {rate: 1000/s}

        """

    func writeConfiguration(_ simulator: Simulator, store: String = "fanfare.sqlite", more: String = "") throws {
        try write(
            "fanfare.yaml",
            """
            store: "\(store)"
            campaigns: campaigns
            templates: templates
            apps:
              - topic: \(DemoDevices.topic)
                team_id: \(Self.teamID)
                key_id: \(Self.keyID)
                key_path: \(Self.keyFile)
                connections: 2                        # per environment
                silent_budget: {limit: 3, window: 1h}
                endpoints:                            # the simulator, in place of Apple
                  production: 127.0.0.1:\(simulator.port(for: .production))
                  sandbox: 127.0.0.1:\(simulator.port(for: .sandbox))
                  trust: \(simulator.authorityPath)

            """ + more)
    }

    /// Writes devices.csv, fans.csv and the simulator's registry. Returns the number of devices with each trouble.
    private func writeDevices(count: Int, now: Timestamp) throws -> [(trouble: DemoDevices.Trouble, count: Int)] {
        var devices = DemoDevices(now: now)
        var lines = [DemoDevices.header]
        var fans = ["installation_id"]
        var registry: [String] = []
        var troubles: [DemoDevices.Trouble: Int] = [:]
        for number in 0..<count {
            let device = devices.device(number)
            lines.append(device.line)
            if device.isFan { fans.append(device.installation) }
            if let line = device.registryLine { registry.append(line) }
            if let trouble = device.trouble { troubles[trouble, default: 0] += 1 }
        }
        try write("devices.csv", lines.joined(separator: "\n") + "\n")
        try write("fans.csv", fans.joined(separator: "\n") + "\n")
        try write("registry.jsonl", registry.joined(separator: "\n") + "\n")
        return DemoDevices.Trouble.allCases.map { ($0, troubles[$0, default: 0]) }
    }

    static func text(of path: String) throws -> String {
        String(decoding: try RegularFile.read(path), as: UTF8.self)
    }

    private func write(_ name: String, _ text: String) throws {
        let file = try OutputFile("\(path)/\(name)", .closedToOthers)
        try file.write(text)
        try file.finish()
    }
}
