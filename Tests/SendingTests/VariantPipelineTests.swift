import APNs
import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `Variants and holdout` {
    private func definition(_ scene: PipelineScene) throws -> RunDefinition {
        var definition = try scene.definition {
            $0.holdoutPercent = 20
            $0.variants = [
                Campaign.Variant(name: "plain", weight: 50, template: "t"),
                Campaign.Variant(name: "personal", weight: 50, template: "personal"),
            ]
        }
        var personal = Template(name: "personal")
        personal.alert = .localized([
            .init(
                locale: try #require(LocaleTag("de")), title: nil, subtitle: nil,
                body: try TemplateText(parsing: "Hallo {{device.model}}, {{device.installation_id}}"))
        ])
        definition.variantTemplates = ["plain": definition.template, "personal": personal]
        return definition
    }

    @Test func `each device gets its own variant's text, the holdout gets nothing`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<400)
        let definition = try definition(scene)
        let split = CampaignSplit(definition.campaign)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let run = try await scene.start(definition)
        #expect(try await scene.execute(run, transport, leaseMax: 50) == .finished)
        for entry in transport.seen {
            let number = PipelineScene.number(entry.push.token)
            let device = try #require(try await scene.store.devices(matching: "install-\(number)").first).id
            #expect(!split.isHeldOut(device))
            let text = String(decoding: entry.push.payload, as: UTF8.self)
            let expected =
                split.variant(of: device) == 0
                ? "Hello \(number % 2 == 0 ? "de" : "en")" : "Hallo , install-\(number)"
            #expect(text.contains(expected), "\(text)")
        }
        let report = try await scene.report(run)
        #expect(report.suppressed.map(\.reason) == ["holdout"])
        #expect(report.counts.accepted == transport.seen.count)
        #expect(report.counts.accepted + report.counts.suppressed == 400)
        #expect(report.byVariant.map(\.name) == ["plain", "personal"])
        #expect(report.byVariant.reduce(0) { $0 + $1.counts.accepted } == report.counts.accepted)
        // "de" is the second language of one template and the only one of the other.
        let plain = transport.seen.count { String(decoding: $0.push.payload, as: UTF8.self).contains("Hello en") }
        // The holdout got no text.
        #expect(report.byLocale.map(\.name) == ["en", "de", "not rendered"])
        #expect(report.byLocale.map(\.counts.accepted) == [plain, report.counts.accepted - plain, 0])
    }

    @Test func `a test run sends to its one device`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let device = try #require(try await scene.store.devices(matching: "install-4").first).id
        let run = try await scene.store.createTestRun(
            try scene.definition(), occurrence: "test", device: device, now: scene.clock.now, by: "ray")
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(transport.seen.map { PipelineScene.number($0.push.token) } == [4])
        #expect(try await scene.report(run).run.isTest)
    }
}
