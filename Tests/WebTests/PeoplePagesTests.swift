import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// People are invited with a link that works once, and an admin changes what they may do.
@Suite(.timeLimit(.minutes(10)))
struct PeoplePagesTests {
    private static func invite(
        _ scene: WebScene, _ name: String, role: String = "author", topic: String = ""
    ) async throws -> String {
        let page = try await scene.page("/people/invite", form: ["name": name, "role": role, "topic": topic])
        #expect(page.status == 200 && page.header("cache-control") == "no-store")
        let link = try #require(page.text.firstMatch(of: #/class="secret">([^<]+)(\/join\/fanfare_[\w-]+)</#))
        #expect(link.1 == scene.address)
        return String(link.2)
    }

    private static let sameOrigin = ["Sec-Fetch-Site": "same-origin"]

    private static func accept(_ scene: WebScene, _ link: String) async throws -> WebScene.Answer {
        try await scene.ask("POST", link, headers: sameOrigin, body: "do=1")
    }

    @Test func `a link invites once, and opening it does not use it up`() async throws {
        try await WebScene.with { scene in
            let link = try await Self.invite(scene, "anna", topic: "com.example.app")
            for _ in 0..<2 {
                let page = try await scene.ask("GET", link)
                #expect(page.status == 200 && page.text.contains("Sign in as anna</button>"))
                #expect(page.text.contains("for the app com.example.app") && page.header("set-cookie") == nil)
            }
            // A page of another site cannot accept it.
            let foreign = try await scene.ask("POST", link, headers: ["Sec-Fetch-Site": "cross-site"], body: "")
            #expect(foreign.status == 403)
            let joined = try await Self.accept(scene, link)
            #expect(joined.status == 200 && joined.text.contains("Welcome, anna"))
            let secret = String(try #require(joined.text.firstMatch(of: #/class="secret">(fanfare_[\w-]+)</#)).1)
            #expect(!link.contains(secret))
            let cookie = String(try #require(joined.header("set-cookie")?.prefix { $0 != ";" }))
            let first = try await scene.ask("GET", "/campaigns", headers: ["Cookie": cookie])
            #expect(first.status == 200 && first.text.contains("anna <small>author</small>"))
            // The token signs in elsewhere; the link does not work again, and is no token.
            #expect(try await scene.page("/sign-in", form: ["token": secret]).header("location") == "/")
            #expect(try await Self.accept(scene, link).status == 404)
            #expect(try await scene.ask("GET", link).status == 404)
            let invitation = String(link.dropFirst("/join/".count))
            #expect(try await scene.page("/sign-in", form: ["token": invitation]).status == 401)
            let list = try await scene.page("/people")
            #expect(list.text.contains(">anna</th>") && !list.text.contains(secret) && !list.text.contains(invitation))
            let events = try await scene.store.events(run: nil, since: nil, limit: 100).filter {
                $0.kind.hasPrefix("person_")
            }
            #expect(events.map(\.kind) == ["person_invited", "person_joined"])
            #expect(events.map(\.actor.name) == ["admin (signed in)", "anna (signed in)"])
        }
    }

    @Test func `an open invitation is neither a token nor a session`() async throws {
        try await WebScene.with { scene in
            let secret = String(try await Self.invite(scene, "anna", role: "admin").dropFirst("/join/".count))
            let api = try await scene.api("GET", "/segments", headers: ["Authorization": "Bearer \(secret)"])
            #expect(api.status == 401)
            #expect(try await scene.ask("GET", "/people", headers: ["Cookie": "fanfare=\(secret)"]).status == 303)
        }
    }

    @Test func `an invitation ends after a day, is revoked, and is replaced by the next one`() async throws {
        try await WebScene.with { scene in
            let revoked = try await Self.invite(scene, "anna")
            let page = try await scene.page("/people")
            let address = try #require(
                page.text.firstMatch(
                    of: #/action="([^"]+)"><button name="do" value="1" class="danger" aria-label="Revoke anna"/#))
            #expect(try await scene.page(String(address.1), form: [:]).status == 303)
            #expect(try await Self.accept(scene, revoked).status == 404)
            let replaced = try await Self.invite(scene, "anna")
            let last = try await Self.invite(scene, "anna", role: "viewer")
            #expect(try await Self.accept(scene, replaced).status == 404)
            #expect(try await Self.accept(scene, last).status == 200)
            let taken = try await scene.page("/people/invite", form: ["name": "anna", "role": "viewer"])
            #expect(taken.status == 409 && taken.text.contains("exists or existed"))
            let late = try await Self.invite(scene, "ben")
            scene.sending.clock.advance(by: ManageAccess.invitationLifetime)
            #expect(try await Self.accept(scene, late).status == 404)
        }
    }

    @Test func `callers who guess links are slowed down`() async throws {
        try await WebScene.with { scene in
            let guess = "/join/\(AccessSecret.text(Array(repeating: 7, count: AccessSecret.byteCount)))"
            for _ in 0..<10 {
                let page = try await scene.ask("GET", guess)
                #expect(page.status == 404)
            }
            let slowed = try await Self.accept(scene, guess)
            #expect(slowed.status == 429)
        }
    }

    @Test(arguments: [
        ("anna", "registrar", 422, "a registrar is a program"), ("王", "author", 422, "cannot be a token"),
        ("anna", "boss", 422, "choose a role"), ("terminal", "author", 422, "uses it in the audit log"),
        ("viewer", "author", 409, "exists or existed"),
    ])
    func `an invitation that cannot be is refused, and what was typed stays`(
        name: String, role: String, status: Int, words: String
    ) async throws {
        try await WebScene.with { scene in
            let page = try await scene.page("/people/invite", form: ["name": name, "role": role])
            #expect(page.status == status && page.text.contains(words), "\(page.text)")
            #expect(page.text.contains("name=\"name\" value=\"\(name)\""))
        }
    }

    @Test func `a changed role and app hold at once, also for the session`() async throws {
        try await WebScene.with { scene in
            let token = try #require(try await scene.store.accessTokens().first { $0.name == "author" })
            let changed = try await scene.page(
                "/people/\(token.id)/change", form: ["role": "viewer", "topic": "com.example.app"])
            #expect(changed.status == 303)
            let page = try await scene.page("/devices", as: .author)
            #expect(page.text.contains("author <small>viewer</small>"))
            let found = try #require(try await scene.store.accessTokens().first { $0.name == "author" })
            #expect(found.role == .viewer && found.topic == "com.example.app")
            #expect(try await scene.page("/people/none/change", form: ["role": "viewer"]).status == 404)
        }
    }

    @Test func `the last admin keeps the access, on the page and by the API`() async throws {
        try await WebScene.with { scene in
            let admin = try #require(try await scene.store.accessTokens().first { $0.name == "admin" })
            for (path, form) in [
                ("/tokens/\(admin.id)/revoke", [:]), ("/people/\(admin.id)/change", ["role": "viewer"]),
                ("/people/\(admin.id)/change", ["role": "admin", "topic": "com.example.app"]),
            ] {
                let refused = try await scene.page(path, form: form)
                #expect(refused.status == 409 && refused.text.contains("is the last admin"), "\(path)")
            }
            #expect(try await scene.api("DELETE", "/tokens/admin").status == 409)
            let link = try await Self.invite(scene, "anna", role: "admin")
            #expect(try await scene.page("/tokens/\(admin.id)/revoke", form: [:]).status == 409)
            #expect(try await Self.accept(scene, link).status == 200)
            #expect(try await scene.page("/tokens/\(admin.id)/revoke", form: [:]).status == 303)
        }
    }

    @Test func `an admin of one app invites nobody and changes no role`() async throws {
        try await WebScene.with { scene in
            let made = try await scene.webConsole.cases.access.create(
                name: "of-one", role: .admin, topic: PipelineScene.topic, expiresIn: nil, by: "test",
                now: scene.sending.clock.now)
            let session = try await scene.webConsole.cases.access.signIn(
                made.token, by: "test", now: scene.sending.clock.now)
            let own = ["Cookie": "fanfare=\(session)"]
            for path in ["/people/invite", "/people/1/change", "/setup/key", "/setup/app", "/setup/test-devices"] {
                let refused = try await scene.page(path, form: ["name": "x", "role": "admin"], headers: own)
                #expect(refused.status == 403, "\(path)")
            }
            #expect(try await scene.page("/people", headers: own).status == 403)
        }
    }

    @Test(arguments: [
        ("token:ann", "ann"), ("proxy:Ann", "Ann"), ("ann (signed in)", "ann"), ("ann (proxy)", "ann"),
        ("ci (token)", "ci (API)"), ("os:ann", "ann (command line)"), ("ann (uid 1000)", "ann (command line)"),
        ("git:ann@example.org", "ann@example.org (git)"),
        ("fanfare-run.timer (uid 0)", "fanfare-run.timer (command line)"),
        ("unknown", "unknown"), ("token:", "token:"), ("the daemon", "the daemon"),
    ])
    func `a page shows the name of a person, and the command line as such`(text: String, shown: String) {
        #expect(PersonName.shown(text) == shown)
    }
}
