import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// A run is corrected with other values from its page: what is previewed is what is sent.
@Suite(.timeLimit(.minutes(10)))
struct CorrectionPagesTests {
    /// A run that reached ten devices, with the wrong title.
    private static func sent(_ scene: WebScene, _ change: (inout RunDefinition) -> Void = { _ in }) async throws -> Run
    {
        try await scene.addCampaign()
        try await scene.sending.addDevices(4..<10)
        var definition = try scene.webConsole.cases.files.source("new-podcast").definition(
            with: ["title": "The Quiet Reff"], plannedAt: scene.sending.clock.now)
        change(&definition)
        let run = try await scene.sending.start(definition)
        try await scene.reach(run)
        return try #require(try await scene.store.run(run.id))
    }

    private func field(_ name: String, in page: WebScene.Answer) -> String? {
        page.text.components(separatedBy: "name=\"\(name)\" value=\"").dropFirst().first
            .map { String($0.prefix { $0 != "\"" }) }
    }

    @Test func `the page has the run's values, and sends what it has previewed alone`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.sent(scene)
            let path = "/runs/\(run.id)/correction"
            #expect(try await scene.page("/runs/\(run.id)", as: .sender).text.contains(path))
            #expect(!(try await scene.page("/runs/\(run.id)", as: .author)).text.contains(path))
            #expect(try await scene.page(path, as: .author).status == 403)

            let first = try await scene.page(path, as: .sender)
            #expect(first.text.contains("The Quiet Reff</textarea>") && first.text.contains("WenderCast</textarea>"))
            #expect(field("preview", in: first) == nil && first.text.contains("Change a value"))
            let same = try await scene.page(path + "?v.title=The+Quiet+Reff", as: .sender)
            #expect(same.text.contains("the same texts as run \(run.id)"))

            let preview = try await scene.page(path + "?v.title=The+Quiet+Reef", as: .sender)
            let digest = try #require(field("preview", in: preview))
            for words in ["The Quiet Reef is out.", "The Quiet Reef ist da.", "PRODUCTION: 10 devices"] {
                #expect(preview.text.contains(words), "\(words)")
            }
            // The digest of one set of values starts no other one.
            for title in ["The Quiet Reefs", "The Quiet Reff", ""] {
                let other = try await scene.page(
                    "/runs/\(run.id)/correct", as: .sender,
                    form: ["v.title": title, "v.show": "WenderCast", "preview": digest])
                #expect(other.status == (title.hasSuffix("Reefs") ? 409 : 422))
            }
            let form = ["v.title": "The Quiet Reef", "v.show": "WenderCast", "preview": digest]
            try scene.folder.write(
                WebScene.templateText.replacing("is out.", with: "is out!"), to: "templates/new-podcast.yaml")
            #expect(try await scene.page("/runs/\(run.id)/correct", as: .sender, form: form).status == 409)
            try scene.folder.write(WebScene.templateText, to: "templates/new-podcast.yaml")

            let done = try await scene.page("/runs/\(run.id)/correct", as: .sender, form: form)
            let address = try #require(done.header("location"))
            let number = try #require(Int64(address.dropFirst("/runs/".count)))
            let correction = try #require(try await scene.store.run(number))
            #expect(correction.definition.variables == ["title": "The Quiet Reef", "show": "WenderCast"])
            #expect(correction.definition.correction == Correction(of: run.id, .replace))
            let again = try await scene.page("/runs/\(run.id)/correct", as: .sender, form: form)
            #expect(again.status == 409 && again.text.contains("tick the box"))
            let meant = try await scene.page(
                "/runs/\(run.id)/correct", as: .sender, form: form.merging(["again": "on"]) { $1 })
            #expect(meant.status == 303)
        }
    }

    @Test func `a template that has changed since the run is named, with what phones showed then and show now`()
        async throws
    {
        try await WebScene.with { scene in
            let run = try await Self.sent(scene)
            let path = "/runs/\(run.id)/correction?v.title=The+Quiet+Reef"
            let same = try await scene.page(path, as: .sender)
            #expect(!same.text.contains("has changed since") && same.text.contains("The Quiet Reff ist da."))
            try scene.folder.write(
                WebScene.templateText.replacing("is out.", with: "is out!"), to: "templates/new-podcast.yaml")
            let campaign = WebScene.campaignText.replacing("expires_after: 4h", with: "expires_after: 3h")
            try scene.folder.write(campaign, to: "campaigns/new-podcast.yaml")
            let changed = try await scene.page(path, as: .sender)
            #expect(
                changed.text.contains(
                    "template new-podcast has changed since run \(run.id) (en: body); the correction sends its present text"
                ))
            #expect(changed.text.contains("campaign new-podcast has changed since run \(run.id) (expires_after)"))
            let now = try #require(changed.text.firstRange(of: "id=\"corrected\""))
            #expect(changed.text[..<now.lowerBound].contains("The Quiet Reff is out."))
            #expect(changed.text[now.upperBound...].contains("The Quiet Reef is out!"))
            // The API says the same.
            let body = #"{"variables": {"title": "The Quiet Reef"}}"#
            let sent = try await scene.api("POST", "/runs/\(run.id)/correct", as: .sender, body: body)
            #expect(sent.status == 202 && sent.text.contains("template new-podcast has changed"), "\(sent.text)")
        }
    }

    @Test func `the API puts values into the run's own template, and refuses what changes nothing`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.sent(scene)
            func correct(_ body: String) async throws -> WebScene.Answer {
                try await scene.api("POST", "/runs/\(run.id)/correct", as: .sender, body: body)
            }
            let same = try await correct(#"{"variables": {"title": "The Quiet Reff"}}"#)
            #expect(same.status == 422 && same.problem?.detail.contains("the same texts") == true, "\(same.text)")
            #expect(try await correct("{}").status == 422)
            let right = try await correct(#"{"variables": {"title": "The Quiet Reef"}}"#)
            #expect(right.status == 202, "\(right.text)")
        }
    }

    private static func withApprovals(
        overriding people: [String]? = nil, _ body: (WebScene) async throws -> Void
    ) async throws {
        try await WebScene.with { configuration in
            configuration.approvals = ApprovalRules(
                rules: [.init(above: 5, needs: 1)], breakGlass: people != nil, breakGlassBy: people ?? [])
        } _: { scene in
            try await body(scene)
        }
    }

    @Test(arguments: [["dora"], []])
    func `a large correction with other values is sent by who may override the approvals, with a reason`(
        people: [String]
    ) async throws {
        try await Self.withApprovals(overriding: people) { scene in
            let run = try await Self.sent(scene)
            let path = "/runs/\(run.id)/correction?v.title=The+Quiet+Reef"
            let page = try await scene.page(path, as: .sender)
            let digest = try #require(field("preview", in: page))
            let form = ["v.title": "The Quiet Reef", "preview": digest]
            #expect(page.text.contains("Ask for approval"))
            guard people.isEmpty else {
                #expect(!page.text.contains("Send the correction") && page.text.contains("needs approval"))
                let own = try await scene.page(
                    "/runs/\(run.id)/correct", as: .sender, form: form.merging(["reason": "a typo"]) { $1 })
                #expect(own.status == 409)
                #expect(try await scene.store.runs(limit: 9).count == 1)
                return
            }
            let silent = try await scene.page("/runs/\(run.id)/correct", as: .sender, form: form)
            #expect(silent.status == 422 && silent.text.contains("give the reason"))
            let done = try await scene.page(
                "/runs/\(run.id)/correct", as: .sender, form: form.merging(["reason": "a typo"]) { $1 })
            #expect(done.status == 303)
            #expect(try await scene.page("/audit", as: .admin).text.contains("a typo"))
        }
    }

    @Test func `a large correction is asked for, signed by another and sent, each by its button`() async throws {
        try await Self.withApprovals { scene in
            let run = try await Self.sent(scene)
            let path = "/runs/\(run.id)/correction"
            let preview = try await scene.page("\(path)?v.title=The+Quiet+Reef", as: .sender)
            let form = ["v.title": "The Quiet Reef", "preview": try #require(field("preview", in: preview))]
            let other = try await scene.page(
                "\(path)/ask", as: .sender, form: form.merging(["v.title": "The Quiet Reff!"]) { $1 })
            #expect(other.status == 409 && other.text.contains("Not asked: "))
            #expect(try await scene.page("\(path)/ask", as: .author, form: form).status == 403)
            let asked = try await scene.page("\(path)/ask", as: .sender, form: form)
            let address = try #require(asked.header("location"), "\(asked.text)")
            let waiting = try await scene.page(address, as: .sender)
            #expect(waiting.text.contains("awaiting approval, 0 of 1 signature"))
            #expect(waiting.text.contains("The Quiet Reef</textarea>") && !waiting.text.contains("Send the correction"))
            #expect(try await scene.page("/runs/\(run.id)/correct", as: .sender, form: form).status == 409)

            let approval = try #require(waiting.text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)).1
            let shown = try await scene.page(String(approval), as: .approver)
            #expect(shown.text.contains("PRODUCTION: 10 devices") && shown.text.contains("The Quiet Reff is out."))
            #expect(shown.text.contains("Corrects</dt><dd><a href=\"/runs/\(run.id)\""))
            let hash = try #require(field("plan", in: shown))
            #expect(try await scene.page("\(approval)/approve", as: .admin, form: ["plan": hash]).status == 303)
            #expect(
                try await scene.page(String(approval), as: .sender).text.contains(address.replacing("&", with: "&amp;"))
            )

            let ready = try await scene.page(address, as: .sender)
            #expect(ready.text.contains("approved, 1 of 1 signature") && ready.text.contains("Send the correction"))
            let sent = try await scene.page("/runs/\(run.id)/correct", as: .sender, form: form)
            let number = try #require(sent.header("location")?.dropFirst("/runs/".count), "\(sent.text)")
            let correction = try #require(try await scene.store.run(Int64(number) ?? 0))
            #expect(correction.definition.correction == Correction(of: run.id, .replace))
            #expect(correction.definition.variables["title"] == "The Quiet Reef")
            let found = try await scene.store.verify(budgets: [:], faultsMax: 9)[ApprovalCheck.name]
            #expect(found?.compared == 1 && found?.faultCount == 0)

            // The devices of the correction are those of the run, not those of the campaign's audience.
            _ = try await scene.store.claim(correction.id, by: Actor("sender"), now: correction.createdAt)
            _ = try await scene.store.freeze(correction.id, by: "sender", now: correction.createdAt) { _ in }
            #expect(try await scene.store.run(correction.id)?.counts.audience == 10)
            // Its signatures are used up.
            let again = try await scene.page(
                "/runs/\(run.id)/correct", as: .sender, form: form.merging(["again": "on"]) { $1 })
            #expect(again.status == 409 && again.text.contains("0 of 1 signed"))
        }
    }

    @Test func `a rejected correction is asked for again, and nobody signs their own`() async throws {
        try await Self.withApprovals { scene in
            let run = try await Self.sent(scene)
            let path = "/runs/\(run.id)/correction"
            let preview = try await scene.page("\(path)?v.title=The+Quiet+Reef", as: .admin)
            let form = ["v.title": "The Quiet Reef", "preview": try #require(field("preview", in: preview))]
            for _ in 1...2 {
                let asked = try await scene.page("\(path)/ask", as: .admin, form: form)
                let page = try await scene.page(try #require(asked.header("location")), as: .admin)
                let approval = try #require(page.text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)).1
                let shown = try await scene.page(String(approval), as: .approver)
                let hash = try #require(field("plan", in: shown))
                let own = try await scene.page("\(approval)/approve", as: .admin, form: ["plan": hash])
                #expect(own.status == 409 && own.text.contains("cannot approve it; another person must"))
                let no = try await scene.page("\(approval)/reject", as: .approver, form: ["reason": "still a typo"])
                #expect(no.status == 303)
                let rejected = try await scene.page("\(path)?v.title=The+Quiet+Reef", as: .admin)
                #expect(rejected.text.contains("still a typo") && rejected.text.contains("Ask for approval"))
                #expect(!rejected.text.contains("Send the correction"))
            }
        }
    }

    @Test func `an approver of a correction is told that the notification was removed since`() async throws {
        try await Self.withApprovals { scene in
            let run = try await Self.sent(scene)
            let path = "/runs/\(run.id)/correction"
            let preview = try await scene.page("\(path)?v.title=The+Quiet+Reef", as: .sender)
            let form = ["v.title": "The Quiet Reef", "preview": try #require(field("preview", in: preview))]
            let asked = try await scene.page("\(path)/ask", as: .sender, form: form)
            let waiting = try await scene.page(try #require(asked.header("location")), as: .sender)
            let approval = String(try #require(waiting.text.firstMatch(of: #/href="(\/approvals\/[0-9a-f]+)"/#)).1)
            let before = try await scene.page(approval, as: .approver).text
            #expect(
                before.contains("On the phone, sent by run \(run.id)") && !before.contains("removed the notification"))
            #expect(try await scene.page("/runs/\(run.id)/recall", as: .sender, form: [:]).status == 303)
            let after = try await scene.page(approval, as: .approver).text
            #expect(after.contains("removed the notification from the screens. A correction shows it again."))
            #expect(!after.contains("On the phone, sent by run"))
            let digest = approval.dropFirst("/approvals/".count)
            let detail = try await scene.api("GET", "/approvals/\(digest)", as: .viewer)
                .result(ApprovalDetailResult.self)
            #expect(detail.removedBy == run.id + 1)
        }
    }

    @Test func `a run that was recalled and then corrected can be recalled again from the pages`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.sent(scene)
            let page = "/runs/\(run.id)"
            let offer = "action=\"\(page)/recall\""
            #expect(try await scene.page(page, as: .sender).text.contains(offer))
            #expect(try await scene.page("\(page)/recall", as: .sender, form: [:]).status == 303)
            #expect(!(try await scene.page(page, as: .sender)).text.contains(offer))
            let twice = try await scene.page("\(page)/recall", as: .sender, form: [:])
            #expect(twice.status == 409 && !twice.text.contains("--again"), "\(twice.text)")

            let preview = try await scene.page("\(page)/correction?v.title=The+Quiet+Reef", as: .sender)
            let form = ["v.title": "The Quiet Reef", "preview": try #require(field("preview", in: preview))]
            let sent = try await scene.page("\(page)/correct", as: .sender, form: form)
            let correction = try #require(sent.header("location"), "\(sent.text)")
            let again = try await scene.page(page, as: .sender).text
            #expect(again.contains(offer) && again.contains("has shown it again"))
            let number = try #require(Int64(correction.dropFirst("/runs/".count)))
            try await scene.reach(try #require(try await scene.store.run(number)))
            #expect(try await scene.page(correction, as: .sender).text.contains(offer))
            #expect(!(try await scene.page(correction, as: .viewer)).text.contains(offer))
            #expect(try await scene.page("\(page)/recall", as: .sender, form: [:]).status == 303)
            #expect(!(try await scene.page(page, as: .sender)).text.contains(offer))
            #expect(!(try await scene.page(correction, as: .sender)).text.contains(offer))
        }
    }
}

extension WebScene {
    /// Sends every delivery of a run; all are accepted.
    func reach(_ run: Run) async throws {
        _ = try await store.claim(run.id, by: Actor("sender"), now: run.createdAt)
        _ = try await store.freeze(run.id, by: "sender", now: run.createdAt) { _ in }
        let lease = try await store.lease(
            LeaseRequest(run: run.id, environment: .production, limit: 100, now: run.createdAt, owner: "sender"))
        _ = try await store.settle(
            run: run.id,
            lease.deliveries.map {
                Settlement(
                    lease: lease.id, device: $0.device, generation: $0.generation, leaseNumber: 1, attempt: 1,
                    verdict: .accepted, status: 200)
            }, now: run.createdAt)
        try await store.release(run.id, by: "sender", state: .finished, reason: nil, now: run.createdAt)
    }
}
