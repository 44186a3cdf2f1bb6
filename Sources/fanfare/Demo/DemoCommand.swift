import APNsSimulator
import ArgumentParser
import Foundation
import Model
import UnixSignals
import Campaigns

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "The whole product in a minute: simulator, devices, a broadcast and its report.",
        discussion: "Every step is one of the ordinary commands, printed before it runs; only the devices are made up.")

    @Option(help: "A new or empty folder (default: one among the temporary files).") var dir: String?
    @Option(help: "How many devices to make.") var devices = 20_000
    @Flag(help: "Keep the simulator up until Ctrl-C, to try other commands from another terminal.") var stay = false

    func validate() throws {
        guard (100...1_000_000).contains(devices) else { throw ValidationError("--devices: 100 to 1000000") }
    }

    func run() async throws {
        let folder = try DemoFolder(dir)
        let key = try folder.writeExamples()
        Console.print("# \(devices.grouped) WenderCast devices in 8 locales, 6 time zones and both environments")
        for (trouble, count) in try folder.writeDevices(count: devices, now: Timestamp(Date())) {
            Console.print("#   \(count.grouped.rightAligned(to: 6)) \(trouble.rawValue)")
        }
        let simulator = try start(folder, key)
        defer { simulator.stop() }
        guard FileManager.default.changeCurrentDirectoryPath(folder.path) else {
            throw Failure(.configuration, "cannot enter \(folder.path)")
        }
        let scene = DemoScene(simulator: simulator)
        try await scene.broadcast()
        try await scene.silentPushes()
        farewell(folder)
        if stay { await untilStopped() }
    }

    private func untilStopped() async {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        Console.print("# The simulator stays up; Ctrl-C ends it.")
        for await _ in signals { break }
    }

    private func start(_ folder: DemoFolder, _ key: String) throws -> Simulator {
        var options = SimulatorOptions(directory: folder.path)
        options.keys = [SimulatorKey(keyID: DemoFolder.keyID, teamID: DemoFolder.teamID, pem: key)]
        options.topics = [DemoDevices.topic]
        options.registry = try SimulatorRegistry.load("\(folder.path)/registry.jsonl")
        options.keepsLog = true
        options.logPath = "\(folder.path)/simulator.jsonl"
        let simulator = try Simulator(options)
        try simulator.start()
        try folder.writeConfiguration(
            productionPort: simulator.port(for: .production), sandboxPort: simulator.port(for: .sandbox),
            authority: simulator.authorityPath)
        Console.print(
            "# A simulator of APNs on 127.0.0.1: production \(simulator.port(for: .production)), "
                + "sandbox \(simulator.port(for: .sandbox))")
        return simulator
    }

    private func farewell(_ folder: DemoFolder) {
        Console.print(
            """

            # Left in \(folder.path):
            #   fanfare.yaml, campaigns/, templates/   what people write
            #   devices.csv, fans.csv                  what was imported
            #   fanfare.sqlite                         devices, runs and the outcome of every token
            #   simulator.jsonl                        every request APNs' side saw
            # Try next, there:
            """)
        Console.print("cd \(folder.path)")
        for words in [
            "report new-podcast --format csv",
            "plan breaking-news --var headline='WenderCast wins' --var link_url=https://example.com/7",
            "devices show install-1",
        ] {
            Console.print("\(Self.program) \(words)")
        }
    }

    /// How this program is called from another folder.
    private static var program: String {
        let called = CommandLine.arguments[0]
        return called.contains("/") ? URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path : called
    }
}
