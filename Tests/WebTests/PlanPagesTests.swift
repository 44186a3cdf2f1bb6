import Foundation
import Model
import Store
import TestSupport
import Testing

@testable import Web

/// Plans as pages: the same content twice, and what was typed.
@Suite(.timeLimit(.minutes(10)))
struct PlanPagesTests {
    private static let page = "/campaigns/new-podcast"

    @Test func `the same content goes out again only if the sender says so`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            func start(_ title: String, _ form: [String: String] = [:]) async throws -> WebScene.Answer {
                let planned = try await scene.planned(["v.title": title])
                return try await scene.page("\(planned.address)/start", as: .sender, form: form)
            }
            let first = try await scene.planned(["v.title": "The Reef"])
            let second = try await scene.planned(["v.title": "The Reef"])
            #expect(try await scene.page("\(first.address)/start", as: .sender, form: [:]).status == 303)
            // Two plans of the same content have the same name, so the second finds the run of the first.
            #expect(try await scene.page("\(second.address)/start", as: .sender, form: [:]).status == 303)
            let run = try #require(try await scene.store.runs(limit: 9).first)
            #expect(try await scene.store.runs(limit: 9).count == 1)

            let third = try await scene.planned(["v.title": "The Reef"])
            #expect(third.text.contains("Send it again: run \(run.id)"))
            let refused = try await scene.page("\(third.address)/start", as: .sender, form: [:])
            #expect(
                refused.status == 409
                    && refused.text.contains("run \(run.id) (\(run.occurrence)) with the same content"))
            #expect(try await start("The Wreck").status == 303)
            #expect(try await start("The Reef", ["guard.repeat": "1"]).status == 303)
            #expect(try await scene.store.runs(limit: 9).count == 3)
        }
    }

    @Test func `the link that repairs an incomplete plan gives no name in place of a missing value`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let plan = try await scene.planned([:])
            #expect(plan.text.contains("incomplete"))
            let link = String(try #require(plan.text.firstMatch(of: #/href="(\/campaigns\/new-podcast[^"]*)#try"/#)).1)
            let form = try await scene.page(link.replacing("&amp;", with: "&"), as: .sender)
            #expect(
                form.status == 200 && form.text.contains("id=\"v-title\"")
                    && !form.text.contains("&lt;title&gt;</textarea>"))
            #expect(try await scene.planned(["v.title": ""]).text.contains("incomplete"))
        }
    }

    @Test func `what was typed stays through a preview, a test and a save`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let typed = "<textarea id=\"v-title\" name=\"v.title\" rows=\"1\""
            func keeps(_ answer: WebScene.Answer) -> Bool {
                answer.text.contains(typed) && answer.text.contains("\nRiff &amp; Reef</textarea>")
                    && answer.text.contains("name=\"device\" value=\"install-2\"")
            }
            let query = "v.title=Riff+%26+Reef&device=install-2"
            #expect(keeps(try await scene.page("\(Self.page)?\(query)", as: .admin)))
            var form = ["v.title": "Riff & Reef", "device": "install-2"]
            let sent = try await scene.page("\(Self.page)/test-send", as: .admin, form: form)
            #expect(keeps(try await scene.page(try #require(sent.header("location")), as: .admin)))
            let open = try await scene.page("\(Self.page)?view=files", as: .admin)
            form.merge([
                "kind": "campaign", "file": "new-podcast", "etag": try #require(WebScene.field("etag", in: open.text)),
                "text": WebScene.campaignText + "# a remark\n",
            ]) { $1 }
            // A sign-in shows the interrupted form of values there.
            let resumed = try await scene.page(
                "\(Self.page)/check", as: .admin, form: ["v.title": "Riff & Reef", "device": "install-2"])
            #expect(resumed.status == 200 && keeps(resumed))
            let saved = try await scene.page("\(Self.page)/save", as: .admin, form: form)
            #expect(saved.status == 303)
            #expect(keeps(try await scene.page(try #require(saved.header("location")), as: .admin)))
        }
    }
}
