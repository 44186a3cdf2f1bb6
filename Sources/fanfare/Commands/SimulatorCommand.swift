import APNsSimulator
import ArgumentParser
import CampaignFiles
import Campaigns
import Foundation
import Model
import UnixSignals

struct SimulatorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulator", abstract: "Run an HTTP/2 server that behaves like APNs, for rehearsals and tests.",
        discussion: """
            The simulator prints its ports and the CA file to trust, and runs until Ctrl-C. The faults to inject are \
            in a script, where each rule selects requests and names one fault:

              faults:
                - {rate: 1%, answer_lost: close}
                - {after: 500, times: 200, answer: {status: 503, reason: ServiceUnavailable}}
                - {number: 1000, goaway: {last_stream: middle, reason: Shutdown}}
                - {from: 10s, times: 1, outage: 2s}
                - {token: 740f47…, reset: refused_stream}

            Requests are chosen by token, environment, every, number, rate, after, times, from and until. Faults are \
            answer, answer_lost, delay, silence, reset, cut_answer, goaway, stream_limit, close, outage and connect.
            """)

    @Option(help: "Port of the production side; 0 chooses a free one.") var port = 8443
    @Option(help: "Port of the sandbox side; 0 chooses a free one.") var sandboxPort = 8444
    @Option(help: "Address to listen on.") var host = "127.0.0.1"
    @Option(help: "A signing key it accepts, KEYID:TEAMID:PATH; may be repeated.") var key: [String] = []
    @Option(help: "A topic it knows; may be repeated (default: those of the registry).") var topic: [String] = []
    @Option(
        help: """
            Registered tokens, JSON Lines with token, environment, topic, gone_since (milliseconds since 1970) and \
            delay_ms.
            """)
    var registry: String?
    @Option(help: "The folder for its CA certificate, which is new at each start: reload the daemon then.")
    var directory = "."
    @Option(help: "Write every request to this file, as JSON Lines.") var log: String?
    @Option(help: "Delay every response by this many milliseconds.") var answerDelay = 0
    @Option(help: "The number of requests that a connection may have open concurrently.") var streams = 1000
    @Option(
        help: "A YAML file with the faults to inject.", completion: .file(extensions: ["yaml", "yml"]))
    var script: String?
    @Option(help: "Another fault, as in a script: '{rate: 1%, answer_lost: close}'; may be repeated.")
    var fault: [String] = []
    @Option(help: "The seed: the same seed and order of requests give the same faults.") var seed: UInt64 =
        1
    @Flag(help: "Respond 200 to every request, without checks, as fast as possible.") var acceptAll = false
    @Flag(help: "Accept any well-formed token, registered or not.") var anyToken = false

    func validate() throws {
        // A simulator without a known topic would respond BadTopic to each push.
        guard !anyToken || acceptAll || !topic.isEmpty || registry != nil else {
            throw ValidationError("--any-token needs a topic: name the app's bundle id with --topic")
        }
    }

    func run() async throws {
        let simulator = try Simulator(try options())
        let signals = await SecondSignal.first(of: .sigint, .sigterm)
        try simulator.start()
        defer { simulator.stop() }
        Console.print(
            """
            production \(host):\(simulator.port(for: .production))
            sandbox    \(host):\(simulator.port(for: .sandbox))
            trust      \(simulator.authorityPath)

            In fanfare.yaml, under the app, with the indent of its other keys:
                endpoints:
                  production: \(host):\(simulator.port(for: .production))
                  sandbox: \(host):\(simulator.port(for: .sandbox))
                  trust: \(simulator.authorityPath)
            """)
        for await _ in signals { break }
        SecondSignal.workEnded()
        simulator.stop()
        let counts = simulator.counts()
        Console.print(
            "\(counts.requests.counted("request")), \(counts.accepted.grouped) accepted, "
                + counts.connections.counted("connection")
                + (counts.faults == 0
                    ? "" : ", \(counts.faults.counted("fault")), \(counts.lostAnswers.counted("answer")) lost"))
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
        options.streamsMax = streams
        options.seed = seed
        options.faults = try faults()
        if let registry { options.registry = try SimulatorRegistry.load(registry) }
        return options
    }

    private func faults() throws -> [FaultRule] {
        var written: [ScriptedFault] = []
        var problems: [Diagnostic] = []
        if let script {
            let (rules, diagnostics) = FaultScriptFile.load(path: script)
            written += rules ?? []
            problems += diagnostics
        }
        for text in fault {
            let (rule, diagnostics) = FaultScriptFile.read(rule: text, source: "--fault")
            if let rule { written.append(rule) }
            problems += diagnostics
        }
        guard problems.allSatisfy({ $0.severity == .warning }) else { throw Failure(.invalidData, problems) }
        return written.map(FaultRule.init)
    }

    private static func key(_ text: String) throws -> SimulatorKey {
        let parts = text.split(separator: ":", maxSplits: 2).map(String.init)
        guard parts.count == 3 else { throw ValidationError("--key \(text): write KEYID:TEAMID:PATH") }
        return try SimulatorKey(keyID: parts[0], teamID: parts[1], path: parts[2])
    }
}

extension FaultRule {
    /// Converts a rule of a fault script to a rule of the simulator.
    init(_ written: ScriptedFault) {
        let pick: FaultCondition.Pick =
            switch written.pick {
            case .every(let count): .every(count)
            case .number(let number): .number(number)
            case .rate(let rate): .rate(rate)
            }
        var when = FaultCondition(
            pick: pick, token: written.token?.bytes,
            environment: written.environment.map { $0 == .production ? .production : .sandbox },
            timesMax: written.timesMax)
        when.skip = written.skip
        when.fromMs = written.from?.wholeMilliseconds
        when.untilMs = written.until?.wholeMilliseconds
        let (moment, action) = Self.action(written.action)
        self.init(when: when, moment: moment, action: action)
    }

    private static func action(_ written: ScriptedFault.Action) -> (Moment, FaultAction) {
        switch written {
        case .answer(let response): (.beforeChecks, action(response))
        case .answerLost(let loss): (.afterChecks, action(loss))
        case .delay(let delay): (.beforeChecks, .delay(milliseconds: Int(delay.wholeMilliseconds)))
        case .silence(let extent): (.beforeChecks, extent == .stream ? .silence : .silentConnection)
        case .reset(let code): (.beforeChecks, .reset(code: code.number))
        case .cutAnswer: (.beforeChecks, .cutAnswer)
        case .goAway(let goAway): (.beforeChecks, action(goAway))
        case .streamLimit(let streams, let time):
            (.beforeChecks, .streamLimit(streams, forMilliseconds: time.map { Int($0.wholeMilliseconds) }))
        case .close: (.beforeChecks, .close)
        case .outage(let time): (.beforeChecks, .outage(milliseconds: Int(time.wholeMilliseconds)))
        case .connect(let connect): (.connect, connect == .drop ? .close : .silence)
        }
    }

    private static func action(_ response: ScriptedFault.Response) -> FaultAction {
        if let body = response.body {
            return .page(status: response.status, body: body, retryAfter: response.retryAfter)
        }
        return .answer(
            status: response.status, reason: response.reason ?? "", timestamp: response.timestamp.map(Int64.init),
            retryAfter: response.retryAfter)
    }

    private static func action(_ loss: ScriptedFault.Loss) -> FaultAction {
        switch loss {
        case .close: .close
        case .reset: .reset(code: ScriptedFault.Code.internalError.number)
        case .silence: .silence
        case .silentConnection: .silentConnection
        }
    }

    private static func action(_ goAway: ScriptedFault.GoAway) -> FaultAction {
        let last: FaultAction.LastStream =
            switch goAway.lastStream {
            case .none: .none
            case .before: .before
            case .middle: .middle
            case .this: .this
            case .all: .all
            }
        return .goAway(
            lastStream: last, reason: goAway.reason, text: goAway.text, isTwice: goAway.isTwice, closes: goAway.closes)
    }
}

extension ScriptedFault.Code {
    /// The error code of RFC 9113 section 7.
    fileprivate var number: UInt32 {
        switch self {
        case .noError: 0
        case .protocolError: 1
        case .internalError: 2
        case .refusedStream: 7
        case .cancel: 8
        case .enhanceYourCalm: 11
        }
    }
}
