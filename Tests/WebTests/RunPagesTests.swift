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

/// Runs as pages and by the API: the same facts, the same refusals.
@Suite(.timeLimit(.minutes(10)))
struct RunPagesTests {
    /// A run of ten devices that nobody sends.
    private static func run(_ scene: WebScene) async throws -> Run {
        try await scene.sending.addDevices(0..<10)
        let run = try await scene.sending.start(try scene.sending.definition())
        let owner = "nobody-else"
        _ = try await scene.store.claim(run.id, by: Actor(owner), now: scene.sending.clock.now)
        _ = try await scene.store.freeze(run.id, by: owner, now: scene.sending.clock.now) { _ in }
        try await scene.store.release(
            run.id, by: Actor(owner), state: .running, reason: nil, halt: nil, now: scene.sending.clock.now)
        return run
    }

    @Test func `the stage that is approved is the one that was seen`() async throws {
        try await WebScene.with { scene in
            try await scene.sending.addDevices(0..<100)
            let stages = [Stage(.share(50), needsApproval: true), Stage(.rest, needsApproval: true)]
            let definition = try scene.sending.definition { $0.stages = stages }
            let now = scene.sending.clock.now
            let run = try await scene.store.createRun(definition, occurrence: "o", now: now, by: "test").run.id
            _ = try await scene.store.claim(run, by: "a", now: now)
            _ = try await scene.store.freeze(run, by: "a", now: now) { _ in }
            var request = LeaseRequest(run: run, environment: .production, limit: 1000, now: now, owner: "a")
            request.stages = 2
            #expect(try await scene.store.lease(request).isPaused)
            try await scene.store.release(run, by: "a", state: .running, reason: nil, now: now)
            let path = "/runs/\(run)/approve"
            #expect(try await scene.api("POST", path, as: .approver, body: "{}").status == 422)
            let other = try await scene.api("POST", path, as: .approver, body: #"{"stage": 2}"#)
            #expect(other.status == 409)
            #expect(try other.result(Problem.self).detail.contains("waits at stage 1"))
            let page = try await scene.page("/runs/\(run)", as: .approver)
            #expect(page.text.contains(#"<input type="hidden" name="stage" value="1">"#))
            #expect(try await scene.page(path, as: .approver, form: ["stage": "2"]).status == 409)
            #expect(try await scene.page(path, as: .approver, form: [:]).status == 422)
            #expect(try await scene.store.run(run)?.halt == .approval)
            #expect(try await scene.page(path, as: .approver, form: ["stage": "1"]).status == 303)
            #expect(try await scene.store.stages(of: run)[0].approvedBy?.contains("approver") == true)
            #expect(try await scene.store.stages(of: run)[1].approvedBy == nil)
        }
    }

    @Test func `a run that is paused or stopped has no pace, and nothing is counted down`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            var result: RunResult = try await scene.api("GET", "/runs/\(run.id)").result()
            #expect(RunView(result, rate: 2).pace.hasSuffix(" remaining"))
            #expect(RunView(result, rate: 0.98).pace.hasPrefix("1/s"))
            #expect(RunView(result, rate: 2, isStopped: true).pace.isEmpty)
            result.state = RunState.paused.rawValue
            #expect(RunView(result, rate: 2).pace.isEmpty)
            // A run without an audience yet has no numbers to be read out.
            (result.counts, result.frozen) = (CountsResult(DeliveryCounts()), false)
            let empty = RunView(result, rate: nil)
            #expect(empty.live.announcement == "\(empty.summary).")
            #expect([empty].live.announcement == "\(empty.campaign): \(empty.summary)")
        }
    }

    @Test func `the live state holds every number of the page, and an uncounted audience is not called empty`()
        async throws
    {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            let page = try await scene.page("/runs/\(run.id)", as: .sender)
            let state: LiveState = try await scene.page("/runs/\(run.id)/state", as: .sender).result()
            #expect(state.parts.keys.sorted() == ["charts", "reasons", "slices", "sum"])
            for (name, html) in state.parts { #expect(page.text.contains(html), "\(name)") }
            for place in page.text.matches(of: /data-value="([^"]+)"/).map({ String($0.1) }) {
                #expect(state.values[place] != nil, "\(place)")
            }
            #expect(page.text.contains("<span data-value=\"left\">10</span> will never be sent"))
            #expect(state.without(state.parts).parts.isEmpty)
            var result: RunResult = try await scene.api("GET", "/runs/\(run.id)").result()
            (result.counts, result.frozen) = (CountsResult(DeliveryCounts()), false)
            #expect(RunView(result, rate: nil).sum.contains("The audience is being counted."))
            #expect(RunView(result, rate: nil).share.isEmpty)
            result.state = RunState.failed.rawValue
            #expect(RunView(result, rate: nil).sum.contains("The run ended before its audience was counted."))
            result.frozen = true
            #expect(RunView(result, rate: nil).sum.contains("The audience is empty."))
        }
    }

    @Test func `every run is found: page by page, by its words, and by filters in the address`() async throws {
        try await WebScene.with { scene in
            let now = scene.sending.clock.now
            for number in 1...120 {
                let definition = try scene.sending.definition { campaign in
                    if number % 2 == 0 { campaign.pushType = .background }
                }
                _ = try await scene.store.createRun(
                    definition, occurrence: "o\(number)", now: now + .seconds(number), by: "test")
            }
            func list(_ address: String) async throws -> (ids: [Int], text: String) {
                let text = try await scene.page(address, as: .viewer).text
                return (text.matches(of: /<a href="\/runs\/(\d+)">/).compactMap { Int($0.1) }, text)
            }
            func link(_ label: String, _ text: String) throws -> String {
                let pattern = try Regex("href=\"([^\"]+)\">\(label)<", as: (Substring, Substring).self)
                return String(try #require(text.firstMatch(of: pattern)).1).replacing("&amp;", with: "&")
            }
            let first = try await list("/?silent=show")
            #expect(first.ids == Array((71...120).reversed()) && !first.text.contains(">Newer<"))
            let second = try await list(try link("Older", first.text))
            #expect(second.ids == Array((21...70).reversed()))
            let third = try await list(try link("Older", second.text))
            #expect(third.ids == Array((1...20).reversed()) && !third.text.contains(">Older<"))
            #expect(try await list(try link("Newer", third.text)).ids == second.ids)
            #expect(try await list(try link("Newer", second.text)).ids == first.ids)
            #expect(try await list("/?find=o77").ids == [77])
            let loud = try await list("/?silent=hide")
            #expect(loud.ids == Array(stride(from: 119, through: 21, by: -2)))
            #expect(try link("Older", loud.text).hasPrefix("/?silent=hide&older="))
            #expect(loud.text.contains("data-live=\"/live?silent=hide\""))
            #expect(first.text.contains("value=\"show\" checked") && !first.text.contains("not listed"))
            // The first page is that of broadcasts, and says what it leaves out.
            let plain = try await list("/")
            #expect(plain.ids == loud.ids && plain.text.contains("50 silent runs are not listed."))
            #expect(try await list("/?kind=background&find=o1").ids.allSatisfy { $0 % 2 == 0 })
            #expect(try await list("/?state=failed").text.contains("No run matches."))
            let day = String(now.iso8601.prefix(10))
            #expect(try await list("/?from=\(day)&to=\(day)&silent=show").ids.count == 50)
            #expect(try await list("/?to=2001-01-01").ids.isEmpty)
            for wrong in ["state=x", "kind=x", "from=x", "older=-", "find=\(String(repeating: "x", count: 201))"] {
                let answer = try await scene.page("/?\(wrong)", as: .viewer)
                #expect(
                    answer.status >= 400 && answer.status < 500 && answer.text.contains("role=\"alert\""), "\(wrong)")
            }
            let live: LiveState = try await scene.page("/state?find=o77", as: .viewer).result()
            #expect(live.stage == "77 scheduled")
            let api: RunPageResult = try await scene.api(
                "GET", "/runs?silent=false&kind=alert&find=o11&app=\(PipelineScene.topic)"
            ).result()
            #expect(api.runs.map(\.run) == [119, 117, 115, 113, 111, 11])
        }
    }

    @Test func `the page and the API say the same of a run`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            let api: RunResult = try await scene.api("GET", "/runs/\(run.id)").result()
            let page = try await scene.page("/runs/\(run.id)", as: .viewer)
            #expect(page.status == 200)
            #expect(page.text.contains("<span data-value=\"audience\">\(api.counts.audience)</span>"))
            #expect(page.text.contains("data-value=\"summary\">\(api.stateSummary)</span>"))
            #expect(page.header("content-security-policy")?.contains("script-src 'self'") ?? false)
            let list = try await scene.page("/", as: .viewer)
            #expect(list.text.contains("<a href=\"/runs/\(run.id)\">c</a>"))
        }
    }

    @Test func `a run by each device's clock shows when who starts, in its page and in its report`() async throws {
        try await WebScene.with { scene in
            let zones = ["Asia/Tokyo", "Europe/Berlin", "Europe/Berlin"]
            let records = try zones.enumerated().map { number, zone in
                var record = DeviceRecord(
                    token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                    topic: PipelineScene.topic)
                record.timeZone = zone
                return record
            }
            let now = scene.sending.clock.now
            _ = try await scene.store.importDevices(records, now: now)
            var definition = try scene.sending.definition { campaign in
                campaign.schedule = Schedule(trigger: .at("2027-06-01T09:00"))
                campaign.schedule?.zone = .recipient
            }
            definition.wall = WallTime("2027-06-01T09:00")
            let run = try await scene.sending.start(definition)
            // Its audience is not written down yet.
            #expect(!(try await scene.page("/runs/\(run.id)", as: .viewer)).text.contains("Waves"))
            _ = try await scene.store.claim(run.id, by: Actor("sender"), now: now)
            _ = try await scene.store.freeze(run.id, by: "sender", now: now) { _ in }
            for path in ["/runs/\(run.id)", "/runs/\(run.id)/report.html"] {
                let text = try await scene.page(path, as: .viewer).text
                #expect(text.contains("2 planned starts for 3 devices"), "\(path)")
                #expect(text.contains("Europe/Berlin"), "\(path)")
            }
        }
    }

    @Test func `whoever has no script is told that a run moves on without its page`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            let page = try await scene.page("/runs/\(run.id)", as: .viewer)
            #expect(page.text.contains("Live updates need JavaScript"))
            _ = try await scene.api("POST", "/runs/\(run.id)/cancel", as: .sender)
            let over = try await scene.page("/runs/\(run.id)", as: .viewer)
            #expect(!over.text.contains("Live updates need JavaScript"))
        }
    }

    @Test func `what a role may not do is not offered, and refused when it is asked for`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            let seen = try await scene.page("/runs/\(run.id)", as: .viewer)
            #expect(!seen.text.contains("/runs/\(run.id)/pause"))
            let offered = try await scene.page("/runs/\(run.id)", as: .approver)
            #expect(offered.text.contains("/runs/\(run.id)/pause"))
            #expect(!offered.text.contains("/runs/\(run.id)/resume"))
            let refused = try await scene.page("/runs/\(run.id)/pause", as: .viewer, form: [:])
            #expect(refused.status == 403)
        }
    }

    @Test func `a run is paused and resumed by forms, with its reason and the person on record`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            let paused = try await scene.page("/runs/\(run.id)/pause", as: .sender, form: ["reason": "wrong link"])
            #expect(paused.status == 303)
            #expect(paused.header("location") == "/runs/\(run.id)")
            let page = try await scene.page("/runs/\(run.id)", as: .sender)
            #expect(page.text.contains("paused by sender (signed in): wrong link"))
            let list = try await scene.page("/", as: .viewer)
            #expect(list.text.contains("waits for a person: paused by sender (signed in): wrong link"))
            let resumed = try await scene.page("/runs/\(run.id)/resume", as: .sender, form: [:])
            #expect(resumed.status == 303)
            let again = try await scene.page("/runs/\(run.id)/cancel", as: .sender, form: [:])
            #expect(again.status == 303)
            let over = try await scene.page("/runs/\(run.id)/resume", as: .sender, form: [:])
            #expect(over.status == 422)
            #expect(over.text.contains("role=\"alert\""))
        }
    }

    @Test func `a form of a page with an older state of the run is refused`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            func seen() async throws -> String {
                try #require(WebScene.field("seen", in: try await scene.page("/runs/\(run.id)", as: .sender).text))
            }
            func send(_ verb: String, _ seen: String) async throws -> WebScene.Answer {
                try await scene.page("/runs/\(run.id)/\(verb)", as: .sender, form: ["seen": seen, "reason": "one"])
            }
            let open = try await seen()
            #expect(try await send("pause", open).status == 303)
            let late = try await send("cancel", open)
            #expect(late.status == 412 && late.text.contains("is now paused by sender (signed in): one"))
            // Another halt than the one that the page shows.
            let paused = try await seen()
            #expect(try await send("resume", paused).status == 303)
            let again = ["reason": "the link is wrong"]
            #expect(try await scene.page("/runs/\(run.id)/pause", as: .admin, form: again).status == 303)
            let stale = try await send("resume", paused)
            #expect(stale.status == 412 && stale.text.contains("the link is wrong"), "\(stale.status)")
            #expect(try await scene.store.run(run.id)?.state == .paused)
            #expect(try await send("resume", try await seen()).status == 303)
        }
    }

    @Test func `what went wrong is put right from its page, and each names the other`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            try scene.folder.write(
                "template: right\ndefault_locale: en\nalert: {en: {body: Sorry}}\n", to: "templates/right.yaml")
            #expect(!(try await scene.page("/runs/\(run.id)", as: .sender)).text.contains("/runs/\(run.id)/recall"))
            let early = try await scene.api("POST", "/runs/\(run.id)/correct", as: .sender)
            // A conflict, not a fault of the server that a retry would find gone.
            #expect(early.status == 409)
            #expect(early.problem?.detail.contains("is still being sent") == true)
            _ = try await scene.store.claim(run.id, by: Actor("sender"), now: run.createdAt)
            _ = try await scene.store.freeze(run.id, by: "sender", now: run.createdAt) { _ in }
            let lease = try await scene.store.lease(
                LeaseRequest(run: run.id, environment: .production, limit: 1, now: run.createdAt, owner: "sender"))
            _ = try await scene.store.settle(
                run: run.id,
                lease.deliveries.map {
                    Settlement(
                        lease: lease.id, device: $0.device, generation: $0.generation, leaseNumber: 1, attempt: 1,
                        verdict: .accepted, status: 200)
                }, now: run.createdAt)
            try await scene.store.release(
                run.id, by: "sender", state: .cancelled, reason: nil, now: run.createdAt)
            let page = try await scene.page("/runs/\(run.id)", as: .sender)
            #expect(page.text.contains("Remove it from the screens") && page.text.contains("1 device that got it"))
            #expect(!(try await scene.page("/runs/\(run.id)", as: .viewer)).text.contains("/runs/\(run.id)/recall"))
            #expect(try await scene.api("POST", "/runs/\(run.id)/correct", as: .author).status == 403)
            let unprepared = try await scene.api("POST", "/runs/\(run.id)/correct", as: .sender)
            #expect(unprepared.status == 422)
            try scene.folder.write(
                "template: theirs\ndefault_locale: en\nalert: {en: {body: Theirs}}\n", to: "templates/theirs.yaml")
            try scene.folder.write(
                "campaign: c\ntopic: com.example.other\npush_type: alert\ntemplate: right\ncorrection: theirs\n",
                to: "campaigns/theirs.yaml")
            let confined = try await scene.confined(to: PipelineScene.topic, as: .sender)
            for name in ["theirs", "their"] {
                let body = "{\"template\": \"\(name)\"}"
                let answer = try await scene.api("POST", "/runs/\(run.id)/correct", body: body, headers: confined)
                #expect(answer.status == 404 && answer.problem?.detail.contains("did you mean") == false)
            }
            try FileManager.default.removeItem(atPath: scene.folder.file("campaigns/theirs.yaml"))
            #expect(try await scene.api("POST", "/stops").status == 200)
            for word in ["correct", "recall"] {
                let body = word == "correct" ? #"{"template": "right"}"# : nil
                let stopped = try await scene.api("POST", "/runs/\(run.id)/\(word)", as: .sender, body: body)
                #expect(stopped.status == 409 && stopped.problem?.detail.contains("everything was stopped") == true)
            }
            #expect(try await scene.api("POST", "/stops/lift", body: #"{"reason": "right"}"#).status == 200)
            let made = try await scene.api(
                "POST", "/runs/\(run.id)/correct", as: .sender, body: #"{"template": "right"}"#)
            #expect(made.status == 202, "\(made.text)")
            let started = try made.result(StartedResult.self)
            #expect(started.run.corrects == CorrectionResult(of: run.id, .replace))
            let again = try await scene.api(
                "POST", "/runs/\(run.id)/correct", as: .sender, body: #"{"template": "right"}"#)
            #expect(again.status == 409, "\(again.text)")
            #expect(try await scene.page("/runs/\(run.id)/recall", as: .sender, form: [:]).status == 303)
            let corrected = try await scene.page("/runs/\(started.run.run)", as: .viewer)
            #expect(corrected.text.contains("Corrects <a href=\"/runs/\(run.id)\">run \(run.id)</a>."))
            let wrong = try await scene.page("/runs/\(run.id)", as: .viewer)
            #expect(wrong.text.contains("Corrected by <a href=\"/runs/\(started.run.run)\">"))
        }
    }

    @Test func `a change by the API is held to the state that was seen`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            let seen = try #require(try await scene.api("GET", "/runs/\(run.id)").header("etag"))
            let paused = try await scene.api(
                "POST", "/runs/\(run.id)/pause", as: .sender, body: #"{"reason": "wait"}"#, headers: ["If-Match": seen])
            #expect(paused.status == 200)
            let result: RunResult = try paused.result()
            #expect(result.state == "paused")
            let late = try await scene.api("POST", "/runs/\(run.id)/cancel", as: .sender, headers: ["If-Match": seen])
            #expect(late.status == 412)
            #expect(late.problem?.detail.contains("is now paused by sender (token): wait") ?? false)
            let wrong = try await scene.api("POST", "/runs/\(run.id)/cancel", as: .sender, body: #"{"reson": "x"}"#)
            #expect(wrong.status == 422)
            #expect(wrong.problem?.detail == #"unknown field "reson"; did you mean "reason"?"#)
        }
    }

    @Test func `what a run moves to is told as a whole, and that it is over`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.run(scene)
            _ = try await scene.api("POST", "/runs/\(run.id)/cancel", as: .sender)
            let stream = try await scene.page("/runs/\(run.id)/live", as: .viewer)
            #expect(stream.header("content-type") == "text/event-stream")
            #expect(stream.header("x-accel-buffering") == "no")
            let events = stream.text.components(separatedBy: "\n\n")
            let state = try #require(events.first { $0.hasPrefix("event: state\ndata: ") })
            let live = try ResultJSON.value(LiveState.self, from: String(state.dropFirst(19)))
            #expect(live.isOver)
            #expect(live.values["suppressed.count"] == "10")
            #expect(events.contains("event: end\ndata: "))
            let asked = try await scene.page("/runs/\(run.id)/state", as: .viewer)
            #expect(try asked.result(LiveState.self) == live)
            let tag = try #require(asked.header("etag"))
            let same = try await scene.page("/runs/\(run.id)/state", as: .viewer, headers: ["If-None-Match": tag])
            #expect(same.status == 304)
        }
    }

    @Test func `a script in a campaign's name is text`() async throws {
        try await WebScene.with { scene in
            var definition = try scene.sending.definition()
            definition.campaign.name = "<script>alert(1)</script>"
            let run = try await scene.sending.start(definition, occurrence: "\"><img src=x onerror=alert(1)>")
            for path in ["/", "/runs/\(run.id)"] {
                let page = try await scene.page(path, as: .viewer)
                #expect(page.status == 200)
                #expect(!page.text.contains("<script>alert"))
                #expect(!page.text.contains("<img"))
            }
        }
    }

    @Test func `each template names what its model has`() throws {
        let texts = PageTemplate.texts
        #expect(texts.values.allSatisfy { !$0.contains("style=") && !$0.contains("onclick") })
    }

    @Test func `scripts and stylesheet are small`() {
        let scripts: [Asset] = [.script, .editor, .composer, .segments]
        let bytes = scripts.map(\.text.utf8.count).reduce(0, +)
        #expect(bytes < 40_000)
        #expect(Asset.style.text.utf8.count < 30_000)
    }
}
