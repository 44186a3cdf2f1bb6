import Foundation
import TestSupport
import Testing
import WebClient

/// The README's demo that stays, with its pages; ends with its last reference.
struct DemoWithPages {
    let folder: TemporaryDirectory
    let program: RunningProgram
    /// Good once.
    let link: String

    var address: String { String(link.prefix(while: { $0 != "?" }).dropLast("/sign-in".count)) }

    init(devices: Int = 20_000) throws {
        folder = try TemporaryDirectory()
        let program = try RunningProgram(
            ["demo", "--stay", "--dir", "demo", "--devices", "\(devices)"], in: folder)
        self.program = program
        try program.wait { program.errors.contains("/sign-in?link=") }
        let found = program.errors.firstMatch(of: /http:\/\/[^\s]+\/sign-in\?link=[\w-]+/)
        link = String(try #require(found).0)
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
