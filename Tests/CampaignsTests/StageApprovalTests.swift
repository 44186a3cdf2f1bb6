import APNs
import Campaigns
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `The approval of a stage` {
    @Test func `says when the pushes expire, and is refused once they have`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1_000)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let stages = [Stage(.share(20), toleratePercent: 5), Stage(.rest, needsApproval: true)]
        let run = try await scene.start(try scene.definition { $0.stages = stages })
        guard case .awaitingApproval(let reason) = try await scene.execute(run, transport) else {
            Issue.record("it did not wait")
            return
        }
        #expect(reason.hasSuffix("; its pushes expire at 2027-01-15 12:00 UTC"), "\(reason)")
        let sent = transport.seen.count
        let control = ControlRun(store: scene.store, clock: scene.clock.clock, isAlive: { _ in false })
        let waiting = try #require(try await scene.store.run(run.id))
        scene.clock.advance(by: .seconds(4 * 3600))
        let failure = try await #require(throws: Failure.self) {
            try await control.approve(waiting, stage: 2, by: "eve")
        }
        #expect(failure.kind == .refused)
        #expect(failure.messages.joined().contains("its pushes expired at 2027-01-15 12:00 UTC"))
        #expect(try await scene.store.run(run.id)?.state == .paused)
        #expect(transport.seen.count == sent)
    }
}
