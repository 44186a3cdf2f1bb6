import Campaigns
import Foundation
import Model
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// The page of one start of a schedule, where a person gives it its values.
@Suite(.timeLimit(.minutes(10)))
struct NextStartTests {
    private static let next = "/campaigns/morning/next"

    private static func with(_ body: (WebScene) async throws -> Void) async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let empty = WebScene.scheduledText.replacing("title: Morning", with: "title: \"\"")
            try scene.folder.write(empty, to: "campaigns/morning.yaml")
            try await body(scene)
        }
    }

    private func values(_ scene: WebScene) -> any OccurrenceValueLog { scene.store }

    /// The keys of the next starts.
    private static func starts(_ scene: WebScene) async throws -> [String] {
        let campaign = try await scene.api("GET", "/campaigns/morning").result(CampaignDetailResult.self).campaign
        return campaign.nextOccurrences.map(\.occurrence)
    }

    @Test func `the calendar, Health and the campaign lead to a start without values, and no longer once it has them`()
        async throws
    {
        try await Self.with { scene in
            let first = try await Self.starts(scene)[0]
            let address = "\(Self.next)?occurrence=\(first.inAddress)"
            for path in ["/calendar", "/health", "/campaigns/morning"] {
                let page = try await scene.page(path, as: .sender)
                #expect(page.text.contains("href=\"\(address)\""), "\(path)")
            }
            let form = try await scene.page(address, as: .sender)
            #expect(form.status == 200 && form.text.contains("will fail: no value for title"))
            #expect(form.text.contains("name=\"v.title\"") && form.text.contains("Save the values"))
            #expect(form.text.contains("WenderCast</textarea>"))

            let typed = ["occurrence": first, "v.title": "The <Reef> & \"more\"", "v.show": "WenderCast"]
            let preview = try await scene.page("/campaigns/morning/check", as: .author, form: typed)
            #expect(preview.status == 200 && preview.text.contains("The &lt;Reef&gt; &amp; &quot;more&quot; is out."))
            #expect(try await values(scene).values(startingFrom: scene.sending.clock.now).isEmpty)
            let saved = try await scene.page(Self.next, as: .sender, form: typed)
            #expect(saved.status == 303 && saved.header("location") == address + "&done=saved")
            let after = try await scene.page(try #require(saved.header("location")), as: .sender)
            #expect(after.text.contains("The start sends these values.") && after.text.contains("its own values"))
            #expect(after.text.contains("Remove the values"))

            let calendar = try await scene.page("/calendar", as: .sender).text
            #expect(calendar.contains("The &lt;Reef&gt; &amp; &quot;more&quot;</a>"))
            #expect(!(try await scene.page("/health").text.contains("will fail")))
            let campaign = try await scene.page("/campaigns/morning").text
            #expect(campaign.contains("has its values; the one after,") && campaign.contains("1 warning"))
            let list = try await scene.api("GET", "/schedule").result(ScheduleResult.self)
            let own = try #require(list.occurrences.first { $0.occurrence == first })
            #expect(own.missingValues == nil && own.values?["title"] == "The <Reef> & \"more\"")

            let removed = try await scene.page(Self.next, as: .sender, form: ["occurrence": first, "do": "remove"])
            #expect(removed.header("location") == address + "&done=removed")
            #expect(try await scene.page(address).text.contains("will fail: no value for title"))
            let audit = try await scene.page("/audit").text
            #expect(audit.contains("values_given") && audit.contains("values_removed"))
        }
    }

    @Test func `only a sender gives values, and a refused form keeps what was typed`() async throws {
        try await Self.with { scene in
            let first = try await Self.starts(scene)[0]
            let address = "\(Self.next)?occurrence=\(first.inAddress)"
            let form = ["occurrence": first, "v.title": "Typed", "v.show": "Show"]
            #expect(try await scene.page(Self.next, as: .author, form: form).status == 403)
            let author = try await scene.page(address, as: .author).text
            #expect(!author.contains("Save the values") && author.contains("only senders can give a start its values"))
            #expect(author.contains("Plan this start"))
            let viewer = try await scene.page(address, as: .viewer).text
            #expect(viewer.contains("readonly") && !viewer.contains("Plan this start"))
            let empty = try await scene.page(
                Self.next, as: .sender, form: form.merging(["v.title": " "]) { $1 })
            #expect(empty.status == 422 && empty.text.contains("also give a value for title"))
            #expect(empty.text.contains("Show</textarea>"))
            let unknown = try await scene.page(
                Self.next, as: .sender, form: form.merging(["occurrence": "2020-01-01T00:00"]) { $1 })
            #expect(unknown.status == 404, "\(unknown.status)")
            // Without a schedule there is no start.
            #expect(try await scene.page("/campaigns/new-podcast/next").status == 404)
            #expect(try await scene.page("/campaigns/nowhere/next?occurrence=x").status == 404)
        }
    }

    @Test func `an author plans a start with values, and a sender gives the start the values of the plan`()
        async throws
    {
        try await Self.with { scene in
            let first = try await Self.starts(scene)[0]
            let plan = try await scene.planned(
                ["occurrence": first, "v.title": "The Reef", "v.show": "WenderCast"], as: .author,
                of: "/campaigns/morning")
            #expect(plan.text.contains("does not have these values yet. A sender can give it"), "\(plan.text)")
            #expect(!plan.text.contains("\(plan.address)/values"))
            #expect(try await scene.page("\(plan.address)/values", as: .author, form: [:]).status == 403)
            let page = try await scene.page(plan.address, as: .sender).text
            #expect(page.contains("Give the start these values"))
            let given = try await scene.page("\(plan.address)/values", as: .sender, form: [:])
            #expect(given.status == 303)
            let after = try await scene.page(plan.address, as: .sender).text
            #expect(after.contains("It then starts automatically.") && !after.contains("Give the start"))
            let values = try await values(scene).values(campaign: "morning", occurrence: first)
            #expect(values?.variables == ["title": "The Reef"])
        }
    }

    @Test func `a plan gives its values to no campaign that belongs to another app by now`() async throws {
        try await Self.with { scene in
            let cases = scene.webConsole.cases
            let first = try await Self.starts(scene)[0]
            let form = ["occurrence": first, "v.title": "The Reef", "v.show": "WenderCast"]
            let plan = try await scene.planned(form, as: .author, of: "/campaigns/morning")
            let made = try await cases.access.create(
                name: "sam", role: .sender, topic: PipelineScene.topic, expiresIn: nil, by: "test", now: cases.now)
            let session = try await cases.access.signIn(made.token, by: "test", now: cases.now)
            let own = ["Cookie": "fanfare=\(session)"]
            let text = try #require(scene.text(of: "campaigns/morning.yaml"))
            let other = text.replacing("topic: \(PipelineScene.topic)", with: "topic: com.example.other")
            try scene.folder.write(other, to: "campaigns/morning.yaml")
            for verb in ["values", "ask"] {
                #expect(try await scene.page("\(plan.address)/\(verb)", form: [:], headers: own).status == 404)
            }
            #expect(try await values(scene).values(campaign: "morning", occurrence: first) == nil)
            try scene.folder.write(text, to: "campaigns/morning.yaml")
            #expect(try await scene.page("\(plan.address)/values", form: [:], headers: own).status == 303)
        }
    }

    @Test func `a plan of a start has its values, by the API too, and the start sends what was planned`() async throws {
        try await Self.with { scene in
            let first = try await Self.starts(scene)[0]
            let form = ["occurrence": first, "v.title": "The Reef", "v.show": "Own"]
            #expect(try await scene.page(Self.next, as: .sender, form: form).status == 303)
            func plan(_ body: String) async throws -> PlanResult {
                try await scene.api("POST", "/campaigns/morning/plan", as: .author, body: body).result()
            }
            for body in ["{}", #"{"occurrence": "\#(first)"}"#] {
                let planned = try await plan(body)
                #expect(planned.unsetVariables.isEmpty && planned.plan != nil, "\(planned)")
                #expect(try ResultJSON.text(planned).contains("The Reef"))
            }
            #expect(try await plan(#"{"now": true}"#).unsetVariables == ["title"])
            // A value that the caller gives counts, also if it is the default of the file.
            let own = #""occurrence": "\#(first)", "variables": {"show": "WenderCast"}"#
            let planned = try await plan("{\(own)}")
            let token = try #require(planned.plan)
            let startsAt = try #require(try await values(scene).values(campaign: "morning", occurrence: first)).startsAt
            scene.sending.clock.advance(by: startsAt - scene.sending.clock.now)
            let started = try await scene.api(
                "POST", "/campaigns/morning/runs", as: .sender, body: "{\(own), \"plan\": \"\(token)\"}")
            #expect(started.status == 202, "\(started.text)")
            let runs: any RunLog = scene.store
            let run = try #require(try await runs.run(campaign: "morning", occurrence: first))
            #expect(run.definition.variables == ["title": "The Reef", "show": "WenderCast"])
        }
    }
}
