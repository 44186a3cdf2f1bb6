import APNsSimulator
import Foundation
import Synchronization
import TestSupport
import Testing
import WebClient

@testable import fanfare

/// The README's demo that stays, with its pages; ends with its last reference.
///
/// `fanfare demo` plays its broadcasts once for each size. Every test gets a copy of what it leaves, with a simulator
/// and a daemon of its own, as `--stay` starts them. Tests of `--stay` itself ask for it.
final class DemoWithPages {
    let folder: TemporaryDirectory
    let program: RunningProgram
    /// Good once.
    let link: String
    /// `nil` if the program has its own.
    private let simulator: Simulator?

    var address: String { String(link.prefix(while: { $0 != "?" }).dropLast("/sign-in".count)) }

    /// - Parameters:
    ///   - pace: the pushes per second of the broadcasts that a test starts.
    ///   - stays: whether the program itself plays the demo and stays, at its own pace.
    init(devices: Int = 20_000, pace: Int = 1_000, stays: Bool = false) throws {
        folder = try TemporaryDirectory()
        if stays {
            simulator = nil
            program = try RunningProgram(
                ["demo", "--stay", "--dir", "demo", "--devices", "\(devices)"], in: folder)
        } else {
            try FileManager.default.copyItem(
                atPath: PlayedDemos.shared.folder(devices: devices), toPath: folder.file("demo"))
            let simulator = try Self.simulator(in: folder.file("demo"))
            self.simulator = simulator
            try Self.configure(folder, simulator, pace: pace)
            program = try RunningProgram(
                ["serve", "--link", "--log-level", "warning", "--config", folder.file("demo/fanfare.yaml")], in: folder)
        }
        let program = program
        try program.wait(atMost: .seconds(600)) { program.errors.contains("/sign-in?link=") }
        let found = program.errors.firstMatch(of: /http:\/\/[^\s]+\/sign-in\?link=[\w-]+/)
        link = String(try #require(found).0)
    }

    /// A demo whose broadcasts take two minutes: one can be seen and paused in the middle, also on a busy machine. A
    /// test that does not wait for the end gives a slower pace.
    static func withSlowBroadcasts(pace: Int = 30) throws -> DemoWithPages {
        try DemoWithPages(devices: 5_000, pace: pace)
    }

    deinit { simulator?.stop() }

    /// The simulator that the demo starts.
    private static func simulator(in folder: String) throws -> Simulator {
        let key = try String(contentsOfFile: "\(folder)/\(DemoFolder.keyFile)", encoding: .utf8)
        return try DemoFolder.simulator(in: folder, key: key)
    }

    /// Writes the configuration of a demo that stays.
    private static func configure(_ folder: TemporaryDirectory, _ simulator: Simulator, pace: Int) throws {
        let lines = try folder.read("demo/fanfare.yaml").split(separator: "\n", omittingEmptySubsequences: false)
        let values = [
            "production": "127.0.0.1:\(simulator.port(for: .production))",
            "sandbox": "127.0.0.1:\(simulator.port(for: .sandbox))", "trust": simulator.authorityPath,
        ]
        let changed = lines.map { line in
            let key = line.prefix { $0 != ":" }.drop { $0 == " " }
            return values[String(key)].map { "\(line.prefix { $0 != ":" }): \($0)" } ?? String(line)
        }
        let staying = DemoFolder.staying.replacing("rate: 1000/s", with: "rate: \(pace)/s")
        try folder.write(changed.joined(separator: "\n") + staying, to: "demo/fanfare.yaml")
    }

    /// As Ctrl-C does.
    func stop() throws {
        program.signal(SIGINT)
        _ = try program.finish()
    }

    /// What a command prints, which succeeds.
    @discardableResult
    func fanfare(_ arguments: String...) throws -> String {
        let result = try Program.run(arguments + ["--config", folder.file("demo/fanfare.yaml")], in: folder)
        try #require(result.status == 0, "\(arguments): \(result.errors)\(result.output)")
        return result.output
    }

    /// A new access token.
    func token(_ role: String) throws -> String {
        let made = try fanfare("tokens", "create", "\(role)-of-the-test", "--role", role, "--json")
        return String(try #require(made.firstMatch(of: /fanfare_[\w-]+/)).0)
    }

    /// What the API answers.
    func api(_ path: String, _ token: String) async throws -> String {
        let request = WebRequest(.get, "\(address)/api/v1\(path)", headers: ["Authorization": "Bearer \(token)"])
        let answer = try await HTTPClient(addresses: .any).send(request)
        #expect(answer.status == 200)
        return String(decoding: answer.body, as: UTF8.self)
    }
}

/// What `fanfare demo` leaves, for each number of devices. The first use plays the demo, and the exit of the process
/// removes it.
private final class PlayedDemos: Sendable {
    static let shared = PlayedDemos()

    private let demos = Mutex<[Int: TemporaryDirectory]>([:])

    private init() {
        atexit { PlayedDemos.shared.demos.withLock { $0 = [:] } }
    }

    /// Other threads that ask for a demo meanwhile wait.
    func folder(devices: Int) throws -> String {
        try demos.withLock { demos in
            if let played = demos[devices] { return played.file("demo") }
            let folder = try TemporaryDirectory()
            let result = try Program.run(
                ["demo", "--dir", "demo", "--devices", "\(devices)"], in: folder, patience: .seconds(600))
            try #require(result.status == 0, "\(result.output)\n\(result.errors)")
            demos[devices] = folder
            return folder.file("demo")
        }
    }
}

extension Browser {
    /// The value of the cookie of the person who is signed in.
    func sessionCookie() async throws -> String {
        let found = try await protocolCommand("Network.getCookies", [:])
        let cookies = found?["cookies"] as? [[String: Any]] ?? []
        return try #require(cookies.first { $0["name"] as? String == "fanfare" }?["value"] as? String)
    }

    /// On the page of a run that goes on: stops it with a reason, and lets it go on.
    func pauseAndResume() async throws {
        try await click(named("Pause"))
        try await type("wrong link", into: "details[open] input[name=reason]")
        try await follow("details[open] form button")
        let paused = try await text("p .state")
        #expect(paused.contains(/^paused by terminal-[0-9a-f]{8} \(signed in\): wrong link$/), "\(paused)")
        try await click(named("Resume"))
        try await follow("details[open] form button")
    }
}
