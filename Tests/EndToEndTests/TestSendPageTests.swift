import APNsSimulator
import Foundation
import TestSupport
import Testing
import WebClient

/// A test that an author sends from a campaign's page, carried out by the daemon.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `A test from the page` {
    @Test func `goes to one device alone, is told of on the page, and is no run of the campaign`() async throws {
        let place = try Installation()
        try place.importDevices()
        let made = try place.fanfare("tokens", "create", "anna", "--role", "author")
        let token = try #require(made.output.firstMatch(of: /fanfare_[\w-]+/)).0
        let daemon = try RunningProgram(["serve", "--link"], in: place.folder)
        try daemon.wait { daemon.errors.contains("/sign-in?link=") }
        let address = try #require(daemon.errors.firstMatch(of: /(http:\/\/[^\s]+)\/sign-in\?link=/)).1
        let signedIn = try await post("\(address)/sign-in", "token=\(token)")
        let cookie = try #require(signedIn.headers["set-cookie"]?.prefix { $0 != ";" })

        let sent = try await post(
            "\(address)/campaigns/new-podcast/test-send",
            "device=install-3&v.title=T&v.link_url=https%3A%2F%2Fexample.com",
            cookie: String(cookie))
        #expect(sent.status == 303)
        let location = try #require(sent.headers["location"])
        try daemon.wait { isSent(place) }
        let page = try await get("\(address)\(location)", cookie: String(cookie))
        #expect(page.contains("test 1 to install-3: accepted (200)"))
        #expect(place.simulator.log().map(\.token) == [place.tokens[3]])
        let list = try await get("\(address)/campaigns", cookie: String(cookie))
        #expect(!list.contains("/runs/1"))
        #expect(try place.fanfare("report", "new-podcast").status == 66)
        let audit = try place.fanfare("audit", "--json")
        #expect(audit.output.contains("anna (signed in)"))
        daemon.signal(SIGTERM)
        #expect(try daemon.finish().status == 0)
    }

    private func isSent(_ place: Installation) -> Bool {
        (try? place.fanfare("status", "1", "--json"))?.output.contains("\"finished\"") ?? false
    }

    private func post(_ url: String, _ form: String, cookie: String = "") async throws -> WebResponse {
        let headers = [
            "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", "Cookie": cookie,
        ]
        return try await HTTPClient(addresses: .any).send(
            WebRequest(.post(body: Array(form.utf8)), url, headers: headers))
    }

    private func get(_ url: String, cookie: String) async throws -> String {
        let answer = try await HTTPClient(addresses: .any).send(WebRequest(.get, url, headers: ["Cookie": cookie]))
        #expect(answer.status == 200)
        return String(decoding: answer.body, as: UTF8.self)
    }
}
