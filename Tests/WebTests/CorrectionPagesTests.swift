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

    @Test(arguments: [["dora"], []])
    func `a large correction with other values is sent by who may override the approvals, with a reason`(
        people: [String]
    ) async throws {
        try await WebScene.with { configuration in
            configuration.approvals = ApprovalRules(
                rules: [.init(above: 5, needs: 1)], breakGlass: true, breakGlassBy: people)
        } _: { scene in
            let run = try await Self.sent(scene)
            let path = "/runs/\(run.id)/correction?v.title=The+Quiet+Reef"
            let page = try await scene.page(path, as: .sender)
            guard people.isEmpty else {
                #expect(field("preview", in: page) == nil && page.text.contains("needs approvals"))
                return
            }
            let digest = try #require(field("preview", in: page))
            let form = ["v.title": "The Quiet Reef", "preview": digest]
            let silent = try await scene.page("/runs/\(run.id)/correct", as: .sender, form: form)
            #expect(silent.status == 422 && silent.text.contains("give the reason"))
            let done = try await scene.page(
                "/runs/\(run.id)/correct", as: .sender, form: form.merging(["reason": "a typo"]) { $1 })
            #expect(done.status == 303)
            #expect(try await scene.page("/audit", as: .admin).text.contains("a typo"))
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
