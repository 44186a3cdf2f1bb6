import APNsSimulator
import Foundation
import TestSupport
import Synchronization
import Testing

/// A receiver on a local server is told what became of a run.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A webhook` {
    private struct Message: Decodable {
        struct Run: Decodable {
            var campaign: String
            var occurrence: String
            var state: String
            var counts: [String: Int]
        }

        var id: String
        var type: String
        var data: Run
    }

    private func configure(_ place: Installation, _ url: String) throws {
        try place.folder.write("0123456789abcdef0123456789abcdef\n", to: "hook.secret")
        try place.configure(more: "webhooks: [{url: \"\(url)/hook\", secret_path: hook.secret}]")
    }

    @Test func `that fails twice is told the third time, with the same id`() throws {
        let failures = Mutex(2)
        let server = try LocalServer { _ in
            let isDown = failures.withLock { left in
                left -= 1
                return left >= 0
            }
            return .init(isDown ? 500 : 204)
        }
        let place = try Installation(devices: 3)
        try place.importDevices()
        try configure(place, server.url)
        let result = try place.run("new-podcast", "--occurrence", "a")
        #expect(result.status == 0, "\(result.errors)")
        // A command waits for some seconds only, and the next process goes on with the rest.
        try Patience.wait(for: "the third message") {
            if server.requests.count >= 3 { return true }
            _ = try place.run("new-podcast", "--occurrence", "a")
            return false
        }
        let requests = server.requests
        #expect(requests.count == 3)
        #expect(Set(requests.map { $0.headers["webhook-id"] }).count == 1)
        #expect(requests.allSatisfy { $0.headers["webhook-signature"]?.hasPrefix("v1,") == true })
        let message = try JSONDecoder().decode(Message.self, from: Data(try #require(requests.last).body))
        #expect(message.type == "run.finished" && message.data.state == "finished")
        #expect(message.data.campaign == "new-podcast" && message.data.occurrence == "a")
        #expect(message.data.counts["accepted"] == 3)
        #expect(message.id == requests[0].headers["webhook-id"])
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 0)
        #expect(server.requests.count == 3)
    }

    @Test func `hears of a breaker's pause`() throws {
        let server = try LocalServer { _ in .init(200) }
        let place = try Installation(devices: 3)
        try place.importDevices()
        try place.folder.write("whsec_\(Data(repeating: 7, count: 24).base64EncodedString())", to: "hook.secret")
        try place.configure(
            keyID: "OTHERKEY01",
            more: "webhooks: [{url: \"\(server.url)\", secret_path: hook.secret, events: [paused]}]")
        #expect(try place.run("new-podcast", "--occurrence", "a").status == 77)
        #expect(server.requests.count == 1)
        #expect(server.requests.first?.text.contains("\"type\":\"run.paused\"") == true)
        #expect(server.requests.first?.text.contains("InvalidProviderToken") == true)
    }

    @Test func `that does not respond delays no signal to a command whose run has ended`() throws {
        let server = try LocalServer { _ in .withheld }
        let place = try Installation(devices: 3)
        try place.importDevices()
        try configure(place, server.url)
        let run = try RunningProgram(
            ["run", "new-podcast", "--occurrence", "a", "--yes"] + Installation.words, in: place.folder)
        try Patience.wait(for: "the message") { server.requests.count == 1 }
        run.signal(SIGINT)
        // Without the signal it ends with 0, after the time that a command waits for its webhooks.
        #expect(try run.finish().status == 75)
    }

    /// An operator's own file may have no webhooks, and the daemon has its list from another one.
    @Test func `a command with another configuration leaves the daemon's webhooks`() throws {
        let server = try LocalServer { _ in .init(200) }
        let place = try Installation(devices: 3)
        try place.importDevices()
        try place.configure()
        try place.folder.write(try place.folder.read("fanfare.yaml"), to: "mine.yaml")
        try configure(place, server.url)
        let daemon = try RunningProgram(["serve"], in: place.folder)
        try daemon.wait { daemon.errors.contains("files read") }
        let result = try place.run("new-podcast", "--occurrence", "a", "--config", "mine.yaml")
        #expect(result.status == 0, "\(result.errors)")
        try Patience.wait(for: "the message") { server.requests.contains { $0.text.contains("run.finished") } }
    }

    @Test(arguments: [nil, "short", "whsec_!!!"]) func `without a secret is a mistake of the configuration`(
        secret: String?
    ) throws {
        let place = try Installation(devices: 1)
        try place.importDevices()
        try configure(place, "http://127.0.0.1:9")
        try FileManager.default.removeItem(atPath: place.folder.path + "/hook.secret")
        if let secret { try place.folder.write(secret, to: "hook.secret") }
        let result = try place.run("new-podcast")
        #expect(result.status == 78 && result.errors.contains("hook.secret"), "\(result.errors)")
        #expect(place.simulator.counts().requests == 0)
        // Nothing is on record that a later start would send.
        #expect(try place.fanfare("status").output.contains("no runs yet"))
    }
}
