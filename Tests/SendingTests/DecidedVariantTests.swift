import APNs
import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// A run whose first stage decides which text the rest gets, from its first request to its last one.
@Suite(.timeLimit(.minutes(10))) struct `A decided variant` {
    private func definition(_ scene: PipelineScene, _ undecided: VariantRule.Undecided) throws -> RunDefinition {
        var definition = try scene.definition {
            $0.feedback = CampaignFeedback()
            $0.variants = ["long", "short"].map { Campaign.Variant(name: $0, weight: 1, template: $0) }
            $0.stages = [
                Stage(
                    .share(30), hold: .seconds(1800), toleratePercent: 10, decides: VariantRule(undecided: undecided)),
                Stage(.rest),
            ]
        }
        definition.variantTemplates = [:]
        for name in ["long", "short"] {
            var template = Template(name: name)
            template.alert = .localized([
                .init(
                    locale: try #require(LocaleTag("en")), title: nil, subtitle: nil,
                    body: TemplateText(literal: "the \(name) text"))
            ])
            definition.variantTemplates[name] = template
        }
        return definition
    }

    private func isShort(_ push: Push) -> Bool { String(decoding: push.payload, as: UTF8.self).contains("the short") }

    @Test func `the rest is sent the text that was opened more, and the report counts what was sent`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1_000)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let run = try await scene.start(try definition(scene, .wait))
        async let end = scene.execute(run, transport)
        while try await scene.store.stages(of: run.id)[0].decision == nil { await Task.yield() }
        await scene.clock.sleeper(atLeast: .seconds(60))
        let first = transport.seen
        var opened: [Int64] = []
        for entry in first where isShort(entry.push) {
            let number = PipelineScene.number(entry.push.token)
            opened.append(try #require(try await scene.store.devices(matching: "install-\(number)").first).id)
        }
        #expect(opened.count > 50 && opened.count < first.count - 50)
        let now = scene.clock.now
        // The reports wait while the run is in hand, and still count.
        _ = try await scene.store.setFeedbackAside(
            opened.prefix(40).map { device in
                FeedbackEvent(
                    source: .push(run: run.id, device: device), kind: .opened, id: (high: 0, low: 1), at: now,
                    receivedAt: now)
            })
        scene.clock.advance(by: .seconds(1801))
        #expect(try await end == .finished)
        let rest = transport.seen.dropFirst(first.count)
        #expect(transport.seen.count == 1_000 && rest.allSatisfy { isShort($0.push) })
        let report = try await scene.report(run)
        #expect(report.byVariant.map(\.counts.accepted) == [first.count - opened.count, opened.count + rest.count])
        #expect(try await scene.store.verify(budgets: [:], faultsMax: 5).faultCount == 0)
    }
}
