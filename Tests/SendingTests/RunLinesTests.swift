import Logging
import LonePipeline
import Model
import Sending
import SendingScene
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `The log lines of a run` {
    private static let order = StopOrder(
        .all, by: "ray", at: Timestamp(milliseconds: 0), reason: "wrong text")
    private static let ends: [RunEnd] = [
        .finished, .stoppedEarly, .waiting(until: Timestamp(milliseconds: 0)), .cancelled,
        .paused(by: "ray", reason: nil),
        .busy(owner: "host:1:2:3", heartbeat: Timestamp(milliseconds: 0)), .unreachable("no answer"),
        .credentialRefused("no"), .breakerOpen("no"), .halted("no"), .awaitingApproval("no"), .late("no"),
        .stopped(order), .missed("no"), .refused("no"), .failed("no"),
    ]

    private func run(_ scene: PipelineScene) async throws -> Run {
        try await scene.start(try scene.definition(), occurrence: "a")
    }

    @Test(arguments: ends)
    func `name the end in one word and the reason in plain text`(end: RunEnd) async throws {
        let scene = try PipelineScene()
        let lines = CollectedLines()
        RunLines(try await run(scene), clock: scene.clock.clock, logger: lines.logger()).ended(end)
        let line = try #require(lines.all.first)
        #expect(line.facts["end"]?.firstMatch(of: /^[a-z_]+$/) != nil)
        #expect(line.facts["occurrence"] == "a" && line.facts["campaign"] != nil && line.facts["run"] != nil)
        for text in [line.message] + line.facts.values {
            #expect(!text.contains("(\"") && !text.contains("Optional("), "\(text)")
        }
        #expect(end.goesOnWithNextStart || end == .finished || end == .cancelled || line.facts["reason"] != nil)
    }

    @Test func `are one at the start, however often the run is claimed, and one at the end with counts and seconds`()
        async throws
    {
        let scene = try PipelineScene()
        let lines = CollectedLines()
        let about = RunLines(try await run(scene), clock: scene.clock.clock, logger: lines.logger())
        var counts = DeliveryCounts()
        counts.audience = 5
        counts.pending = 5
        about.began(RunControl(counts: counts, isFrozen: true))
        scene.clock.advance(by: .milliseconds(2_500))
        counts = DeliveryCounts()
        (counts.audience, counts.accepted, counts.rejected, counts.unknown) = (5, 2, 1, 1)
        counts.leased = 1
        about.began(RunControl(counts: counts, isFrozen: true))
        about.ended(.unreachable("no answer"))
        #expect(lines.all.map(\.message) == ["run started", "run paused"])
        #expect(lines.all.map(\.level) == [.info, .warning])
        let facts = try #require(lines.all.last).facts
        #expect(facts["accepted"] == "2" && facts["rejected"] == "1" && facts["unknown"] == "1" && facts["left"] == "1")
        #expect(facts["audience"] == "5" && facts["seconds"] == "2.5")
    }
}
