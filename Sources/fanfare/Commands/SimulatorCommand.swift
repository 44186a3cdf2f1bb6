import APNsSimulator
import ArgumentParser
import Foundation
import UnixSignals

struct SimulatorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulator", abstract: "Run an HTTP/2 server that behaves as APNs does, for rehearsals and tests.",
        discussion: "It prints its ports and the CA file to trust, and works until Ctrl-C.")

    @Option(help: "Port of the production side; 0 takes a free one.") var port = 8443
    @Option(help: "Port of the sandbox side; 0 takes a free one.") var sandboxPort = 8444
    @Option(help: "Address to listen on.") var host = "127.0.0.1"
    @Option(help: "A signing key it accepts, KEYID:TEAMID:PATH; may be repeated.") var key: [String] = []
    @Option(help: "A topic it knows; may be repeated (default: those of the registry).") var topic: [String] = []
    @Option(help: "Registered tokens, JSON Lines with token, environment, topic, gone_since and delay_ms.")
    var registry: String?
    @Option(help: "Where it writes its CA certificate.") var directory = "."
    @Option(help: "Write every request to this file, as JSON Lines.") var log: String?
    @Option(help: "Answer this many milliseconds late.") var answerDelay = 0
    @Flag(help: "Answer 200 to everything, unchecked and as fast as possible.") var acceptAll = false
    @Flag(help: "Accept any well-formed token, registered or not.") var anyToken = false

    func run() async throws {
        let simulator = try Simulator(try options())
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        try simulator.start()
        defer { simulator.stop() }
        Console.print(
            """
            production \(host):\(simulator.port(for: .production))
            sandbox    \(host):\(simulator.port(for: .sandbox))
            trust      \(simulator.authorityPath)

            In fanfare.yaml, under the app:
              endpoints:
                production: \(host):\(simulator.port(for: .production))
                sandbox: \(host):\(simulator.port(for: .sandbox))
                trust: \(simulator.authorityPath)
            """)
        for await _ in signals { break }
        simulator.stop()
        let counts = simulator.counts()
        Console.print(
            "\(counts.requests.grouped) requests, \(counts.accepted.grouped) accepted, "
                + "\(counts.connections.grouped) connections")
    }

    private func options() throws -> SimulatorOptions {
        var options = SimulatorOptions(directory: directory)
        options.host = host
        options.productionPort = port
        options.sandboxPort = sandboxPort
        options.mode = acceptAll ? .acceptAll : .strict
        options.unknownTokens = anyToken ? .accept : .reject
        options.keys = try key.map(Self.key)
        options.topics = Set(topic)
        options.logPath = log
        options.answerDelayMs = answerDelay
        if let registry { options.registry = try SimulatorRegistry.load(registry) }
        return options
    }

    private static func key(_ text: String) throws -> SimulatorKey {
        let parts = text.split(separator: ":", maxSplits: 2).map(String.init)
        guard parts.count == 3 else { throw ValidationError("--key \(text): write KEYID:TEAMID:PATH") }
        guard let pem = try? String(contentsOfFile: parts[2], encoding: .utf8) else {
            throw Failure(.configuration, "cannot read the key file \(parts[2]); check the path and its permissions")
        }
        return SimulatorKey(keyID: parts[0], teamID: parts[1], pem: pem)
    }
}
