import APNs
import APNsSimulator
import Platform
import TestSupport
import Testing

// What every transport promises of the moment before a request.
extension TransportPromises {
    package func `nothing starts from a batch's last moment on`() async throws {
        let scene = try LaneScene()
        var late = LaneScene.batch(0..<50)
        late.startBefore = BootClock.now()
        var early = LaneScene.batch(50..<100)
        early.startBefore = BootClock.now() + 3_600_000_000_000
        let run = await LaneRun.of(scene.lane(kind), late, early)
        #expect(run.isComplete(0..<100))
        #expect((0..<50).allSatisfy { run.result($0) == .notSent(.stopped) })
        #expect(run.acceptedCount == 50 && scene.simulator.log().count == 50)
    }

    package func `behind a closed gate nothing starts and everything comes back`() async throws {
        let scene = try LaneScene()
        var batch = LaneScene.batch(0..<50)
        let gate = StartGate(openUntil: BootClock.never)
        batch.gate = gate
        gate.close()
        gate.open(until: BootClock.never)
        let run = await LaneRun.of(scene.lane(kind), batch)
        #expect(run.isComplete(0..<50) && run.count { $0 == .notSent(.stopped) } == 50)
        #expect(scene.simulator.log().isEmpty)
    }

    package func `after a recall only what is handed over later starts`() async throws {
        let scene = try LaneScene()
        let gate = StartGate(openUntil: BootClock.never)
        var (recalled, later) = (LaneScene.batch(0..<50), LaneScene.batch(50..<100))
        recalled.gate = gate
        gate.recall()
        later.gate = gate
        let run = await LaneRun.of(scene.lane(kind), recalled, later)
        #expect(run.isComplete(0..<100))
        #expect((0..<50).allSatisfy { run.result($0) == .notSent(.stopped) })
        #expect(run.acceptedCount == 50 && scene.simulator.log().count == 50)
    }

    package func `while nobody opens the gate pushes wait, and then they leave`() async throws {
        let scene = try LaneScene()
        var batch = LaneScene.batch(0..<50)
        let gate = StartGate(openUntil: 0)
        batch.gate = gate
        let lane = scene.lane(kind)
        async let ended = LaneRun.end(of: lane)
        #expect(await lane.send(batch))
        // Room for a lane that does not wait to show itself.
        for _ in 0..<2000 { await Task.yield() }
        #expect(scene.simulator.log().isEmpty)
        gate.open(until: BootClock.never)
        lane.finish()
        var run = LaneRun()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await ended == nil)
        #expect(run.isComplete(0..<50) && run.acceptedCount == 50)
    }

    package func `the journal has what started and what was answered, and nothing else`() async throws {
        let scene = try LaneScene { options in
            options.faults = [
                FaultRule(when: .number(30), action: .answer(status: 503, reason: "Shutdown")),
                FaultRule(when: .token(LaneScene.token(60)), action: .reset(code: 2)),
            ]
        }
        let identity = PushJournal.Identity(boot: "boot", store: PushID(high: 1, low: 1), sender: 16)
        let path = scene.directory.file("16.journal")
        let journal = try PushJournal(path: path, identity: identity)
        let segment = try journal.segment(entries: 200)
        var batch = LaneScene.batch(0..<100)
        let entries = segment.enter(100, lease: 1) { (Int64($0) + 1, nil) }
        for row in batch.pushes.indices { batch.pushes[row].entry = entries[row] }
        batch.journal = segment
        var closed = LaneScene.batch(100..<120)
        let others = segment.enter(20, lease: 2) { (Int64($0) + 101, nil) }
        for row in closed.pushes.indices { closed.pushes[row].entry = others[row] }
        closed.journal = segment
        closed.startBefore = BootClock.now()
        let run = await LaneRun.of(scene.lane(kind), batch, closed)
        let found = try JournalEvidence.read(path: path, expecting: identity).entries
        for number in 0..<120 {
            let state = found[number < 100 ? 1 : 2]?[Int64(number) + 1]?.state
            switch run.result(number) {
            case .answered(let answer): #expect(state == .answered(answer))
            case .unknown: #expect(state == .started)
            case .notSent, .cutOff: #expect(state == .queued)
            case nil: Issue.record("push \(number) has no result")
            }
        }
        #expect(run.acceptedCount > 0)
        #expect(run.count(where: \.isNotSent) == 20)
    }
}
