import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// A run whose comparison of variants shows no winner, on its page and in the API.
@Suite(.timeLimit(.minutes(10))) struct `The choice of a variant` {
    /// A run that waits for the choice.
    static func waiting(_ scene: WebScene) async throws -> Int64 {
        try await scene.sending.addDevices(0..<200)
        let definition = try scene.sending.definition {
            $0.feedback = CampaignFeedback()
            $0.variants = ["long", "short"].map { Campaign.Variant(name: $0, weight: 1, template: "t") }
            $0.stages = [
                Stage(.share(50), hold: .seconds(60), toleratePercent: 50, decides: VariantRule()), Stage(.rest),
            ]
        }
        let now = scene.sending.clock.now
        let run = try await scene.store.createRun(definition, occurrence: "o", now: now, by: "test").run.id
        _ = try await scene.store.claim(run, by: "a", now: now)
        _ = try await scene.store.freeze(run, by: "a", now: now) { _ in }
        var request = LeaseRequest(run: run, environment: .production, limit: 1000, now: now, owner: "a")
        (request.stages, request.decidingStage) = (2, 0)
        while true {
            let lease = try await scene.store.lease(request)
            if lease.isPaused { break }
            if lease.deliveries.isEmpty { request.now = lease.nextDue ?? request.now }
            let settlements = lease.deliveries.map { delivery in
                Settlement(
                    lease: lease.id, device: delivery.device, generation: delivery.generation,
                    leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, verdict: .accepted, status: 200,
                    localeIndex: 0, stage: delivery.stage)
            }
            _ = try await scene.store.settle(run: run, settlements, now: request.now)
        }
        try await scene.store.release(run, by: "a", state: .running, reason: nil, now: now)
        return run
    }

    @Test func `the page has a button for each variant, and one of them resumes the run`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.waiting(scene)
            let page = try await scene.page("/runs/\(run)", as: .approver)
            #expect(page.text.contains("Send long to the rest") && page.text.contains("Send short to the rest"))
            #expect(page.text.contains(#"<input type="hidden" name="variant" value="short">"#))
            #expect(!page.text.contains("Approve the next stage</"))
            let path = "/runs/\(run)/approve"
            #expect(try await scene.page(path, as: .approver, form: ["stage": "2"]).status == 422)
            let lowest = try await scene.page(path, as: .approver, form: ["stage": "\(Int.min)", "variant": "long"])
            #expect(lowest.status == 409)
            #expect(try await scene.page(path, as: .approver, form: ["stage": "2", "variant": "x"]).status == 404)
            #expect(try await scene.page(path, as: .approver, form: ["stage": "2", "variant": "short"]).status == 303)
            let decided = try #require(try await scene.store.stages(of: run)[0].decision?.variants)
            #expect(decided.variant == 1 && decided.cause == .person && decided.person?.contains("approver") == true)
            #expect(try await scene.store.run(run)?.state == .running)
        }
    }

    @Test func `the API takes the variant with the stage`() async throws {
        try await WebScene.with { scene in
            let run = try await Self.waiting(scene)
            let path = "/runs/\(run)/approve"
            #expect(try await scene.api("POST", path, as: .approver, body: #"{"stage": 2}"#).status == 422)
            let lowest = try await scene.api("POST", path, as: .approver, body: "{\"stage\": \(Int.min)}")
            #expect(lowest.status == 422)
            // A command with the number of the stage would not do.
            let listed = try await scene.api("GET", "/approvals", as: .viewer)
            #expect(listed.text.contains(/"choices" ?: ?\[\s*"long",\s*"short"\s*\]/), "\(listed.text)")
            let resumed = try await scene.api("POST", "/runs/\(run)/resume", as: .sender)
            let advice = "`fanfare approve \(run) --variant NAME` sends long or short"
            #expect(resumed.status == 422 && resumed.text.contains(advice), "\(resumed.text)")
            let chosen = try await scene.api("POST", path, as: .approver, body: #"{"stage": 2, "variant": "long"}"#)
            #expect(chosen.status == 200)
            #expect(try await scene.store.stages(of: run)[0].decision?.variants?.variant == 0)
        }
    }
}
