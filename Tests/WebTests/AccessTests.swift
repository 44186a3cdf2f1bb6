import Campaigns
import Foundation
import HTTPTypes
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// Who may ask for what: programs by token, people by session, nobody by the other's.
@Suite(.timeLimit(.minutes(10)))
struct AccessTests {
    /// Every operation and page with every role: allowed or refused as the table says. What a route answers to whoever
    /// may ask depends on what is there; it is never 401 or 403.
    @Test func `each role gets what its permissions say, on every route there is`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            for operation in scene.webConsole.operations {
                let path = operation.path.replacing("{token}", with: "nobody").replacing(#/\{[a-z_]+\}/#, with: "1")
                for role in AccessRole.allCases {
                    let answer = try await scene.api(
                        operation.method.rawValue, path, as: role, body: operation.body == nil ? nil : "")
                    #expect((answer.status != 403) == role.may(operation.permission), "\(role) \(operation.id)")
                    #expect(answer.status != 401, "\(role) \(operation.id)")
                }
                let nobody = try await scene.ask(operation.method.rawValue, Operation.prefix + path)
                #expect(nobody.status == 401, "\(operation.id)")
                #expect(nobody.header("www-authenticate") == "Bearer realm=\"fanfare\"")
            }
            for page in scene.webConsole.pages {
                guard let permission = page.permission else { continue }
                let path = page.path.replacing("{token}", with: "nobody").replacing(#/\{[a-z_]+\}/#, with: "1")
                for role in AccessRole.allCases {
                    // Without their bodies: some pages go on for as long as somebody looks.
                    let answer =
                        page.method == .post
                        ? try await scene.page(path, as: role, form: [:]) : try await scene.head(path, as: role)
                    #expect((answer.status != 403) == role.may(permission), "\(role) \(page.method) \(page.path)")
                }
                let headers = ["Sec-Fetch-Site": "same-origin"]
                let nobody = try await scene.ask(
                    page.method.rawValue, path, headers: headers, body: page.method == .post ? "" : nil)
                if page.method == .post, KeptForm(path: path, [:]) != nil {
                    #expect(nobody.status == 401 && nobody.text.contains("action=\"/sign-in\""), "\(page.path)")
                    continue
                }
                #expect(nobody.status == 303, "\(page.path)")
                #expect(nobody.header("location")?.hasPrefix("/sign-in?next=") ?? false)
            }
        }
    }

    @Test func `a cookie is no way into the API, a token none into the pages`() async throws {
        try await WebScene.with { scene in
            let byCookie = try await scene.ask(
                "GET", "/api/v1/runs/1", headers: ["Cookie": "fanfare=\(scene.secrets.session(of: .admin))"])
            #expect(byCookie.status == 401)
            let byToken = try await scene.ask(
                "GET", "/", headers: ["Authorization": "Bearer \(scene.secrets.secret(of: .admin))"])
            #expect(byToken.status == 303)
        }
    }

    @Test func `a form of another site is refused, whoever is signed in`() async throws {
        try await WebScene.with { scene in
            for site in ["cross-site", "same-site"] {
                let answer = try await scene.page("/sign-out", form: [:], headers: ["Sec-Fetch-Site": site])
                #expect(answer.status == 403, "\(site)")
            }
            let cookie = ["Cookie": "fanfare=\(scene.secrets.session(of: .admin))"]
            let without = try await scene.ask("POST", "/sign-out", headers: cookie, body: "")
            #expect(without.status == 403)
            let byOrigin = try await scene.ask(
                "POST", "/sign-out", headers: cookie.merging(["Origin": "http://evil.example"]) { $1 }, body: "")
            #expect(byOrigin.status == 403)
            let own = try await scene.ask(
                "POST", "/sign-out", headers: cookie.merging(["Origin": scene.address]) { $1 }, body: "do=1")
            #expect(own.status == 303)
        }
    }

    @Test(arguments: ["", "reason=", "reason=+&name="])
    func `a form without any value does nothing, and the missing field is named`(body: String) async throws {
        try await WebScene.with { scene in
            let run = try await scene.sending.start(try scene.sending.definition())
            let headers = [
                "Cookie": "fanfare=\(scene.secrets.session(of: .admin))", "Sec-Fetch-Site": "same-origin",
                "Content-Type": "application/x-www-form-urlencoded",
            ]
            for path in ["/stops", "/stops/lift", "/campaigns/new-podcast/stop"]
                + ["stop", "pause", "cancel", "recall", "resume", "approve"].map({ "/runs/\(run.id)/\($0)" })
            {
                let answer = try await scene.ask("POST", path, headers: headers, body: body)
                #expect(
                    answer.status == 422 && answer.text.contains("the field `do` of its button is missing"),
                    "\(path) \(answer.text)")
            }
            #expect(try await scene.store.stops().isEmpty)
            #expect(try await scene.store.run(run.id)?.state == run.state)
        }
    }

    @Test func `a form without a session is kept over the sign-in, and never carried out by it`() async throws {
        try await WebScene.with { scene in
            let cookie = ["Cookie": "fanfare=ended"]
            let typed = ["kind": "campaign", "file": "a", "text": "a <b> & \"c\"", "over": "x", "token": "other"]
            let asked = try await scene.page("/campaigns/a/save", form: typed, headers: cookie)
            #expect(asked.status == 401)
            #expect(asked.text.contains(#"name="again" value="/campaigns/a/check""#))
            #expect(asked.text.contains(#"name="text" value="a &lt;b&gt; &amp; &quot;c&quot;""#))
            #expect(!asked.text.contains(#"name="over""#) && !asked.text.contains("value=\"other\""))
            let secret = scene.secrets.secret(of: .author)
            let kept = ["text": "a", "file": "a", "kind": "campaign", "token": secret]
            for (again, leads) in [
                ("/campaigns/a/check", "/campaigns/a/check"), ("/campaigns/a/plan", "/campaigns/a/check"),
                ("/campaigns/a/test-send", "/campaigns/a/check"),
                ("/new/template/save", "/new/template/check"),
            ] {
                let signed = try await scene.page(
                    "/sign-in", form: kept.merging(["again": again]) { $1 }, headers: cookie)
                #expect(signed.status == 307 && signed.header("location") == leads, "\(again)")
            }
            // No form leads to a page that changes something, or to another server.
            for again in ["/stops", "/runs/1/cancel", "//evil.example/check", "/campaigns/a/b/check", "/new/\\x/check"]
            {
                let signed = try await scene.page(
                    "/sign-in", form: kept.merging(["again": again]) { $1 }, headers: cookie)
                #expect(signed.status == 303 && signed.header("location") == "/", "\(again)")
            }
            let wrong = try await scene.page(
                "/sign-in", form: ["token": "fanfare_wrong", "again": "/campaigns/a/check", "text": "typed"],
                headers: cookie)
            #expect(wrong.status == 401 && wrong.text.contains(#"name="text" value="typed""#))
            // A script is told, and keeps the text itself.
            let part = try await scene.page(
                "/campaigns/a/check", form: ["part": "check", "text": "t"], headers: cookie)
            #expect(part.status == 401 && !part.text.contains("name=\"again\""))
            // Too large to be kept: only signing in is left.
            let large = String(repeating: "x", count: KeptForm.bytesMax)
            let refused = try await scene.page("/campaigns/a/save", form: ["text": large], headers: cookie)
            #expect(refused.status == 303)
            let other = try await scene.page(
                "/runs/1/pause", form: [:], headers: cookie.merging(["Referer": "\(scene.address)/runs/1?a=b"]) { $1 })
            #expect(other.header("location") == "/sign-in?next=%2Fruns%2F1%3Fa%3Db")
            let ended = try await scene.page("/sign-in", headers: cookie)
            #expect(ended.text.contains("Your session has ended. Sign in to continue."))
        }
    }

    @Test func `a token signs in, a wrong one does not, and a link is good once`() async throws {
        try await WebScene.with { scene in
            let wrong = try await scene.page("/sign-in", form: ["token": "fanfare_wrong"])
            #expect(wrong.status == 401)
            #expect(wrong.text.contains("unknown, expired or revoked"))
            let right = try await scene.page(
                "/sign-in", form: ["token": scene.secrets.secret(of: .author), "next": "/calendar"])
            #expect(right.status == 303)
            #expect(right.header("location") == "/calendar")
            #expect(right.header("set-cookie")?.contains("HttpOnly") ?? false)
            #expect(right.header("set-cookie")?.contains("SameSite=Lax") ?? false)
            let away = try await scene.page(
                "/sign-in", form: ["token": scene.secrets.secret(of: .author), "next": "//evil.example"])
            #expect(away.header("location") == "/")
            let registrar = try await scene.page("/sign-in", form: ["token": scene.secrets.secret(of: .registrar)])
            #expect(registrar.status == 403)
            let linked = try await scene.ask("GET", "/sign-in?link=\(WebScene.link)")
            #expect(linked.status == 303)
            let again = try await scene.ask("GET", "/sign-in?link=\(WebScene.link)")
            #expect(again.status == 403)
        }
    }

    @Test func `the session of a link belongs to a token that an admin sees and revokes`() async throws {
        try await WebScene.with { scene in
            let linked = try await scene.ask("GET", "/sign-in?link=\(WebScene.link)")
            let cookie = try #require(linked.header("set-cookie")?.prefix { $0 != ";" })
            let headers = ["Cookie": String(cookie)]
            #expect(try await scene.ask("GET", "/tokens", headers: headers).status == 200)
            let access = scene.webConsole.cases.access
            let token = try #require(try await access.list().first { $0.name.hasPrefix(AccessToken.linkPrefix) })
            #expect(token.role == .admin && token.expiresAt == scene.sending.clock.now + .seconds(30 * 86_400))
            _ = try await access.revoke(token.name, by: "amy", now: scene.sending.clock.now)
            #expect(try await scene.ask("GET", "/tokens", headers: headers).status == 303)
        }
    }

    @Test func `a link that nobody used within 15 minutes lets nobody in`() async throws {
        try await WebScene.with { scene in
            scene.sending.clock.advance(by: OneTimeLink.goodFor)
            let late = try await scene.ask("GET", "/sign-in?link=\(WebScene.link)")
            #expect(late.status == 403)
        }
    }

    @Test func `a link is spent when its session has begun, and not before`() async throws {
        struct Busy: Error {}
        let link = OneTimeLink("code") { .zero }
        await #expect(throws: Busy.self) {
            _ = try await link.spend("code") { () async throws -> String in
                // Meanwhile it is nobody else's.
                let second = try await link.spend("code") { "second" }
                #expect(second == nil)
                throw Busy()
            }
        }
        let wrong = try await link.spend("other") { "wrong" }
        #expect(wrong == nil)
        let right = try await link.spend("code") { "session" }
        #expect(right == "session")
        let again = try await link.spend("code") { "again" }
        #expect(again == nil)
    }

    @Test func `whoever guesses is slowed down, and told for how long`() async throws {
        try await WebScene.with { scene in
            for _ in 0..<10 {
                let answer = try await scene.api("GET", "/runs/1", headers: ["Authorization": "Bearer fanfare_guess"])
                #expect(answer.status == 401)
            }
            let answer = try await scene.api("GET", "/runs/1", headers: ["Authorization": "Bearer fanfare_guess"])
            #expect(answer.status == 429)
            #expect(answer.header("retry-after") == "6")
            // Whoever has a good one waits for nobody, also behind one proxy.
            let good = try await scene.api("GET", "/runs/1", as: .viewer)
            #expect(good.status == 404)
            scene.sending.clock.advance(by: .seconds(6))
            let later = try await scene.api("GET", "/runs/1", headers: ["Authorization": "Bearer fanfare_guess"])
            #expect(later.status == 401)
        }
    }

    @Test func `a proxy is believed at its address alone`() async throws {
        let headers = ["X-Forwarded-User": "anna", "X-Role": "author"]
        try await WebScene.with({ configuration in
            configuration.http.proxy = .init(addresses: ["127.0.0.1"], roleHeader: "X-Role")
        }) { scene in
            let page = try await scene.ask("GET", "/", headers: headers)
            #expect(page.status == 200)
            #expect(page.text.contains("anna <small>author</small>"))
            let unknown = try await scene.ask("GET", "/", headers: ["X-Forwarded-User": "anna", "X-Role": "Author"])
            #expect(unknown.status == 403)
            // Not for the API.
            let program = try await scene.ask("GET", "/api/v1/runs/1", headers: headers)
            #expect(program.status == 401)
        }
        try await WebScene.with({ configuration in
            configuration.http.proxy = .init(addresses: ["192.0.2.1"])
        }) { scene in
            let page = try await scene.ask("GET", "/", headers: headers)
            #expect(page.status == 303)
        }
    }

    @Test(arguments: ["e\u{301}lise", "anna\u{200B}", "\u{212A}ate"])
    func `a proxy's user whose name could be written in two ways is refused`(user: String) async throws {
        try await WebScene.with({ $0.http.proxy = .init(addresses: ["127.0.0.1"]) }) { scene in
            let refused = try await scene.ask("GET", "/", headers: ["X-Forwarded-User": user])
            #expect(refused.status == 400 && refused.text.contains("composed form (NFC)"), "\(refused.text)")
            let page = try await scene.ask("GET", "/", headers: ["X-Forwarded-User": "\u{E9}lise"])
            #expect(page.status == 200)
        }
    }

    @Test func `a proxy's word that stands there twice is refused`() async throws {
        try await WebScene.with({ configuration in
            configuration.http.proxy = .init(addresses: ["127.0.0.1"], roleHeader: "X-Role")
        }) { scene in
            for name in ["X-Forwarded-User", "X-Role"] {
                let connection = try RawConnection(port: scene.port)
                try await connection.send(
                    "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-User: anna\r\nX-Role: author\r\n\(name): admin\r\n"
                        + "Connection: close\r\n\r\n")
                let answer = try await connection.receive(until: "</html>")
                #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.contains("\(name) is given 2 times"))
            }
        }
    }

    @Test func `behind TLS only the cookie that no other host can set signs in`() async throws {
        try await WebScene.with { scene in
            let secret = scene.secrets.session(of: .viewer)
            for (cookie, proto, status) in [
                ("fanfare", "https", 303), ("__Host-fanfare", "https", 200), ("fanfare", "http", 200),
                ("__Host-fanfare", "http", 303),
            ] {
                let page = try await scene.ask(
                    "GET", "/", headers: ["Cookie": "\(cookie)=\(secret)", "X-Forwarded-Proto": proto])
                #expect(page.status == status, "\(cookie) \(proto)")
            }
        }
    }

    @Test func `wrong tokens are in the audit with their number, and so is who signs out`() async throws {
        try await WebScene.with { scene in
            func guess() async throws {
                _ = try await scene.api("GET", "/runs", headers: ["Authorization": "Bearer fanfare_guess"])
            }
            func events(_ kind: String) async throws -> [StoreEvent] {
                try await scene.store.events(run: nil, since: nil, limit: 100).filter { $0.kind == kind }
            }
            for _ in 0..<5 { try await guess() }
            #expect(try await events("sign_in_refused").map(\.detail) == ["1 wrong token from 127.0.0.1"])
            scene.sending.clock.advance(by: .seconds(60))
            try await guess()
            #expect(try await events("sign_in_refused").last?.detail == "5 wrong tokens from 127.0.0.1")
            #expect(try await scene.page("/sign-out", as: .sender, form: [:]).status == 303)
            #expect(try await events("signed_out").map(\.actor.name) == ["sender (signed in)"])
            #expect(try await scene.page("/", as: .sender).status == 303)
        }
    }

    @Test func `metrics and the store's own words are for this machine and for token holders`() async throws {
        let sources = OperationsSources(
            registry: PrometheusRegistry(),
            gauges: {
                [
                    GaugeFamily("queue", "Waits.", [MetricSample([MetricLabel("campaign", "spring")], 1)]),
                    GaugeFamily("up", "Is up.", [MetricSample([], 1)]),
                ]
            }, readiness: { "the disk of db7 is full" })
        for isOpen in [false, true] {
            try await WebScene.with({ $0.http.openMetrics = isOpen }, sources: sources) { scene in
                let forwarded = ["X-Forwarded-For": "203.0.113.7"]
                let confined = try await scene.bearer(.viewer, topic: "com.example.other")
                let rows: [(headers: [String: String], isTrusted: Bool)] = [
                    ([:], true), (forwarded, false), (confined, false), (["X-Forwarded-Proto": "https"], false),
                    (["Authorization": "Bearer \(scene.secrets.secret(of: .viewer))"].merging(forwarded) { $1 }, true),
                    (["Authorization": "Bearer \(scene.secrets.secret(of: .registrar))"], false),
                ]
                for row in rows {
                    let metrics = try await scene.ask("GET", "/metrics", headers: row.headers)
                    #expect(metrics.text.contains("up 1"))
                    #expect(metrics.text.contains("spring") == (row.isTrusted || isOpen), "\(row)")
                    let ready = try await scene.ask("GET", "/readyz", headers: row.headers)
                    #expect(ready.status == 503)
                    #expect(ready.text.contains("db7") == row.isTrusted, "\(row)")
                }
            }
        }
    }

    @Test func `a token of one app does not learn of another's runs`() async throws {
        try await WebScene.with { scene in
            let run = try await scene.sending.start(try scene.sending.definition())
            var found: [Int] = []
            for topic in ["com.example.other", "com.example.app"] {
                let (_, secret) = try await scene.webConsole.cases.access.create(
                    name: topic, role: .viewer, topic: topic, expiresIn: nil, by: "test", now: scene.sending.clock.now)
                let answer = try await scene.api(
                    "GET", "/runs/\(run.id)", headers: ["Authorization": "Bearer \(secret)"])
                found.append(answer.status)
            }
            #expect(found == [404, 200])
        }
    }
}

/// The table of the documentation says what the roles may do.
struct RoleTableTests {
    @Test func `the table of roles is the one that is obeyed`() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Sources/Web/Web.docc/WebConsole.md")
        let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("|") }
        let cells = lines.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        #expect(cells.first == ["permission"] + AccessRole.allCases.map(\.rawValue))
        let rows = cells.dropFirst(2)
        #expect(rows.map { $0[0] } == AccessRole.Permission.allCases.map(\.rawValue))
        for (row, permission) in zip(rows, AccessRole.Permission.allCases) {
            #expect(
                row.dropFirst().map { $0 == "yes" } == AccessRole.allCases.map { $0.may(permission) }, "\(permission)")
        }
    }

    @Test(arguments: [
        ("127.0.0.1:8787", true), ("[::1]:8787", true), ("localhost", true), ("push-1:8787", true),
        ("evil.com", false), ("127.0.0.1.evil.com:80", false),
    ])
    func `only a name of this machine needs no token to read what concerns every app`(host: String, isTrusted: Bool) {
        #expect(Authenticator.isNameOfThisMachine(host) == isTrusted)
    }
}
