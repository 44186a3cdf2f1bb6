@testable import APNsSimulator
import Foundation
import TestSupport
import Testing

@testable import fanfare

/// A daemon that is told to stop exits with 0 within 10 s, whatever its clients and its own work are doing.
@Suite(.ownThread, .timeLimit(.minutes(15))) struct `A daemon that is told to stop` {
    /// Longer than ``StopDeadline`` allows, since on a busy machine its thread and its last line come late.
    static let secondsMax = 20.0

    @Test func `has less than the ten seconds that are promised`() { #expect(StopDeadline.limit == .seconds(8)) }

    @Test(.serialized, arguments: StopScene.possible) func `ends in time`(scene: StopScene) async throws {
        let cluster = scene.needsDatabase ? try await PostgresCluster.own() : nil
        try await OwnThread.run {
            let daemon = try StoppedDaemon(devices: scene.devices, on: cluster)
            let clients = try scene.begin(daemon, count: scene.usualCount)
            try daemon.expectEndInTime("\(scene)")
            withExtendedLifetime(clients) {}
            guard scene.needsDatabase else { return }
            try daemon.regainDatabase()
            if scene == .databaseAwayInRun { try daemon.expectSlowRunFinished() }
            try daemon.expectEndInTime("\(scene), after the restart")
        }
    }

    /// The seed makes the mixtures the same in every run.
    @Test(arguments: Nightly.rows([0], atNight: [1]))
    func `ends in time with clients of many kinds at once`(half: Int) throws {
        var random = SplitMix64(seed: 20_261_123 + UInt64(half))
        let daemon = try StoppedDaemon(devices: 2_000)
        for mixture in 0..<(Nightly.isOn ? 12 : 3) {
            let scenes = StopScene.mixable.filter { _ in random.next() % 3 == 0 }
            let clients = try scenes.map { try $0.begin(daemon, count: 1 + Int(random.next() % 8)) }
            try daemon.meet()
            try daemon.expectEndInTime("mixture \(half).\(mixture): \(scenes)")
            withExtendedLifetime(clients) {}
            try daemon.restart()
        }
        try daemon.expectEndInTime("the last")
    }

    @Test func `ends in time while every line of its log blocks a thread, and the next start finishes its run`() throws
    {
        let daemon = try StoppedDaemon(devices: 200, log: .pipe)
        try daemon.startSlowRun()
        // From here on nothing reads the log: each thread that writes a line waits for ever.
        try daemon.fillLog()
        let guesses = try (2...20).map { try daemon.guess(from: "127.0.0.\($0)") }
        var tries = 0
        // With more processors than that some threads are left, and health goes on answering.
        while tries < 20, try daemon.isAnswering() { tries += 1 }
        withExtendedLifetime(guesses) {}
        try daemon.expectEndInTime("a log that is not read")
        try daemon.restart(log: .file)
        try daemon.expectSlowRunFinished()
        try daemon.expectEndInTime("after the restart")
    }
}

/// What clients do while the daemon is told to stop, or what its database does.
enum StopScene: String, CaseIterable {
    case idle, silent, halfHeads, abortedUploads, waitingStops, eventsRead, eventsNotRead, halfBodies, answersNotRead
    case floods, plans, bombs, reasons
    /// The PostgreSQL server is stopped, of a daemon that has noticed it, or in the middle of a run.
    case databaseAway, databaseAwayInRun

    var needsDatabase: Bool { [.databaseAway, .databaseAwayInRun].contains(self) }

    /// Those that can be had here; for each change an open head, body and answer, work of the daemon's own, and its store.
    static var possible: [StopScene] {
        let few: Set = [halfHeads, halfBodies, eventsNotRead, waitingStops, plans, databaseAwayInRun]
        let asked = allCases.filter { Nightly.isOn || few.contains($0) }
        return asked.filter { !$0.needsDatabase || PostgresCluster.isAvailable }
    }

    /// All that clients do.
    static var mixable: [StopScene] { allCases.filter { !$0.needsDatabase } }

    /// How many the daemon's store has: the plans need a campaign that is slow to count, the run needs time.
    var devices: Int {
        switch self {
        case .plans: 3_000
        case .databaseAwayInRun: 200
        default: 20
        }
    }

    var usualCount: Int {
        switch self {
        case .plans: 4
        case .waitingStops: 3
        case .bombs, .reasons: 2
        case .idle, .silent, .halfHeads, .eventsRead, .eventsNotRead: 20
        case .abortedUploads: 30
        default: 10
        }
    }

    func begin(_ daemon: StoppedDaemon, count: Int) throws -> [StopClient] {
        if needsDatabase {
            try daemon.loseDatabase(inRun: self == .databaseAwayInRun)
            return []
        }
        return try (0..<count).compactMap { try client(daemon, $0) }
    }

    private func client(_ daemon: StoppedDaemon, _ index: Int) throws -> StopClient? {
        let client = try StopClient(port: daemon.port)
        let lines = String(repeating: "{\"installation_id\": \"install-1\"}\n", count: 2_000)
        switch self {
        case .silent, .databaseAway, .databaseAwayInRun: break
        case .idle:
            client.send(daemon.head("GET", "/healthz"))
            client.read(1)
        case .halfHeads: client.send("GET /runs HTTP/1.1\r\nHost: local")
        case .abortedUploads:
            client.send(daemon.head("POST", "/api/v1/segments/fans/members", length: 100_000) + lines.prefix(5_000))
            return nil
        case .eventsRead, .eventsNotRead:
            client.send(daemon.head("GET", "/live"))
            if self == .eventsRead { client.read(1) }
        case .halfBodies:
            let path = ["/api/v1/segments/fans/members", "/api/v1/stops", "/sign-in", "/api/v1/devices"][index % 4]
            client.send(daemon.head("POST", path, length: 1_000) + "{\"installation_id\"")
        case .answersNotRead:
            client.send(String(repeating: daemon.head("GET", "/api/v1/openapi.json"), count: 200))
        case .floods:
            let head = daemon.head("POST", "/api/v1/segments/fans/members", length: 1 << 30)
            client.send(head + lines + lines)
        case .plans:
            client.send(daemon.head("POST", "/api/v1/campaigns/orchain/plan", length: 2) + "{}")
            // Every second client leaves at once: its plan is no longer wanted.
            return index.isMultiple(of: 2) ? nil : client
        case .waitingStops: client.send(daemon.request("/api/v1/stops", "{\"reason\": \"a drill\"}"))
        case .bombs:
            let text = index.isMultiple(of: 2) ? FuzzedRequests.aliasBomb : FuzzedRequests.deepAliases
            client.sendAll(daemon.request("/api/v1/campaigns/a/validate", FuzzedRequests.json(["text": text])))
        case .reasons:
            let reason = String(repeating: "z", count: 200_000)
            client.sendAll(daemon.request("/api/v1/stops", FuzzedRequests.json(["reason": reason])))
        }
        return client
    }
}

/// A daemon with an admin's token, a campaign that takes minutes to count, and a port that is known.
final class StoppedDaemon {
    enum Log { case file, pipe }

    let place: Installation
    private(set) var port = 0
    private let cluster: PostgresCluster?
    private let token: String
    private var session = ""
    private var process = Process()
    private var ended = DispatchSemaphore(value: 0)
    private var log = Pipe()
    /// The log's pipe, to fill it; -1: it is read.
    private var logFile: Int32 = -1
    /// What the log said after each start, for a failure.
    private let said = Collected<String>()

    /// - Parameter cluster: of its own, to keep the store in; nil: the store is a file.
    init(devices: Int, log: Log = .file, on cluster: PostgresCluster? = nil) throws {
        self.cluster = cluster
        try cluster?.sql("CREATE DATABASE store")
        place = try Installation(devices: devices, store: cluster?.url("store") ?? "fanfare.sqlite")
        try #require(try place.fanfare("devices", "import", "devices.csv").status == 0)
        let made = try place.fanfare("tokens", "create", "anna", "--role", "admin", "--json")
        let object = try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any]
        token = try #require(object?["secret"] as? String, "\(made.output)\(made.errors)")
        let tags = (0..<800).map { "tag(\"t\($0)\")" }.joined(separator: " or ")
        try place.folder.write(
            "template: note\nalert: {en: {body: Hello}}\ndefault_locale: en\n", to: "templates/note.yaml")
        try place.folder.write(
            """
            campaign: orchain
            topic: \(Installation.topic)
            push_type: alert
            template: note
            audience: '\(tags)'

            """, to: "campaigns/orchain.yaml")
        try restart(log: log)
        try signIn()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        if logFile >= 0 { close(logFile) }
    }

    func restart(log kind: Log = .file) throws {
        process = Process()
        log = Pipe()
        ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { [ended] _ in ended.signal() }
        if kind == .pipe { logFile = dup(log.fileHandleForWriting.fileDescriptor) }
        process.executableURL = Program.url
        process.arguments = ["serve", "--log-level", "info"]
        process.currentDirectoryURL = place.folder.url
        process.environment = Program.environment(in: place.folder, [:])
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = log
        try process.run()
        // A daemon that never says so is killed: its log ends.
        let overdue = process.killed()
        defer { overdue.cancel() }
        var text = ""
        while !text.contains("files read") || !text.contains("address=") {
            let piece = log.fileHandleForReading.availableData
            try #require(!piece.isEmpty, "ended early: \(text)")
            text += String(decoding: piece, as: UTF8.self)
        }
        let address = try #require(text.firstMatch(of: /address=[^ \n]*:([0-9]+)/))
        port = try #require(Int(address.1))
        if kind == .file {
            log.fileHandleForReading.readabilityHandler = { [said] handle in
                let piece = handle.availableData
                if piece.isEmpty { handle.readabilityHandler = nil }
                said.add(String(decoding: piece, as: UTF8.self))
            }
        }
    }

    private func signIn() throws {
        let form = "token=\(token)"
        let client = try StopClient(port: port)
        client.send(
            "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.utf8.count)\r\n\r\n" + form
        )
        let cookie = try #require(client.read(4096).firstMatch(of: /(?i)set-cookie: (fanfare=[^;]+)/))
        session = String(cookie.1)
    }

    /// Starts a run of ten seconds, and returns in the middle of it.
    func startSlowRun() throws {
        try place.folder.write(
            """
            campaign: slow
            topic: \(Installation.topic)
            push_type: alert
            template: note
            audience: everyone
            pace: {rate: 20/s}

            """, to: "campaigns/slow.yaml")
        #expect(try place.fanfare("run", "slow", "--no-wait", "--yes").status == 0)
        try Patience.wait(for: "20 requests; \(place.simulator.counts())") {
            place.simulator.counts().requests >= 20
        }
    }

    func expectSlowRunFinished() throws {
        var status = ""
        try Patience.wait(for: status) {
            status = try place.fanfare("status", "slow").output
            return status.contains("finished")
        }
        #expect(try place.fanfare("report", "slow", "--check").status == 0)
        let reached = Set(place.simulator.log().filter { $0.status == 200 }.compactMap(\.token))
        #expect(reached == Set(place.tokens))
    }

    /// Stops the database server: in the middle of a run, or until the daemon says that it is not ready.
    func loseDatabase(inRun: Bool) throws {
        if inRun { try startSlowRun() }
        try cluster?.stop()
        guard !inRun else { return }
        do { try Patience.wait(for: "a daemon that is not ready") { try !isReady() } } catch {
            Issue.record("port \(port), running \(process.isRunning): \(error); \(said.all.joined().suffix(3000))")
            throw error
        }
    }

    func regainDatabase() throws {
        try cluster?.start()
        try restart()
    }

    private func isReady() throws -> Bool {
        let client = try StopClient(port: port)
        // Without a token, which the store would be asked for.
        client.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return !client.read(64).contains(" 503 ")
    }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Writes into the daemon's log pipe until it takes no more.
    func fillLog() throws {
        let file = logFile
        let flags = fcntl(file, F_GETFL)
        // The descriptor's flags are the daemon's, too: they are put back.
        _ = fcntl(file, F_SETFL, flags | O_NONBLOCK)
        let filler = [UInt8](repeating: UInt8(ascii: "."), count: 4096)
        while write(file, filler, filler.count) > 0 {}
        while write(file, filler, 1) > 0 {}
        _ = fcntl(file, F_SETFL, flags)
    }

    /// A caller with a wrong token, whom the daemon warns of once for each address.
    func guess(from address: String) throws -> StopClient {
        let client = try StopClient(port: port, from: address)
        client.send("GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer fanfare_guess\r\n\r\n")
        return client
    }

    /// Whether health is told within a second.
    func isAnswering() throws -> Bool {
        let client = try StopClient(port: port, patience: 1)
        client.send(head("GET", "/healthz"))
        return !client.read(1).isEmpty
    }

    /// Returns when the server has accepted a connection made after all others.
    func meet() throws {
        let client = try StopClient(port: port)
        client.send(head("GET", "/healthz"))
        client.read(1)
    }

    func expectEndInTime(_ what: String) throws {
        // A machine that stands still for some seconds is not the daemon's fault.
        let stalls = StalledTime()
        let start = ContinuousClock.now
        signal(SIGTERM)
        let isEnded = ended.wait(timeout: .now() + 60) == .success
        let took = (ContinuousClock.now - start - stalls.end()) / .seconds(1)
        guard isEnded else {
            Issue.record("\(what): still running after 60 s")
            return signal(SIGKILL)
        }
        process.waitForEnd()
        #expect(process.terminationStatus == 0, "\(what)")
        #expect(process.terminationReason == .exit, "\(what)")
        #expect(took < `A daemon that is told to stop`.secondsMax, "\(what): \(took) s")
    }

    /// The lines of a head that let a client in.
    var credentials: String { "Host: localhost\r\nAuthorization: Bearer \(token)\r\nCookie: \(session)\r\n" }

    func head(_ method: String, _ path: String, length: Int? = nil) -> String {
        FuzzedRequests.head(method, path, credentials, length: length)
    }

    func request(_ path: String, _ body: String) -> String { head("POST", path, length: body.utf8.count) + body }
}
