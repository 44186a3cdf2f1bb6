import Campaigns
import Foundation
import Guide
import Logging
import Model
import SQLiteStore
import Senders
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@testable import Web

/// A server with pages and API on a real store in a temporary folder, on a free port, with a token for each role.
struct WebScene: Sendable {
    struct Answer: Sendable {
        var status: Int
        var headers: [String: String]
        var text: String

        func header(_ name: String) -> String? { headers[name.lowercased()] }

        func result<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
            try ResultJSON.value(type, from: text)
        }

        /// What a problem says.
        var problem: Problem? { try? ResultJSON.value(Problem.self, from: text) }
    }

    static let link = "the-link-of-the-terminal"
    private static let guide = Guide(reference: [GuidePage(name: "Reference.md", text: "# Reference\n\nNone.")])

    let sending: PipelineScene
    let webConsole: WebConsole
    let secrets: Secrets
    let port: Int

    var address: String { "http://127.0.0.1:\(port)" }
    var store: SQLiteFileStore { sending.store }
    var folder: TemporaryDirectory { sending.folder }

    /// The server lives while the body runs.
    ///
    /// - Parameters:
    ///   - change: of the configuration, whose folders are `campaigns` and `templates` in the scene's folder.
    ///   - tools: what changes the configuration and keys, for the pages of the setup.
    static func with(
        _ change: (inout Configuration) -> Void = { _ in }, limits: ServerLimits = ServerLimits(),
        sources: OperationsSources = OperationsSources(registry: PrometheusRegistry()),
        tools: ((TemporaryDirectory, HeldConfiguration) throws -> SetupTools)? = nil,
        _ body: (WebScene) async throws -> Void
    ) async throws {
        let sending = try PipelineScene()
        let folder = sending.folder
        for name in ["campaigns", "templates"] {
            try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
        }
        var configuration = Configuration(
            store: folder.file("store.sqlite"), campaigns: folder.file("campaigns"),
            templates: folder.file("templates"),
            apps: [
                Configuration.App(
                    topic: PipelineScene.topic,
                    credential: .key(teamID: "TESTTEAM01", keyID: "TESTKEY001", path: folder.file("key.p8")))
            ])
        change(&configuration)
        let clock = sending.clock
        let senders = SenderFolder(besideStore: configuration.store, command: "test", now: { clock.now })
        let held = HeldConfiguration(configuration)
        let cases = UseCases(
            store: sending.store, senders: senders, clock: clock.clock, tools: try tools?(folder, held)
        ) { held.value }
        let secrets = try await Secrets(ManageAccess(store: sending.store), now: clock.now)
        let webConsole = WebConsole(
            cases: cases, link: OneTimeLink(link) { cases.uptime }, version: "1.2.3", guide: { Self.guide })
        let server = HTTPServer(
            host: "127.0.0.1", port: 0, sources: sources, webConsole: webConsole,
            limits: limits, logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (ports, port) = AsyncStream.makeStream(of: Int.self)
            group.addTask {
                defer { port.finish() }
                try await server.run { port.yield($0) }
            }
            let result: Result<Void, any Error>
            do {
                let port = try #require(await ports.first { _ in true })
                result = .success(
                    try await body(WebScene(sending: sending, webConsole: webConsole, secrets: secrets, port: port)))
            } catch {
                result = .failure(error)
            }
            group.cancelAll()
            try await group.waitForAll()
            try result.get()
            // A route that reads texts says so: `readingTexts`.
            #expect(webConsole.undeclaredTexts.routes == [])
        }
    }

    /// The header of a token that is good for one app.
    func bearer(_ role: AccessRole, topic: String) async throws -> [String: String] {
        let made = try await webConsole.cases.access.create(
            name: "\(role.rawValue)-of-\(topic)", role: role, topic: topic, expiresIn: nil, by: "test",
            now: sending.clock.now)
        return ["Authorization": "Bearer \(made.secret)"]
    }

    /// Returns once an event of the kind is on record.
    func audited(_ kind: String) async throws {
        try await written { try await store.events(run: nil, since: nil, limit: 100).contains { $0.kind == kind } }
    }

    /// Returns once the store says so.
    func written(_ isSo: () async throws -> Bool) async throws {
        let changes = try FileChanges(folder: folder.path, names: ["store.sqlite-wal"])
        let deadline = ContinuousClock.now + Process.longest
        while try await !isSo() { try await OwnThread.run { try changes.wait(until: deadline) } }
    }

    /// Asks the API with a token of the role.
    func api(
        _ method: String = "GET", _ path: String, as role: AccessRole = .admin, body: String? = nil,
        headers: [String: String] = [:]
    ) async throws -> Answer {
        var headers = headers
        headers["Authorization"] = headers["Authorization"] ?? "Bearer \(secrets.secret(of: role))"
        if body != nil { headers["Content-Type"] = headers["Content-Type"] ?? "application/json" }
        return try await ask(method, "/api/v1" + path, headers: headers, body: body)
    }

    /// The same with lines of JSON.
    func lines(
        _ path: String, as role: AccessRole = .admin, _ body: String, headers: [String: String] = [:]
    ) async throws -> Answer {
        let type = ["Content-Type": "application/x-ndjson"]
        return try await api("POST", path, as: role, body: body, headers: headers.merging(type) { first, _ in first })
    }

    /// Asks for a page with a session of the role; a form when there are fields. Its button is pressed.
    func page(
        _ path: String, as role: AccessRole = .admin, form: [String: String]? = nil, headers: [String: String] = [:]
    ) async throws -> Answer {
        var headers = headers
        headers["Cookie"] = headers["Cookie"] ?? "fanfare=\(secrets.session(of: role))"
        if form != nil {
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Sec-Fetch-Site"] = headers["Sec-Fetch-Site"] ?? "same-origin"
        }
        let form = form.map { ["do": "1"].merging($0) { $1 } }
        let body = form?.sorted { $0.key < $1.key }.map { "\(Self.encoded($0.key))=\(Self.encoded($0.value))" }
            .joined(separator: "&")
        return try await ask(form == nil ? "GET" : "POST", path, headers: headers, body: body)
    }

    /// A page's status and fields, with a session of the role.
    func head(_ path: String, as role: AccessRole) async throws -> Answer {
        try await ask("HEAD", path, headers: ["Cookie": "fanfare=\(secrets.session(of: role))"])
    }

    /// Follows no redirect and keeps no cookie. Encodes what a path may not hold.
    func ask(
        _ method: String, _ path: String, headers: [String: String] = [:], body: String? = nil
    ) async throws -> Answer {
        let url = try #require(URL(string: address + path)).absoluteString
        let target = url.dropFirst(address.count)
        let exchange = try await HTTPExchange.ask(method, String(target), port: port, headers: headers, body: body)
        return Answer(status: exchange.status, headers: exchange.headers, text: exchange.text)
    }

    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
    }
}

/// The configuration of a scene, which a test may replace as a reload does.
final class HeldConfiguration: Sendable {
    private let held: Mutex<Configuration>

    init(_ configuration: Configuration) { held = Mutex(configuration) }

    var value: Configuration {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }
}

/// The secrets of a good token and of a good session for each role.
struct Secrets: Sendable {
    private let tokens: [AccessRole: String]
    private let sessions: [AccessRole: String]

    init(_ access: ManageAccess, now: Timestamp) async throws {
        var tokens: [AccessRole: String] = [:]
        var sessions: [AccessRole: String] = [:]
        for role in AccessRole.allCases {
            let made = try await access.create(
                name: role.rawValue, role: role, topic: nil, expiresIn: nil, by: "test", now: now)
            tokens[role] = made.secret
            sessions[role] = try await access.signIn(made.token, by: "test", now: now)
        }
        (self.tokens, self.sessions) = (tokens, sessions)
    }

    func secret(of role: AccessRole) -> String { tokens[role, default: ""] }
    func session(of role: AccessRole) -> String { sessions[role, default: ""] }
}
