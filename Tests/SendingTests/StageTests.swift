import APNs
import Logging
import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// A run in stages, from its first device to its last answer.
@Suite(.timeLimit(.minutes(10))) struct `A run in stages` {
    private static let stages = [Stage(.share(10), toleratePercent: 5), Stage(.rest)]

    @Test func `the first stage goes alone and the rest follows when it has proved itself`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<2_000)
        try await scene.addDevices(2_000..<2_200, environment: .sandbox)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let run = try await scene.start(try scene.definition { $0.stages = Self.stages })
        #expect(try await scene.execute(run, transport) == .finished)
        let records = try await scene.store.stages(of: run.id)
        let first = records[0].size
        #expect((150...320).contains(first) && records[1].size == 2_200 - first)
        #expect(records[0].decision?.verdict == .go && records[0].answers.answered == first)
        // Nobody else was sent to before the last answer of the stage.
        let staged = Set(transport.seen.prefix(first).map(\.push.token))
        #expect(staged.count == first && transport.seen.count == 2_200)
        #expect(staged.contains { PipelineScene.number($0) >= 2_000 })
        #expect(try await scene.report(run).counts.accepted == 2_200)
        #expect(try await scene.store.verify(budgets: [:], faultsMax: 5).faultCount == 0)
    }

    /// The wrong host, or a payload that APNs refuses: everybody would be refused.
    @Test(arguments: [1.0, 0.5])
    func `a first stage that fails costs a few people, and nobody else hears of it`(share: Double) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<5_000)
        let transport = ScriptedTransport { push, _ in
            PipelineScene.number(push.token).isMultiple(of: share == 1 ? 1 : 2)
                ? ScriptedTransport.refused(413, .payloadTooLarge) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition { $0.stages = Self.stages })
        guard case .halted(let reason) = try await scene.execute(run, transport) else {
            Issue.record("the run was not halted")
            return
        }
        #expect(reason.contains("too many pushes were rejected") && reason.contains("fanfare resume \(run.id)"))
        #expect(transport.seen.count <= 64, "\(transport.seen.count) saw it")
        let record = try await scene.store.stages(of: run.id)[0]
        #expect(try #require(record.decision).answers.answered <= 40)
        let counts = try await scene.report(run).counts
        // As many as were written down by then.
        #expect(counts.pending == counts.audience - transport.seen.count, "\(counts), \(transport.seen.count) seen")
        // Nothing but a person goes on with it.
        guard case .halted = try await scene.execute(run, transport, owner: "other") else {
            Issue.record("somebody went on with a halted run")
            return
        }
        try await scene.store.change(run.id, to: .running, reason: nil, now: scene.clock.now, by: "ray")
        let healed = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await scene.execute(run, healed) == .finished)
        let report = try await scene.report(run)
        #expect(report.counts.accepted + report.counts.rejected == 5_000 && report.counts.pending == 0)
    }

    /// One device in fifty has this text: 2 % of all refusals are put up with, all of one language are not.
    @Test func `a text of few that is broken stops the run`() async throws {
        let scene = try PipelineScene()
        let records = try (0..<10_000).map { number in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: PipelineScene.token(number))), environment: .production,
                topic: PipelineScene.topic)
            record.installationID = "install-\(number)"
            record.locale = number % 50 == 0 ? "de" : "en"
            return record
        }
        _ = try await scene.store.importDevices(records, now: scene.clock.now)
        let transport = ScriptedTransport { push, _ in
            PipelineScene.number(push.token) % 50 == 0
                ? ScriptedTransport.refused(413, .payloadTooLarge) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition { $0.stages = Self.stages })
        guard case .halted(let reason) = try await scene.execute(run, transport) else {
            Issue.record("the run was not halted")
            return
        }
        #expect(reason.contains("responses for production devices in de are rejections"))
        #expect(transport.seen.count < 1_000)
    }

    /// An old list: most of its devices have removed the app.
    @Test func `a list that is far older than the last one stops the run`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3_000)
        let transport = ScriptedTransport { push, _ in
            PipelineScene.number(push.token) % 10 < 6
                ? ScriptedTransport.refused(410, .unregistered, timestamp: scene.clock.now.milliseconds)
                : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition { $0.stages = Self.stages })
        guard case .halted(let reason) = try await scene.execute(run, transport) else {
            Issue.record("the run was not halted")
            return
        }
        #expect(reason.contains("too many devices are gone"))
        #expect(transport.seen.count < 300)
    }

    @Test func `a hold is waited for, and somebody who pauses meanwhile is obeyed`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1_000)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let stages = [Stage(.share(20), hold: .seconds(900), toleratePercent: 5), Stage(.rest)]
        let run = try await scene.start(try scene.definition { $0.stages = stages })
        async let end = scene.execute(run, transport)
        let control = try await scene.held(run)
        let first = transport.seen.count
        #expect(first == control.size && first < 400)
        scene.clock.advance(by: .seconds(901))
        #expect(try await end == .finished)
        #expect(transport.seen.count == 1_000)
    }

    @Test func `a stage that needs approval waits for it, whoever starts the run again`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1_000)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let stages = [Stage(.share(20), toleratePercent: 5), Stage(.rest, needsApproval: true)]
        let run = try await scene.start(try scene.definition { $0.stages = stages })
        for owner in ["a", "b"] {
            guard case .awaitingApproval(let reason) = try await scene.execute(run, transport, owner: owner) else {
                Issue.record("nobody was waited for")
                return
            }
            #expect(reason.contains("fanfare approve \(run.id) --stage 2"))
        }
        let first = transport.seen.count
        #expect(try await scene.store.approveStage(of: run.id, stage: 1, by: "eve", now: scene.clock.now))
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(first < 400 && transport.seen.count == 1_000)
        #expect(try await scene.store.verify(budgets: [:], faultsMax: 5).faultCount == 0)
    }
}

extension PipelineScene {
    /// Until the first stage of the run has its verdict and all lanes wait.
    fileprivate func held(_ run: Run) async throws -> StageRecord {
        while true {
            let record = try await store.stages(of: run.id)[0]
            if record.decision != nil {
                await clock.sleeper(atLeast: .seconds(60))
                return record
            }
            await Task.yield()
        }
    }
}
