import Campaigns
import Foundation
import Model
import SendingScene
import TestSupport
import Testing

@testable import Web

/// What an approver sees before and after a decision.
extension ApprovalPagesTests {
    @Test func `the page shows phones, and payloads only behind a fold`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let page = try await scene.page("/approvals/\(plan.digest)", as: .approver).text
            #expect(
                page.contains("class=\"phone\"") && page.contains("<p class=\"body\" dir=\"auto\">The Reef is out."))
            let fold = try #require(page.firstRange(of: "<details><summary>Payloads"))
            #expect(!page[..<fold.lowerBound].contains("<th scope=\"row\">payload"))
            #expect(page[fold.upperBound...].contains("<th scope=\"row\">payload"))
        }
    }

    @Test func `an approver sees what would refuse the run, and that the same words were sent before`() async throws {
        try await withScene { scene in
            let text = try String(contentsOfFile: scene.folder.file("campaigns/new-podcast.yaml"), encoding: .utf8)
            let plan = try await waiting(scene)
            let fine = try await scene.page("/approvals/\(plan.digest)", as: .approver)
            #expect(!fine.text.contains("would refuse") && !fine.text.contains("Sent before"))
            _ = try await scene.page("/approvals/\(plan.digest)/approve", as: .approver, form: ["plan": plan.plan])
            #expect(try await start(scene).status == 202)
            // The same words once more, in a campaign whose guard allows fewer devices by now.
            let again = try await scene.planned(["v.title": "The Reef"])
            #expect(try await scene.page("\(again.address)/ask", as: .sender, form: [:]).status == 303)
            let asked = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
            let newer = try #require(asked.items.first).digest
            let warned = try await scene.page("/approvals/\(newer)", as: .approver)
            #expect(warned.text.contains("Sent before: run 1"), "\(warned.text)")
            try scene.folder.write(text + "\nguards: {max_reach: 3}\n", to: "campaigns/new-podcast.yaml")
            let large = try await scene.planned(["v.title": "The Wreck"])
            #expect(try await scene.page("\(large.address)/ask", as: .sender, form: [:]).status == 303)
            let newest = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
            let digest = try #require(newest.items.first).digest
            let refused = try await scene.page("/approvals/\(digest)", as: .approver)
            #expect(refused.text.contains("A guard would refuse the run: the run would reach 4 devices"))
            let detail = try await scene.api("GET", "/approvals/\(digest)", as: .viewer)
            #expect(try detail.result(ApprovalDetailResult.self).refusals?.count == 1)
        }
    }

    @Test func `the buttons go when all signatures are there, and the plan's page sends`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let path = "/approvals/\(plan.digest)"
            let signed = try await scene.page("\(path)/approve", as: .approver, form: ["plan": plan.plan])
            #expect(signed.header("location") == path)
            let page = try await scene.page(path, as: .approver)
            #expect(page.text.contains("It has all signatures") && !page.text.contains("/approve\""))
            #expect(page.text.contains("Reject it after all"))
            #expect(try await start(scene).status == 202)
            let used = try await scene.page(path, as: .approver)
            #expect(used.text.contains("Sent as run 1.") && used.text.contains("href=\"/runs/1\""))
            #expect(!used.text.contains("/reject\""))
            #expect(try await scene.page("/approvals", as: .viewer).text.contains("<a href=\"/runs/1\">Run 1</a>"))
        }
    }

    @Test func `who made a plan cannot sign it, whoever asks for it again`() async throws {
        try await withScene { scene in
            let made = try await scene.planned(["v.title": "The Reef"], as: .approver)
            #expect(try await scene.page("\(made.address)/ask", as: .sender, form: [:]).status == 303)
            func first() async throws -> ApprovalResult {
                let list = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
                return try #require(list.items.first)
            }
            let path = "/approvals/\(try await first().digest)"
            let rejected = try await scene.page("\(path)/reject", as: .admin, form: ["reason": "typo"])
            #expect(rejected.status == 303, "\(rejected.text)")
            #expect(try await scene.page("\(path)/ask", as: .sender, form: [:]).status == 303)
            let plan = try await first().plan
            let own = try await scene.page("\(path)/approve", as: .approver, form: ["plan": plan])
            #expect(own.status == 409 && own.text.contains("cannot approve it"), "\(own.text)")
        }
    }

    @Test func `the one who asked withdraws the request, and nobody else`() async throws {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let path = "/approvals/\(plan.digest)"
            #expect(try await scene.page(path, as: .sender).text.contains("\(path)/withdraw\""))
            for role in [AccessRole.author, .approver, .admin] {
                #expect(!(try await scene.page(path, as: role)).text.contains("/withdraw\""))
            }
            let other = try await scene.page("\(path)/withdraw", as: .author, form: [:])
            #expect(other.status == 409 && other.text.contains("can withdraw it"))
            #expect(try await scene.page("\(path)/withdraw", as: .approver, form: [:]).status == 403)
            let done = try await scene.page("\(path)/withdraw", as: .sender, form: [:])
            let ended = try await scene.page(try #require(done.header("location")), as: .sender)
            #expect(ended.text.contains("Withdrawn by sender, who") && !ended.text.contains("/withdraw\""))
            #expect(try await scene.page("/audit", as: .admin).text.contains("approval withdrawn"))
            #expect(try await scene.api("POST", "\(path)/approve", as: .approver, body: body(plan)).status == 404)
            // Asked for again, by the API withdrawn again.
            #expect(try await waiting(scene).digest == plan.digest)
            #expect(try await scene.api("POST", "\(path)/withdraw", as: .author).status == 409)
            let gone = try await scene.api("POST", "\(path)/withdraw", as: .sender)
            #expect(try gone.result(ApprovalResult.self).state == "withdrawn")
        }
    }

    @Test func `a note and comments go with the plan, the approval, the run and the audit log`() async throws {
        try await withScene { scene in
            let plan = try await scene.planned(["v.title": "The Reef"])
            #expect(plan.text.contains("name=\"note\""))
            let long = try await scene.page(
                "\(plan.address)/ask", as: .sender, form: ["note": String(repeating: "x", count: 1001)])
            #expect(long.status == 422)
            let form = ["note": "before 9 <please>"]
            #expect(try await scene.page("\(plan.address)/ask", as: .sender, form: form).status == 303)
            let asked = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
            let approval = try #require(asked.items.first)
            let yes = ["plan": approval.plan, "reason": "looks right"]
            #expect(
                try await scene.page("/approvals/\(approval.digest)/approve", as: .approver, form: yes).status == 303)
            for path in [plan.address, "/approvals/\(approval.digest)"] {
                let page = try await scene.page(path, as: .viewer)
                #expect(page.text.contains("before 9 &lt;please&gt;") && page.text.contains("looks right"), "\(path)")
            }
            let started = try await scene.page("\(plan.address)/start", as: .sender, form: [:])
            for path in [try #require(started.header("location")), "/audit", "/approvals/\(approval.number)"] {
                let page = try await scene.page(path, as: .admin)
                #expect(page.text.contains("before 9 &lt;please&gt;") && page.text.contains("looks right"), "\(path)")
            }
        }
    }

    @Test func `signatures that lapse before the start, or files that have changed, are said everywhere`() async throws
    {
        try await withScene { scene in
            let monthly = WebScene.scheduledText.replacing("30 2 * * *", with: "30 2 1 * *")
            try scene.folder.write(monthly, to: "campaigns/morning.yaml")
            let plan = try await scene.planned([:], as: .author, of: "/campaigns/morning")
            #expect(try await scene.page("\(plan.address)/ask", as: .author, form: [:]).status == 303)
            let asked = try await scene.page(plan.address, as: .author)
            let approval = String(try #require(asked.text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)).1)
            let shown = try await scene.page(approval, as: .approver)
            let form = ["plan": try #require(WebScene.field("plan", in: shown.text))]
            #expect(shown.text.contains("Europe/Berlin, 2027-02-01 01:30:00 UTC"))
            #expect(try await scene.page("\(approval)/approve", as: .approver, form: form).status == 303)
            for page in [plan.address, approval] {
                let text = try await scene.page(page, as: .viewer).text
                #expect(text.contains("the signatures lapse at 2027-01-16"), "\(text)")
                #expect(text.contains("before the start at 2027-02-01 01:30:00 UTC: it needs to be signed again"))
                #expect(!text.contains("starts automatically on schedule"))
            }
            for page in ["/approvals", "/plans", approval] {
                let text = try await scene.page(page, as: .viewer).text
                #expect(text.contains("lapses before its start, 1 of 1 signature"), "\(page)")
            }
            try scene.folder.write(
                WebScene.templateText.replacing("is out", with: "is here"), to: "templates/new-podcast.yaml")
            for page in ["/approvals", "/plans", approval, plan.address] {
                let text = try await scene.page(page, as: .viewer).text
                #expect(text.contains("outdated") && !text.contains("It has all signatures"), "\(page): \(text)")
            }
            let list = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
            #expect(list.items.map(\.isOutdated) == [true])
            #expect(list.items.first?.stateSummary == "outdated, 1 of 1 signature")
            try scene.folder.write(WebScene.templateText, to: "templates/new-podcast.yaml")
            let daily = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
            #expect(daily.items.map(\.isOutdated) == [nil])
        }
    }

    @Test(arguments: [false, true])
    func `the author of a waiting text that another author replaced may not sign, unless it was rejected`(
        isRejected: Bool
    ) async throws {
        try await withScene(people: ["anna": ["token:author", "token:approver"]]) { scene in
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            let other = try await scene.confined(to: PipelineScene.topic, as: .author)
            func save(
                _ title: String, over etag: String, headers: [String: String] = [:]
            ) async throws -> String {
                let own = ["If-Match": etag, "Content-Type": "application/yaml"]
                let answer = try await scene.api(
                    "PUT", "/campaigns/morning", as: .author,
                    body: WebScene.scheduledText.replacing("title: Morning", with: "title: \(title)"),
                    headers: own.merging(headers) { $1 })
                #expect(answer.status == 202, "\(answer.text)")
                return try #require(answer.header("etag"))
            }
            let live = try #require(try await scene.api("GET", "/campaigns/morning").header("etag"))
            let first = try await save("Morning all", over: live)
            let changes = scene.webConsole.cases.files
            if isRejected {
                let held = try #require(try await changes.changes().first)
                #expect(try await scene.end(held.id, "reject").status == 200)
            }
            _ = try await save("\"Morning, all\"", over: isRejected ? live : first, headers: other)
            let held = try #require(try await changes.changes().first)
            #expect(try await scene.end(held.id, "release").status == 200)
            let plan = try await scene.planned([:], of: "/campaigns/morning")
            #expect(try await scene.page("\(plan.address)/ask", as: .sender, form: [:]).status == 303)
            let waiting = try await scene.api("GET", "/approvals", as: .viewer)
            let asked = try #require(try waiting.result(ListPage<ApprovalResult>.self).items.first)
            let signed = try await scene.page(
                "/approvals/\(asked.digest)/approve", as: .approver, form: ["plan": asked.plan])
            #expect(signed.status == (isRejected ? 303 : 409), "\(signed.text)")
            #expect(isRejected || signed.text.contains("cannot approve it; another person must"))
        }
    }

    @Test func `a rejected plan is asked for again from the file that defines its campaign, whatever its name`()
        async throws
    {
        try await withScene { scene in
            let plan = try await waiting(scene)
            let path = "/approvals/\(plan.digest)"
            #expect(try await scene.page("\(path)/reject", as: .approver, form: ["reason": "later"]).status == 303)
            let text = try #require(scene.text(of: "campaigns/new-podcast.yaml"))
            try FileManager.default.removeItem(atPath: scene.folder.file("campaigns/new-podcast.yaml"))
            try scene.folder.write(text, to: "campaigns/winter.yaml")
            let asked = try await scene.page("\(path)/ask", as: .sender, form: [:])
            #expect(asked.status == 303 && asked.header("location") == path, "\(asked.text)")
            #expect(try await scene.page("\(path)/reject", as: .approver, form: ["reason": "later"]).status == 303)
            // Another campaign in a file of the old name is another campaign.
            let other = text.replacing("campaign: new-podcast", with: "campaign: other")
            try scene.folder.write(other, to: "campaigns/new-podcast.yaml")
            #expect(try await scene.page("\(path)/ask", as: .sender, form: [:]).status == 303)
        }
    }

    @Test func `a token that is revoked takes its signature with it, and its person signs again with another`()
        async throws
    {
        let people = ["anna": ["token:approver", "token:anna-2"], "sam": ["token:sender"]]
        try await withScene(people: people) { scene in
            let cases = scene.webConsole.cases
            let plan = try await waiting(scene)
            let path = "/approvals/\(plan.digest)"
            let signed = try await scene.api("POST", "\(path)/approve", as: .approver, body: body(plan))
            #expect(try signed.result(ApprovalResult.self).missing == 0, "\(signed.text)")
            let second = try await ManageAccess(store: scene.store).create(
                name: "anna-2", role: .approver, topic: nil, expiresIn: nil, by: "test", now: cases.now)
            let again = ["Authorization": "Bearer \(second.secret)"]
            #expect(try await scene.api("POST", "\(path)/approve", body: body(plan), headers: again).status == 409)
            _ = try await cases.access.revoke("approver", by: "test", now: cases.now)
            let page = try await scene.page(path, as: .viewer).text
            #expect(page.contains("its access token was revoked") && page.contains("0 of 1 signature"), "\(page)")
            #expect(try await start(scene).status == 409)
            let anew = try await scene.api("POST", "\(path)/approve", body: body(plan), headers: again)
            #expect(try anew.result(ApprovalResult.self).missing == 0, "\(anew.text)")
            #expect(try await start(scene).status == 202)
        }
    }

    @Test func `a second person's note is refused, and does not stand under the name of the first`() async throws {
        try await withScene { scene in
            let plan = try await scene.planned(["v.title": "The Reef"])
            #expect(try await scene.page("\(plan.address)/ask", as: .sender, form: ["note": "before 9"]).status == 303)
            let other = try await scene.page("\(plan.address)/ask", as: .author, form: ["note": "carl says yes"])
            #expect(other.status == 409 && other.text.contains("would stand under that name"), "\(other.text)")
            #expect(try await scene.page("\(plan.address)/ask", as: .author, form: [:]).status == 303)
            let asked = try await scene.api("GET", "/approvals", as: .viewer).result(ListPage<ApprovalResult>.self)
            #expect(asked.items.map(\.note) == ["before 9"])
        }
    }
}
