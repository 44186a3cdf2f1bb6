import Campaigns
import Daemon
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// Plans that wait for signatures, by API and by page.
@Suite(.timeLimit(.minutes(10)))
struct ApprovalPagesTests {
    private static let run = #"{"occurrence": "e-1", "variables": {"title": "The Reef"}}"#

    func withScene(
        people: [String: [String]] = [:], _ body: (WebScene) async throws -> Void
    ) async throws {
        try await WebScene.with { configuration in
            configuration.http.editing = true
            var rules = ApprovalRules(rules: [.init(above: 3, needs: 1)], people: ConfiguredPeople(people))
            rules.files = ApprovalRules.Files(campaigns: configuration.campaigns, templates: configuration.templates)
            configuration.approvals = rules
        } _: { scene in
            try await scene.addCampaign()
            try await body(scene)
        }
    }

    func start(_ scene: WebScene, as role: AccessRole = .sender) async throws -> WebScene.Answer {
        try await scene.api("POST", "/campaigns/new-podcast/runs", as: role, body: Self.run)
    }

    func body(_ plan: ApprovalResult) -> String { #"{"reason": "fine", "plan": "\#(plan.plan)"}"# }

    func waiting(_ scene: WebScene) async throws -> ApprovalResult {
        #expect(try await start(scene).status == 409)
        let answer = try await scene.api("GET", "/approvals", as: .viewer)
        return try #require(try answer.result(ListPage<ApprovalResult>.self).items.first)
    }

    @Test func `a plan is asked for, signed by another, and sent, each by its button`() async throws {
        try await withScene { scene in
            let planned = try await scene.page(
                "/campaigns/new-podcast/plan", as: .sender, form: ["v.title": "The Reef"])
            let plan = try #require(planned.header("location"))
            let first = try await scene.page(plan, as: .sender)
            #expect(first.text.contains("needs approval") && first.text.contains("Ask for approval"))
            #expect(!first.text.contains("/start\""))
            #expect(try await scene.page("\(plan)/ask", as: .viewer, form: [:]).status == 403)
            #expect(try await scene.page("\(plan)/ask", as: .sender, form: [:]).header("location") == plan)
            let waiting = try await scene.page(plan, as: .sender)
            #expect(waiting.text.contains("awaiting approval, 0 of 1 signature"))
            let address = try #require(waiting.text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)).1
            let approval = try await scene.page(String(address), as: .approver)
            let shown = try #require(approval.text.firstMatch(of: #/name="plan" value="([^"]+)"/#)).1
            let signed = try await scene.page("\(address)/approve", as: .approver, form: ["plan": String(shown)])
            #expect(signed.status == 303)
            let ready = try await scene.page(plan, as: .sender)
            #expect(ready.text.contains("approved, 1 of 1 signature") && ready.text.contains("/start\""))
            // The one who signed finds the way to it, too.
            let open = try await scene.page(String(address), as: .approver)
            #expect(open.text.contains("href=\"\(plan)\""))
            let started = try await scene.page("\(plan)/start", as: .sender, form: [:])
            #expect(started.header("location") == "/runs/1", "\(started.text)")
            #expect(try await scene.page(plan, as: .sender).text.contains("sent as run 1"))
            // The one who made a plan may not sign it, whoever asks.
            let own = try await scene.page(
                "/campaigns/new-podcast/plan", as: .admin, form: ["v.title": "The Wreck"])
            let mine = try #require(own.header("location"))
            #expect(try await scene.page("\(mine)/start", as: .sender, form: [:]).status == 409)
            #expect(try await scene.page("\(mine)/ask", as: .sender, form: [:]).status == 303)
            let link = try #require(
                try await scene.page(mine, as: .sender).text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)
            ).1
            let form = try #require(
                try await scene.page(String(link), as: .approver).text.firstMatch(of: #/name="plan" value="([^"]+)"/#)
            ).1
            let offered = try await scene.page(String(link), as: .admin)
            #expect(offered.text.contains("another person must sign it") && !offered.text.contains("/approve\""))
            let refused = try await scene.page("\(link)/approve", as: .admin, form: ["plan": String(form)])
            #expect(refused.status == 409 && refused.text.contains("cannot approve it; another person must"))
            #expect(try await scene.page("\(link)/reject", as: .approver, form: [:]).status == 303)
            let rejected = try await scene.page(mine, as: .sender)
            #expect(rejected.text.contains("Rejected by") && rejected.text.contains("Ask for approval"))
            #expect(try await scene.page("\(mine)/ask", as: .sender, form: [:]).status == 303)
            #expect(try await scene.page(mine, as: .sender).text.contains("awaiting approval"))
            // A plan whose files have changed says so, and cannot be asked for.
            try scene.folder.write(
                WebScene.templateText.replacing("is out", with: "is here"), to: "templates/new-podcast.yaml")
            let outdated = try await scene.page(mine, as: .sender)
            #expect(outdated.text.contains("outdated") && !outdated.text.contains("Ask for approval"))
            try scene.folder.write(WebScene.templateText, to: "templates/new-podcast.yaml")
            // A plan of the same content needs signatures of its own, and says so.
            let again = try await scene.page(
                "/campaigns/new-podcast/plan", as: .sender, form: ["v.title": "The Reef"])
            let page = try await scene.page(try #require(again.header("location")), as: .sender)
            #expect(
                page.text.contains("needs approval") && page.text.contains("already sent the same content") == false)
        }
    }

    @Test func `an author plans and asks, another signs, and a sender alone starts`() async throws {
        try await withScene { scene in
            let plan = try await scene.planned(["v.title": "The Reef"], as: .author)
            #expect(plan.text.contains("Ask for approval") && !plan.text.contains("/start\""))
            let asked = try await scene.page("\(plan.address)/ask", as: .author, form: [:])
            #expect(asked.header("location") == plan.address, "\(asked.text)")
            let waiting = try await scene.page(plan.address, as: .author)
            let approval = String(try #require(waiting.text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)).1)
            let shown = try await scene.page(approval, as: .approver)
            let form = ["plan": try #require(WebScene.field("plan", in: shown.text))]
            for role in [AccessRole.author, .sender] {
                #expect(try await scene.page("\(approval)/approve", as: role, form: form).status == 403)
            }
            #expect(try await scene.page("\(approval)/approve", as: .approver, form: form).status == 303)
            let ready = try await scene.page(plan.address, as: .author)
            #expect(ready.text.contains("a sender may send it") && !ready.text.contains("/start\""))
            #expect(try await scene.page("\(plan.address)/start", as: .author, form: [:]).status == 403)
            #expect(try await scene.page(plan.address, as: .sender).text.contains("/start\""))
            #expect(try await scene.page("\(plan.address)/start", as: .sender, form: [:]).status == 303)
        }
    }

    @Test func `a plan of the schedule is asked for and signed ahead, and starts at its time by itself`() async throws {
        try await withScene { scene in
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            let plan = try await scene.planned([:], as: .author, of: "/campaigns/morning")
            #expect(
                plan.text.contains("given earlier, it starts on schedule.") && plan.text.contains("Ask for approval"))
            #expect(try await scene.page("\(plan.address)/ask", as: .author, form: [:]).status == 303)
            let waiting = try await scene.page(plan.address, as: .author)
            #expect(waiting.text.contains("awaiting approval, 0 of 1 signature"))
            let approval = String(try #require(waiting.text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)).1)
            let shown = try await scene.page(approval, as: .approver)
            let form = ["plan": try #require(WebScene.field("plan", in: shown.text))]
            #expect(try await scene.page("\(approval)/approve", as: .approver, form: form).status == 303)
            let ready = try await scene.page(plan.address, as: .sender)
            #expect(ready.text.contains("it starts automatically on schedule") && !ready.text.contains("/start\""))

            let saved = try #require(try await scene.store.savedPlan(1))
            var catalogue = CampaignCatalogue()
            let folders = scene.webConsole.cases.configuration()
            catalogue.refresh(folders)
            let campaign = try #require(catalogue.ready.first { $0.campaign.name == "morning" })
            let occurrence = try #require(campaign.timetable?.occurrence(named: saved.occurrence))
            let due = DueRuns(store: scene.store, actor: "daemon", approvals: folders.approvals)
            let made = try await due.make(
                [Agenda.Due(campaign: campaign, occurrence: occurrence)], now: occurrence.startsAt)
            let run = try #require(made.first?.made.run, "\(made)")
            #expect(run.occurrence == saved.occurrence && run.state != .failed)
            #expect(try await scene.page(plan.address, as: .viewer).text.contains("sent as run \(run.id)"))
            #expect(try await scene.store.approval(.run(run.id))?.request.state == .used)
        }
    }

    @Test func `a start waits for a signature, which the API takes from whoever may give it`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            #expect(plan.missing == 1 && plan.reach == 4 && plan.authors.contains("token:sender"))
            let path = "/approvals/\(plan.digest)"
            let detail = try await scene.api("GET", path, as: .viewer).result(ApprovalDetailResult.self)
            let texts = detail.facts.filter { $0.name.hasPrefix("text") }.compactMap(\.now)
            #expect(texts.contains("The Reef is out.") && texts.contains("Neu bei WenderCast"))
            let payloads = detail.facts.filter { $0.name.hasPrefix("payload") }.compactMap(\.now)
            #expect(payloads.count { $0.contains("\"aps\"") && $0.contains("WenderCast") } == payloads.count)
            #expect(payloads.count > 1 && detail.facts.contains { $0.name == "apns-collapse-id" })
            #expect(try await scene.api("POST", "\(path)/approve", as: .sender).status == 403)
            let signed = try await scene.api("POST", "\(path)/approve", as: .approver, body: body(plan))
            #expect(try signed.result(ApprovalResult.self).missing == 0)
            #expect(try await start(scene).status == 202)
            #expect(try await scene.api("POST", "\(path)/approve", as: .approver).status == 404)
        }
    }

    @Test func `a token that is named by its id is its person's, as by its name`() async throws {
        let order = AccessRole.allCases
        func id(_ role: AccessRole) throws -> String { "token:#\(try #require(order.firstIndex(of: role)) + 1)" }
        let people = ["anna": [try id(.sender), "token:admin", "token:anna-mac"], "ben": [try id(.approver)]]
        try await withScene(people: people) { scene in
            let plan = try await waiting(scene)
            #expect(plan.askedBy == "anna" && plan.authors.contains("anna"))
            let path = "/approvals/\(plan.digest)/approve"
            let own = try await scene.api("POST", path, as: .admin, body: body(plan))
            #expect(own.status == 409 && own.problem?.detail.contains("anna worked on") == true, "\(own.text)")
            let signed = try await scene.api("POST", path, as: .approver, body: body(plan))
            let result = try signed.result(ApprovalResult.self)
            #expect(result.missing == 0 && result.signatures.map(\.person) == ["ben"])
            // A name that is promised to a person is no admin's to give.
            let promised = #"{"name": "anna-mac", "role": "approver"}"#
            let refused = try await scene.api("POST", "/tokens", body: promised)
            #expect(refused.status == 409, "\(refused.text)")
            #expect(refused.problem?.detail.contains("assigns that name to anna") == true)
            let form = ["name": "anna-mac", "role": "approver", "topic": "", "expires": ""]
            #expect(try await scene.page("/tokens", form: form).status == 409)
            let known = try await scene.api("GET", "/tokens")
            #expect(!known.text.contains("anna-mac"))
        }
    }

    @Test func `a signature does not stand for other members of a segment`() async throws {
        try await withScene { scene in
            func fill(_ members: [String]) async throws {
                let work = try await scene.store.importSegment("vip", mode: .replace, topic: nil)
                try await work.append(members.map { .installation($0) })
                _ = try await work.commit(now: scene.sending.clock.now)
            }
            try await fill((0...3).map { "install-\($0)" })
            let text = try String(contentsOfFile: scene.folder.file("campaigns/new-podcast.yaml"), encoding: .utf8)
            let audience = /(?m)^audience:.*$/
            let lines = text.contains(audience) ? text.replacing(audience, with: "") : text
            try scene.folder.write(lines + "\naudience: 'segment(\"vip\")'\n", to: "campaigns/new-podcast.yaml")
            let plan = try await waiting(scene)
            let path = "/approvals/\(plan.digest)"
            let detail = try await scene.api("GET", path, as: .viewer).result(ApprovalDetailResult.self)
            let fact = try #require(detail.facts.first { $0.name == "segment vip" }?.now)
            #expect(fact.contains(/^4 members, [0-9a-f]{12}$/))
            let signed = try await scene.api("POST", "\(path)/approve", as: .approver, body: body(plan))
            #expect(try signed.result(ApprovalResult.self).missing == 0)
            // As many others.
            try await scene.sending.addDevices(20..<24)
            try await fill((20...23).map { "install-\($0)" })
            let held = Self.run.replacing("}}", with: "}, \"plan\": \"\(plan.plan)\"}")
            let refused = try await scene.api("POST", "/campaigns/new-podcast/runs", as: .sender, body: held)
            #expect(refused.status == 409)
            #expect(try refused.result(Problem.self).detail.contains("a segment that the audience names"))
            #expect(try await start(scene).status == 409)
            #expect(try await scene.store.runs(limit: 9).isEmpty)
            // What is signed is what the page shows: not a request that was made when others were in the segment.
            let waiting = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
            let next = try #require(waiting.items.first { $0.digest != plan.digest })
            try await fill((0...3).map { "install-\($0)" })
            let stale = try await scene.api(
                "POST", "/approvals/\(next.digest)/approve", as: .approver, body: body(next))
            #expect(stale.status == 409)
            #expect(try stale.result(Problem.self).detail.contains("has changed since it was requested"))
            // The very members that were signed for may go.
            try await fill((0...3).map { "install-\($0)" })
            #expect(try await start(scene).status == 202)
        }
    }

    @Test func `a plan's name of an earlier version says to look again`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let old = "p1-0a1b2c3d-0a1b2c3d-0a1b2c3d-4"
            for path in ["/approvals/\(old)/approve", "/approvals/\(plan.digest)/approve"] {
                let answer = try await scene.api("POST", path, as: .approver, body: #"{"plan": "\#(old)"}"#)
                #expect(answer.status == 422)
                #expect(try answer.result(Problem.self).detail.contains("display the plan again"))
            }
            let held = Self.run.replacing("}}", with: "}, \"plan\": \"\(old)\"}")
            let start = try await scene.api("POST", "/campaigns/new-podcast/runs", as: .sender, body: held)
            #expect(start.status == 422)
        }
    }

    @Test func `whoever wrote a file by a page or the API cannot approve of it`() async throws {
        try await withScene { scene in
            let path = "/templates/new-podcast"
            let before = try await scene.api("GET", path, as: .admin)
            let text = WebScene.templateText.replacing("is out", with: "is here")
            let written = try await scene.api(
                "PUT", path, as: .admin, body: text,
                headers: ["If-Match": before.header("etag") ?? "", "Content-Type": "application/yaml"])
            #expect(written.status == 200, "\(written.text)")
            let plan = try await waiting(scene)
            #expect(plan.authors.contains("token:admin"))
            let own = try await scene.api("POST", "/approvals/\(plan.plan)/approve", as: .admin)
            #expect(own.status == 409 && own.problem?.detail.contains("worked on") == true)
            #expect(try await scene.api("POST", "/approvals/\(plan.plan)/approve", as: .approver).status == 200)
        }
    }

    @Test func `nobody signs for a number of devices that they were not shown`() async throws {
        try await withScene { scene in
            let shown = try await waiting(scene)
            let path = "/approvals/\(shown.digest)"
            #expect(try await scene.api("POST", "\(path)/approve", as: .approver).status == 422)
            try await scene.sending.addDevices(50..<53)
            let counted = try await waiting(scene)
            #expect(counted.digest == shown.digest && counted.reach == 7)
            for (path, body) in [(path, body(shown)), ("/approvals/\(shown.plan)", "{}")] {
                let refused = try await scene.api("POST", "\(path)/approve", as: .approver, body: body)
                let words = refused.problem?.detail
                #expect(refused.status == 409)
                #expect(words?.contains("would reach 7 now; display it") == true, "\(words ?? "")")
            }
            let page = try await scene.page("\(path)/approve", as: .approver, form: ["plan": shown.plan])
            #expect(page.status == 409 && page.text.contains(counted.plan))
            #expect(page.text.contains("would reach 7 now"))
            #expect(try await waiting(scene).signatures.isEmpty)
            let offered = try await scene.page(path, as: .approver)
            #expect(offered.text.contains("name=\"plan\" value=\"\(counted.plan)\""))
            let signed = try await scene.page("\(path)/approve", as: .approver, form: ["plan": counted.plan])
            #expect(signed.status == 303)
            #expect(try await start(scene).status == 202)
        }
    }

    @Test func `the page shows what is signed beside the last run, and takes a word and its reason`() async throws {
        try await withScene { scene in
            let first = try await waiting(scene)
            let list = try await scene.page("/approvals", as: .viewer)
            #expect(list.text.contains("awaiting approval, 0 of 1") && list.text.contains(first.digest))
            #expect(list.text.contains("<h2>Open</h2>") && !list.text.contains("<h2>Decided</h2>"))
            let seen = try await scene.page("/approvals/\(first.digest)", as: .viewer)
            #expect(seen.text.contains("The Reef is out.") && !seen.text.contains("/approve\""))
            let offered = try await scene.page("/approvals/\(first.digest)", as: .approver)
            #expect(offered.text.contains("Approve: may be sent to 4 devices"))
            #expect(offered.text.contains("PRODUCTION: 4 devices"))
            let own = try await scene.page("/approvals/\(first.digest)/reject", as: .viewer, form: ["reason": "x"])
            #expect(own.status == 403)
            let rejected = try await scene.page(
                "/approvals/\(first.digest)/reject", as: .approver, form: ["reason": "wrong <link>"])
            #expect(rejected.status == 303)
            let refused = try await start(scene)
            #expect(refused.status == 409 && refused.problem?.detail.contains("wrong <link>") == true)
            let past = try await scene.page("/approvals", as: .viewer)
            #expect(past.text.contains("Decided") && past.text.contains("wrong &lt;link&gt;"))
            let address = try #require(past.text.firstMatch(of: #/href="(\/approvals\/[0-9]+)"/#)).1
            for path in [String(address), try #require(rejected.header("location")), "/approvals/\(first.digest)"] {
                let read = try await scene.page(path, as: .approver)
                #expect(read.status == 200 && read.text.contains("wrong &lt;link&gt;"), "\(path)")
                #expect(read.text.contains("The Reef is out.") && !read.text.contains("/reject\""), "\(path)")
            }
            #expect(try await scene.page("/approvals/99", as: .viewer).status == 404)
        }
    }

    @Test func `Enter in the reason of a rejection rejects: each answer is a form with one button`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let page = try await scene.page("/approvals/\(plan.digest)", as: .approver).text
            for (word, other) in [("approve", "reject"), ("reject", "approve")] {
                let address = "action=\"/approvals/\(plan.digest)/\(word)\""
                let start = try #require(page.firstRange(of: address))
                let end = try #require(page[start.upperBound...].firstRange(of: "</form>"))
                let form = page[start.upperBound..<end.lowerBound]
                #expect(form.matches(of: /<button/).count == 1 && form.matches(of: /name="reason"/).count == 1)
                #expect(!form.contains("formaction") && !form.contains("/\(other)"))
            }
        }
    }

    @Test func `a rejected plan is asked for again by a button, as long as the files say the same`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let path = "/approvals/\(plan.digest)"
            let no = ["reason": "later"]
            #expect(try await scene.page("\(path)/reject", as: .approver, form: no).status == 303)
            let list = try await scene.page("/approvals", as: .sender)
            #expect(list.text.contains("action=\"\(path)/ask\""))
            #expect(!(try await scene.page("/approvals", as: .approver)).text.contains("/ask\""))
            #expect(try await scene.page("\(path)/ask", as: .approver, form: [:]).status == 403)
            let asked = try await scene.page("\(path)/ask", as: .sender, form: [:])
            #expect(asked.status == 303 && asked.header("location") == path, "\(asked.text)")
            #expect(!(try await scene.page("/approvals", as: .sender)).text.contains("/ask\""))
            let again = try await scene.page(path, as: .approver)
            #expect(again.text.contains("Approve: may be sent to 4 devices"))
            #expect(try await scene.page("\(path)/reject", as: .approver, form: no).status == 303)
            let words = WebScene.templateText.replacing("is out", with: "is here")
            try scene.folder.write(words, to: "templates/new-podcast.yaml")
            let changed = try await scene.page("\(path)/ask", as: .sender, form: [:])
            #expect(changed.status == 409 && changed.text.contains("has changed since the plan was rejected"))
        }
    }

    @Test func `whoever is confined to another app sees none of it`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let other = try await scene.bearer(.approver, topic: "com.example.other")
            let list = try await scene.api("GET", "/approvals", headers: other)
            #expect(try list.result(ListPage<ApprovalResult>.self).items.isEmpty)
            let signed = try await scene.api("POST", "/approvals/\(plan.digest)/approve", headers: other)
            #expect(signed.status == 404)
        }
    }
}
