import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// Audit, health, access tokens and devices, by page and by API.
@Suite(.timeLimit(.minutes(10)))
struct OperatorPagesTests {
    // MARK: Audit

    @Test func `the audit is filtered by what stands in the address, and paged`() async throws {
        try await WebScene.with { scene in
            for number in 0..<5 {
                try await scene.store.recordEvent(
                    kind: .backedUp, run: nil, actor: Actor("anna"), detail: "copy <b>\(number)</b>",
                    now: scene.sending.clock.now)
            }
            let first: ListPage<EventResult> = try await scene.api(
                "GET", "/audit?actor=anna&kind=backed_up&limit=2", as: .viewer
            ).result()
            #expect(first.items.map(\.detail) == ["copy <b>4</b>", "copy <b>3</b>"])
            let cursor = try #require(first.next).inAddress
            let answer = try await scene.api("GET", "/audit?actor=anna&limit=4&cursor=\(cursor)", as: .viewer)
            let rest: ListPage<EventResult> = try answer.result()
            #expect(rest.items.map(\.detail) == ["copy <b>2</b>", "copy <b>1</b>", "copy <b>0</b>"])
            #expect(rest.next == nil)
            let linked = try await scene.api("GET", "/audit?actor=anna&limit=2", as: .viewer)
            #expect(linked.header("link")?.contains("/api/v1/audit?actor=anna&limit=2&cursor=") ?? false)
            let page = try await scene.page("/audit?actor=anna&kind=backed_up", as: .viewer)
            #expect(page.text.contains("copy &lt;b&gt;4&lt;/b&gt;"))
            #expect(page.text.contains("<option value=\"backed_up\" selected>"))
            let table = try await scene.page("/audit?actor=anna&format=csv", as: .viewer)
            #expect(table.text.hasPrefix("at,kind,actor,detail,origin,"))
            #expect(table.text.split(separator: "\n").count == 6)
        }
    }

    @Test(arguments: [
        ("run=x", "\"run\" must be a run's number"),
        ("kind=backed_op", "unknown kind \"backed_op\"; did you mean \"backed_up\"?"),
        ("since=yesterday", "\"since\" must be a time such as 2026-12-01T09:00:00Z"),
    ])
    func `a filter that cannot be is said, by page and by API`(query: String, words: String) async throws {
        try await WebScene.with { scene in
            let answer = try await scene.api("GET", "/audit?\(query)", as: .viewer)
            #expect(answer.status == 422)
            #expect(answer.problem?.detail == words)
            let page = try await scene.page("/audit?\(query)", as: .viewer)
            #expect(page.status == 422)
            #expect(page.text.contains("role=\"alert\""))
        }
    }

    @Test func `whoever is confined to one app reads the audit of its runs alone`() async throws {
        try await WebScene.with { scene in
            let run = try await scene.sending.start(try scene.sending.definition())
            let own = try await scene.bearer(.viewer, topic: PipelineScene.topic)
            let other = try await scene.bearer(.viewer, topic: "com.example.other")
            #expect(try await scene.api("GET", "/audit", headers: own).status == 403)
            #expect(try await scene.api("GET", "/audit?run=\(run.id)", headers: own).status == 200)
            #expect(try await scene.api("GET", "/audit?run=\(run.id)", headers: other).status == 404)
        }
    }

    // MARK: Health

    @Test func `health says in one sentence what is worst, and where to look`() async throws {
        try await WebScene.with { scene in
            let quiet: HealthResult = try await scene.api("GET", "/health", as: .viewer).result()
            #expect(quiet.state == "warning")
            #expect(quiet.verdict.hasPrefix("none is running: schedules and feeds start nothing"))
            let run = try await scene.sending.start(try scene.sending.definition())
            _ = try await scene.store.claim(run.id, by: "sender", now: scene.sending.clock.now)
            try await scene.store.halt(
                run.id, by: "sender", .breaker, reason: "<i>wrong topic?</i>", now: scene.sending.clock.now)
            let halted: HealthResult = try await scene.api("GET", "/health", as: .viewer).result()
            #expect(halted.state == "wrong")
            #expect(halted.verdict.hasPrefix("run \(run.id) of c waits for a person: <i>wrong topic?</i>"))
            #expect(halted.checks.first?.check == "runs")
            let page = try await scene.page("/health", as: .viewer)
            #expect(page.text.contains("&lt;i&gt;wrong topic?&lt;/i&gt;"))
            #expect(page.header("refresh") == "15")
            let table = try await scene.page("/health?format=csv", as: .viewer)
            #expect(table.text.hasPrefix("check,state,message\nruns,wrong,"))
            let own: HealthResult = try await scene.api(
                "GET", "/health", headers: scene.bearer(.viewer, topic: "com.example.other")
            ).result()
            #expect(!own.checks.contains { $0.check == "runs" })
            #expect(!own.verdict.contains("waits for a person"))
        }
    }

    @Test func `health names the runs of the last day that failed or were missed, and a stop with its reason`()
        async throws
    {
        try await WebScene.with { scene in
            let clock = scene.sending.clock
            for (name, state) in [("old", RunState.failed), ("late", .missed), ("broken", .failed)] {
                _ = try await scene.store.createEndedRun(
                    try scene.sending.definition(), occurrence: name, state: state, reason: "reason of \(name)",
                    now: clock.now, by: "test")
                if name == "old" { clock.advance(by: .seconds(25 * 3600)) }
            }
            let run = try await scene.sending.start(try scene.sending.definition())
            _ = try await scene.store.claim(run.id, by: "sender", now: clock.now)
            try await scene.store.release(run.id, by: "sender", state: .running, reason: nil, now: clock.now)
            let unsent: HealthResult = try await scene.api("GET", "/health", as: .viewer).result()
            let messages = unsent.checks.filter { $0.check == "runs" }.map(\.message)
            #expect(messages.contains { $0.contains("(late) was missed at") && $0.hasSuffix(": reason of late") })
            #expect(messages.contains { $0.contains("(broken) failed at") && $0.hasSuffix(": reason of broken") })
            #expect(!messages.contains { $0.contains("reason of old") })
            #expect(messages.contains { $0.contains("has no sender") })
            _ = try await scene.api("POST", "/stops", as: .sender, body: #"{"reason": "wrong link"}"#)
            let stopped: HealthResult = try await scene.api("GET", "/health", as: .viewer).result()
            let stop = try #require(stopped.checks.first { $0.check == "stops" }?.message)
            #expect(stop.hasPrefix("everything was stopped by sender (token) at ") && stop.contains(": wrong link; "))
            #expect(!stopped.checks.contains { $0.message.contains("has no sender") })
        }
    }

    @Test func `a check that could not be made is told as that, not as fine`() async throws {
        try await WebScene.with { scene in
            let health: HealthResult = try await scene.api("GET", "/health", as: .viewer).result()
            let files = try #require(health.checks.first { $0.check == "files" })
            #expect(files.state == "skipped")
            #expect(files.message == "could not check the campaign files, because no daemon is running")
            let page = try await scene.page("/health", as: .viewer)
            #expect(page.text.contains("<span class=\"state suppressed\">not checked</span>"))
            let own: HealthResult = try await scene.api(
                "GET", "/health", headers: scene.bearer(.viewer, topic: PipelineScene.topic)
            ).result()
            #expect(Set(own.checks.map(\.check)).isSubset(of: ["store", "log", "disk", "daemon", "clock", "limits"]))
        }
    }

    @Test func `health names an endpoint that gives no response`() async throws {
        try await WebScene.with { scene in
            let now = scene.sending.clock.now
            let run = try await scene.sending.start(try scene.sending.definition())
            _ = try await scene.store.claim(run.id, by: "sender", now: now)
            let hold = EndpointHold(
                environment: .production, endpoint: "api.push.apple.com:443", status: nil, since: now, nextTryAt: now)
            try await scene.store.setHolds([hold], run: run.id, owner: "sender")
            let health: HealthResult = try await scene.api("GET", "/health", as: .viewer).result()
            #expect(health.state == "wrong")
            #expect(
                health.checks.contains {
                    $0.check == "runs"
                        && $0.message.contains("APNs has been unreachable at api.push.apple.com:443 since")
                }, "\(health.checks)")
        }
    }

    // MARK: Stops

    @Test func `everything is stopped and lifted by whoever may, told to everybody, and on record`() async throws {
        try await WebScene.with { scene in
            let none: StopsResult = try await scene.api("GET", "/stops", as: .viewer).result()
            #expect(none.items.isEmpty)
            let body = "{\"reason\": \"wrong <b>text</b>\"}"
            #expect(try await scene.api("POST", "/stops", as: .author, body: body).status == 403)
            let stopped: StopResult = try await scene.api("POST", "/stops", as: .sender, body: body).result()
            #expect(stopped.recorded && stopped.quiet == true && stopped.stop.scope == "all")
            let again: StopResult = try await scene.api("POST", "/stops", as: .approver).result()
            #expect(again.stop.by == "sender (token)", "the first one stays")
            let known: StopsResult = try await scene.api("GET", "/stops", as: .viewer).result()
            #expect(known.items.map(\.stop) == [stopped.stop])
            for path in ["/", "/campaigns", "/audit", "/health"] {
                let page = try await scene.page(path, as: .viewer)
                #expect(page.text.contains("<strong>Stopped: everything</strong>, by sender (API)"), "\(path)")
                #expect(page.text.contains("wrong &lt;b&gt;text"))
                #expect(!page.text.contains("action=\"/stops"))
            }
            let reason = "{\"reason\": \"put right\"}"
            #expect(try await scene.api("POST", "/stops/lift", as: .sender, body: reason).status == 403)
            #expect(
                try await scene.api("POST", "/stops/lift", as: .approver, body: "{\"reason\": \" \"}").status == 422)
            let lifted: LiftResult = try await scene.api("POST", "/stops/lift", as: .approver, body: reason).result()
            #expect(lifted.liftedBy == "approver (token)" && lifted.liftedFor == "put right" && lifted.still.isEmpty)
            #expect(try await scene.api("POST", "/stops/lift", as: .approver, body: reason).status == 422)
            #expect(!(try await scene.page("/", as: .viewer)).text.contains("Stopped:"))
            let events = try await scene.store.events(run: nil, since: nil, limit: 100)
            #expect(events.contains { $0.kind == "sending_stopped" && $0.actor.name == "sender (token)" })
            #expect(events.contains { $0.kind == "stop_lifted" && $0.actor.name == "approver (token)" })
        }
    }

    @Test func `a button stops without a question, and ends with a reason and a name`() async throws {
        try await WebScene.with { scene in
            // The first page has the button only while something is being sent.
            #expect(!(try await scene.page("/", as: .sender)).text.contains("action=\"/stops\""))
            #expect(try await scene.page("/stops", as: .sender).text.contains("action=\"/stops\""))
            #expect(try await scene.page("/stops", as: .viewer).status == 403)
            _ = try await scene.sending.start(try scene.sending.definition())
            #expect(try await scene.page("/", as: .sender).text.contains("action=\"/stops\""))
            #expect(!(try await scene.page("/", as: .viewer)).text.contains("action=\"/stops\""))
            #expect(try await scene.page("/stops", as: .sender, form: [:]).status == 303)
            let page = try await scene.page("/health", as: .approver)
            #expect(page.text.contains("Stopped: everything") && !page.text.contains("action=\"/stops\""))
            for fields in [["name": "Anna"], ["reason": "put right"], ["reason": " ", "name": "Anna"]] {
                let fields = fields.merging(["scope": "all"]) { $1 }
                #expect(try await scene.page("/stops/lift", as: .approver, form: fields).status == 422)
            }
            let form = ["scope": "all", "reason": "put right", "name": "Anna"]
            #expect(try await scene.page("/stops/lift", as: .sender, form: form).status == 403)
            #expect(try await scene.page("/stops/lift", as: .approver, form: form).status == 303)
            #expect(try await scene.store.stops().isEmpty)
            let events = try await scene.store.events(run: nil, since: nil, limit: 100)
            #expect(events.contains { $0.kind == "stop_lifted" && $0.detail.hasSuffix("put right (Anna)") })
        }
    }

    @Test func `a campaign is stopped by its own name, whatever its file is called`() async throws {
        try await WebScene.with { scene in
            let text = WebScene.campaignText.replacing("campaign: new-podcast", with: "campaign: promo")
            for file in ["promo-old.yaml", "promo.yml"] {
                try scene.folder.write(text, to: "campaigns/\(file)")
                let name = file.replacing(".yaml", with: "")
                let stopped = try await scene.api("POST", "/campaigns/\(name)/stop", as: .sender)
                #expect(try stopped.result(StopResult.self).stop.scope == "campaign promo", "\(stopped)")
                let body = #"{"reason": "right"}"#
                let lifted = try await scene.api("POST", "/campaigns/\(name)/stop/lift", as: .approver, body: body)
                #expect(lifted.status == 200, "\(lifted)")
                try FileManager.default.removeItem(atPath: scene.folder.file("campaigns/\(file)"))
            }
        }
    }

    @Test func `a run and a campaign are stopped by those of their app`() async throws {
        try await WebScene.with { scene in
            let run = try await scene.sending.start(try scene.sending.definition())
            let own = try await scene.bearer(.approver, topic: PipelineScene.topic)
            let other = try await scene.bearer(.approver, topic: "com.example.other")
            #expect(try await scene.page("/runs/\(run.id)", as: .sender).text.contains("/runs/\(run.id)/stop"))
            for path in ["/runs/\(run.id)/stop", "/campaigns/c/stop"] {
                #expect(try await scene.api("POST", path, headers: other).status == 404, "\(path)")
                #expect(try await scene.api("POST", path, headers: own).status == 200, "\(path)")
            }
            for (path, status) in [("/stops", 403), ("/runs/77/stop", 404), ("/campaigns/d/stop", 404)] {
                #expect(try await scene.api("POST", path, headers: own).status == status, "\(path)")
            }
            #expect(try await scene.store.run(run.id)?.state == .paused)
            let foreign = StopOrder(.campaign("foreign"), by: "test", at: scene.sending.clock.now)
            #expect(try await scene.store.recordStop(foreign, by: "test", now: scene.sending.clock.now) == .recorded)
            let seen: StopsResult = try await scene.api("GET", "/stops", headers: own).result()
            #expect(Set(seen.items.map(\.stop.scope)) == ["run \(run.id)", "campaign c"])
            let hidden: StopsResult = try await scene.api("GET", "/stops", headers: other).result()
            #expect(hidden.items.isEmpty)
            let page = try await scene.page("/runs/\(run.id)", as: .approver)
            #expect(page.text.contains("continues when a person resumes it on its page"))
            #expect(page.text.contains("value=\"campaign c\"") && !page.text.contains("value=\"run \(run.id)\""))
            let lifted = try await scene.api(
                "POST", "/campaigns/c/stop/lift", body: "{\"reason\": \"right\"}", headers: own)
            #expect(try lifted.result(LiftResult.self).still.map(\.scope) == ["run \(run.id)"])
        }
    }

    // MARK: Tokens

    @Test func `a token is made, shown once, works, and is revoked`() async throws {
        try await WebScene.with { scene in
            let body = "{\"name\": \"ci\", \"role\": \"viewer\", \"expires\": \"90d\"}"
            let made = try await scene.api("POST", "/tokens", as: .admin, body: body)
            #expect(made.status == 201)
            let token: AccessTokenResult = try made.result()
            let secret = try #require(token.secret)
            let bearer = ["Authorization": "Bearer \(secret)"]
            #expect(try await scene.api("GET", "/segments", headers: bearer).status == 200)
            let list = try await scene.api("GET", "/tokens", as: .admin)
            #expect(!list.text.contains(secret))
            #expect(try await scene.api("POST", "/tokens", as: .admin, body: body).status == 409)
            #expect(try await scene.api("DELETE", "/tokens/ci", as: .admin).status == 200)
            #expect(try await scene.api("GET", "/segments", headers: bearer).status == 401)
            #expect(try await scene.api("DELETE", "/tokens/nobody", as: .admin).status == 404)
        }
    }

    @Test(arguments: [
        ("{\"name\": \"x\", \"role\": \"boss\"}", "\"role\" must be one of viewer, author"),
        (
            "{\"name\": \"x\", \"role\": \"viewer\", \"expires\": \"soon\"}",
            "\"expires\" must be a duration, such as 90d"
        ),
        ("{\"name\": \"7 up\", \"role\": \"viewer\"}", "cannot be a token's name"),
        ("{\"name\": \"x\", \"rol\": \"viewer\"}", "did you mean \"role\"?"),
    ])
    func `a token that cannot be is refused`(body: String, words: String) async throws {
        try await WebScene.with { scene in
            let answer = try await scene.api("POST", "/tokens", as: .admin, body: body)
            #expect(answer.status == 422)
            #expect(answer.problem?.detail.contains(words) ?? false, "\(answer.text)")
        }
    }

    @Test func `an admin of one app makes no tokens, others do not see them`() async throws {
        try await WebScene.with { scene in
            let own = try await scene.bearer(.admin, topic: PipelineScene.topic)
            #expect(try await scene.api("GET", "/tokens", headers: own).status == 403)
            let body = "{\"name\": \"x\", \"role\": \"admin\"}"
            #expect(try await scene.api("POST", "/tokens", body: body, headers: own).status == 403)
            #expect(try await scene.api("DELETE", "/tokens/admin", headers: own).status == 403)
            let page = try await scene.page("/devices", as: .author)
            #expect(!page.text.contains("href=\"/people\""))
        }
    }

    @Test func `the page of tokens shows a secret in one answer, and what was typed where it is refused`() async throws
    {
        try await WebScene.with { scene in
            let made = try await scene.page(
                "/tokens", as: .admin, form: ["name": "ios", "role": "registrar", "topic": "", "expires": ""])
            #expect(made.status == 200)
            #expect(made.header("cache-control") == "no-store")
            let secret = try #require(made.text.firstMatch(of: /<code class="secret">([^<]+)</)).1
            let page = try await scene.page("/tokens", as: .admin)
            #expect(!page.text.contains(secret))
            #expect(page.text.contains(">ios</th>"))
            let refused = try await scene.page(
                "/tokens", as: .admin, form: ["name": "\"><b>", "role": "sender", "expires": "1d"])
            #expect(refused.status == 422)
            #expect(refused.text.contains("value=\"&quot;&gt;&lt;b&gt;\""))
            #expect(refused.text.contains("<option value=\"sender\" selected>"))
            let address = try #require(
                page.text.firstMatch(
                    of:
                        /action="(\/tokens\/[0-9]+\/revoke)"><button name="do" value="1" class="danger" aria-label="Revoke ios"/
                )
            ).1
            #expect(try await scene.page(String(address), as: .admin, form: [:]).status == 303)
            #expect(try await scene.page("/tokens?format=csv", as: .admin).text.contains("ios,registrar,,revoked,"))
        }
    }

    // MARK: Devices

    @Test func `a device is found by page, its history shown, names of devices as text`() async throws {
        try await WebScene.with { scene in
            let token = String(repeating: "ab", count: 28)
            for number in 1...2 {
                let body =
                    "{\"token\": \"\(token)0000000\(number)\", \"environment\": \"production\", "
                    + "\"user_id\": \"<img src=x>\", \"model\": \"<script>alert(1)</script>\"}"
                _ = try await scene.api(
                    "PUT", "/devices/\(PipelineScene.topic)/phone-\(number)", as: .registrar, body: body)
            }
            let many = try await scene.page("/devices?find=%3Cimg%20src%3Dx%3E", as: .viewer)
            #expect(many.status == 200)
            #expect(many.text.contains("&lt;img src=x&gt;"))
            #expect(!many.text.contains("<img"))
            #expect(!many.text.contains(token))
            let one = try await scene.page("/devices?find=phone-1", as: .viewer)
            #expect(one.status == 303)
            let page = try await scene.page(try #require(one.header("location")), as: .viewer)
            #expect(page.text.contains("active: runs may send to the device"))
            #expect(page.text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"))
            #expect(!page.text.contains("<script>alert"))
            let nobody = try await scene.page("/devices?find=nobody", as: .viewer)
            #expect(nobody.status == 404)
            #expect(nobody.text.contains("no device &quot;nobody&quot; in the store"))
            let table = try await scene.page("/devices?find=phone-1&format=csv", as: .viewer)
            #expect(table.text.hasPrefix("device,installation_id,"))
        }
    }

    @Test func `the devices of a large store are counted behind the page, which says so and does not wait`()
        async throws
    {
        try await WebScene.with { scene in
            let body = "{\"token\": \"\(String(repeating: "ab", count: 32))\", \"environment\": \"production\"}"
            _ = try await scene.api("PUT", "/devices/\(PipelineScene.topic)/phone-1", as: .registrar, body: body)
            let figures = "<td>1</td><td>0</td><td>0</td>"
            let small = try await scene.page("/devices", as: .viewer)
            #expect(small.text.contains(figures) && !small.text.contains("being counted"))
            // Large by whatever it holds: to know how many of that are devices would take counting them.
            try await scene.store.recordEvent(
                kind: .fileWritten, run: nil, actor: "test",
                detail: String(repeating: "x", count: CachedDeviceCounts.countedAtOnceBytesMax), files: [:],
                now: scene.sending.clock.now)
            let first = try await scene.page("/devices", as: .viewer)
            #expect(first.status == 200 && first.text.contains("being counted"))
            #expect(!first.text.contains(figures) && !first.text.contains("None yet"))
            await scene.webConsole.cases.countQueue.settle()
            let second = try await scene.page("/devices", as: .viewer)
            #expect(second.text.contains(figures) && second.text.contains("Counted at"))
            let counts: DeviceCountsResult = try await scene.api("GET", "/devices/counts", as: .viewer).result()
            #expect(counts.counts.map(\.count) == [1])
        }
    }
}
