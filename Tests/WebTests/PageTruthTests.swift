import Campaigns
import Foundation
import Model
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// What pages say about a send agrees with what the send does.
@Suite(.timeLimit(.minutes(10)))
struct PageTruthTests {
    private static let page = "/campaigns/new-podcast"
    private static let nightly =
        WebScene.campaignText.replacing("title: \"\"", with: "title: News").replacing("4h", with: "1h") + """
            schedule:
              cron: "0 0 * * *"
              zone: recipient
              unknown_zone: Europe/Berlin
              quiet_hours: {from: "22:00", to: "07:00"}

            """

    private static func with(_ body: (WebScene) async throws -> Void) async throws {
        try await WebScene.with(WebScene.editingOfTwoApps) { scene in
            try await scene.addCampaign()
            try await body(scene)
        }
    }

    @Test func `devices that quiet hours leave out are counted nowhere as reached`() async throws {
        try await Self.with { scene in
            try scene.folder.write(Self.nightly, to: "campaigns/new-podcast.yaml")
            let count = try await scene.page("\(Self.page)/compose/count", form: ["c.who": "everyone"]).text
            #expect(count.contains("<strong>0</strong> of 4 selected devices would get the push at its next time"))
            #expect(count.contains("not sent to: quiet hours 4") && count.contains("No device would get the push."))
            // The form's own fields count before they are saved.
            let later = try await scene.page(
                "\(Self.page)/compose/count", form: ["c.who": "everyone", "c.expires_after": "12h"]
            ).text
            #expect(
                later.contains("<strong>4</strong> of 4") && later.contains("after their quiet hours 4"), "\(later)")
            let plan = try await scene.planned([:]).text
            #expect(plan.contains("it reaches 0 devices") && plan.contains("No device: all 4 devices"), "\(plan)")
            #expect(plan.contains("4 not at all, because of their quiet hours"))
        }
    }

    @Test func `a form with errors still counts its audience`() async throws {
        try await Self.with { scene in
            let form = ["c.who": "choose", "c.who.locale.de": "on", "c.guards.max_reach": "many"]
            let count = try await scene.page("\(Self.page)/compose/count", form: form).text
            #expect(count.contains("<strong>2</strong> of 2 selected devices would get the push"), "\(count)")
        }
    }

    @Test func `the test of an outdated plan sends the texts of the plan, and the page says so`() async throws {
        try await Self.with { scene in
            let plan = try await scene.planned(["v.title": "The Reef"])
            try scene.folder.write(
                WebScene.templateText.replacing("is out.", with: "is here."), to: "templates/new-podcast.yaml")
            let outdated = try await scene.page(plan.address, as: .sender).text
            #expect(outdated.contains("The Reef is out.") && outdated.contains("outdated"))
            #expect(outdated.contains("A test sends the texts of this plan"))
            let sent = try await scene.page(
                "\(plan.address)/test-send", as: .admin, form: ["device": "install-1", "to": ""])
            let number = try #require(sent.header("location")?.firstMatch(of: /test=(\d+)/)?.1)
            let run = try #require(try await scene.webConsole.cases.runs.run(Int64(number) ?? 0))
            let texts = try PreviewNotifications.all(run.definition).notifications.map(\.payload)
            #expect(texts.contains { $0.contains("The Reef is out.") }, "\(texts)")
        }
    }

    @Test func `a recall is no correction in words`() async throws {
        try await Self.with { scene in
            try await scene.sending.addDevices(4..<10)
            let definition = try scene.webConsole.cases.files.source("new-podcast").definition(
                with: ["title": "The Reef"], plannedAt: scene.sending.clock.now)
            let run = try await scene.sending.start(definition)
            try await scene.reach(run)
            #expect(try await scene.page("/runs/\(run.id)/recall", as: .sender, form: [:]).status == 303)
            let recall = "/runs/\(run.id + 1)"
            let own = try await scene.page(recall, as: .sender).text
            #expect(
                own.contains("Removes from the screens what <a href=\"/runs/\(run.id)\">run \(run.id)</a> sent."))
            let page = try await scene.page("/runs/\(run.id)", as: .sender).text
            #expect(page.contains("Removed from the screens by <a href=\"\(recall)\">"))
            #expect(!page.contains("Corrected by") && !own.contains("Corrects"))
            let correction = try await scene.page("/runs/\(run.id)/correction", as: .sender).text
            #expect(correction.contains("removed the notification from the screens. A correction shows it again."))
            #expect(!correction.contains("replaces the notification"))
        }
    }

    @Test func `a stage that waits is on the page of approvals, and its button has no stray number`() async throws {
        try await Self.with { scene in
            let run = try await `The choice of a variant`.waiting(scene)
            let approvals = try await scene.page("/approvals", as: .approver).text
            #expect(approvals.contains("<a href=\"/runs/\(run)\">") && approvals.contains("<h2>Stages</h2>"))
            let other = try await scene.page(
                "/approvals", headers: try await scene.confinedVisitor(to: "com.example.other"))
            #expect(other.status == 200 && !other.text.contains("<h2>Stages</h2>"))
            // The menu counts it for those who can approve it, and the API lists it.
            #expect(approvals.contains("class=\"count\">1<span") && !other.text.contains("class=\"count\""))
            let list = try await scene.api("GET", "/approvals", as: .viewer)
                .result(ApprovalOperations.ApprovalPage.self)
            #expect(list.items.isEmpty && list.stages?.map(\.run) == [run])
            let hidden = try await scene.api(
                "GET", "/approvals", headers: try await scene.confined(to: "com.example.other"))
            #expect(hidden.status == 200 && !hidden.text.contains("stages"))
            let sender = try await scene.page("/runs/\(run)", as: .sender).text
            #expect(sender.contains("an approver’s button on"))
            let approver = try await scene.page("/runs/\(run)", as: .approver).text
            #expect(approver.contains("<p>The rest begins as soon as"))
        }
    }

    @Test func `a change that waits for release has its time in the visitor's zone`() async throws {
        try await Self.with { scene in
            let held = try await scene.api(
                "PUT", "/campaigns/morning", as: .author, body: WebScene.scheduledText,
                headers: ["If-None-Match": "*", "Content-Type": "application/yaml"])
            #expect(held.status == 202, "\(held.text)")
            let text = try await scene.page("/calendar", as: .author).text
            #expect(text.contains("waits for release"))
            #expect(text.firstMatch(of: /by author[^<]* at \d{4}-\d\d-\d\dT/) == nil, "\(text)")
        }
    }

    @Test func `times in messages are in the visitor's zone`() throws {
        let berlin = try #require(ViewerZone.named("Europe/Berlin"))
        ViewerZone.$current.withValue(berlin) {
            #expect(
                "passed; holds until 2026-11-29T01:30:00.311Z".onPage == "passed; holds until 2026-11-29 02:30:00 GMT+1"
            )
        }
        #expect("at 2026-11-29T01:30:00Z, Z:T".onPage == "at 2026-11-29 01:30:00 UTC, Z:T")
    }

    @Test func `a country or a time zone that would be lost is refused`() async throws {
        try await Self.with { scene in
            let text = try await scene.page(Self.page).text
            let opened = try #require(WebScene.field("opened", in: text)).replacing("&quot;", with: "\"")
            func save(_ fields: [String: String]) async throws -> WebScene.Answer {
                let tags = [
                    "etag.campaign": try #require(WebScene.field("etag.campaign", in: text)),
                    "etag.template": try #require(WebScene.field("etag.template", in: text)),
                ]
                return try await scene.page(
                    "\(Self.page)/compose",
                    form: fields.merging(tags) { $1 }.merging(["do": "save", "opened": opened]) { $1 })
            }
            let country = try await save(["c.who": "choose", "c.who.countries": "Germany, AT, Narnia"])
            #expect(country.status == 422 && country.text.contains("“Narnia” is not a country."))
            #expect(!country.text.contains("“Germany” is") && !country.text.contains("“AT” is"))
            let zone = try await save(["c.start": "hand", "c.unknown_zone": "Berlin"])
            #expect(zone.status == 422 && zone.text.contains("<a href=\"#c-unknown_zone\">"))
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == WebScene.campaignText)
            let segment = try await scene.page(
                "/segments", form: ["name": "n", "do": "save", "c.who": "choose", "c.who.countries": "Narnia"])
            #expect(segment.status == 422 && segment.text.contains("“Narnia” is not a country."), "\(segment.status)")
        }
    }

    @Test func `suppressed deliveries are no speed`() throws {
        var rates = RunRates()
        _ = rates.rate(of: 1, sent: 0, at: .seconds(1))
        #expect(rates.rate(of: 1, sent: 20, at: .seconds(3)) == 10)
    }
}
