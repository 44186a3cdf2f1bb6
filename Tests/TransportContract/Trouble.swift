import APNs
package import APNsSimulator
import Testing
import TestSupport

// What every transport promises when something goes wrong.
extension TransportPromises {
    package func `a cancelled lane lets the wire answer and gives the rest back unsent`() async throws {
        let scene = try LaneScene { options in
            options.faults = (1..<400).map { number in
                FaultRule(when: .token(LaneScene.token(number)), action: .delay(milliseconds: 150))
            }
        }
        let lane = scene.lane(kind) { $0.streamsMax = 4 }
        let running = Task { await LaneRun.end(of: lane) }
        #expect(await lane.send(LaneScene.batch(0..<400)))
        var run = LaneRun()
        run.take(await lane.completions() ?? [])
        running.cancel()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await running.value == nil)
        #expect(run.isComplete(0..<400))
        #expect(run.count(where: \.isUnknown) == 0)
        #expect(run.acceptedCount == scene.simulator.counts().accepted)
        #expect(run.count { $0 == .notSent(.stopped) } == 400 - run.acceptedCount)
        #expect(run.count(where: \.isNotSent) > 0)
        #expect(await lane.send(LaneScene.batch(0..<1)) == false)
    }

    package func `a cancelled lane waits no longer than its drain limit`() async throws {
        let scene = try LaneScene { options in
            options.faults = (1..<10).map { FaultRule(when: .token(LaneScene.token($0)), action: .silence) }
        }
        let lane = scene.lane(kind) { $0.drainLimit = .milliseconds(50) }
        let running = Task { await LaneRun.end(of: lane) }
        #expect(await lane.send(LaneScene.batch(0..<10)))
        var run = LaneRun()
        run.take(await lane.completions() ?? [])
        running.cancel()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await running.value == nil)
        #expect(run.isComplete(0..<10))
        #expect(run.acceptedCount == 1)
        #expect(run.count { $0 == .unknown(.deadline) || $0 == .notSent(.stopped) } == 9)
    }

    package func `a lane cancelled before it ran ends at once`() async throws {
        let scene = try LaneScene()
        let lane = scene.lane(kind)
        #expect(await lane.send(LaneScene.batch(0..<10)))
        let running = Task {
            while !Task.isCancelled { await Task.yield() }
            return await LaneRun.end(of: lane)
        }
        running.cancel()
        var run = LaneRun()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await running.value == nil)
        #expect(run.count { $0 == .notSent(.stopped) } == 10)
        #expect(scene.simulator.counts().requests == 0)
    }

    package func `a push without an answer is unknown after its deadline and harms no other`() async throws {
        let scene = try LaneScene { options in
            options.faults = [FaultRule(when: .token(LaneScene.token(20)), action: .silence)]
        }
        let run = await LaneRun.of(
            scene.lane(kind) { $0.requestDeadline = .seconds(8) }, LaneScene.batch(0..<50))
        #expect(run.error == nil)
        #expect(run.isComplete(0..<50))
        #expect(run.result(20) == .unknown(.deadline))
        #expect(run.acceptedCount == 49)
        #expect(scene.simulator.counts().connections == 1)
    }

    package func `deadlines missed in a row retire the connection`() async throws {
        let scene = try LaneScene { options in
            options.faults = (1...3).map { FaultRule(when: .token(LaneScene.token($0)), action: .silence) }
        }
        let lane = scene.lane(kind) { limits in
            limits.requestDeadline = .seconds(8)
            limits.missedDeadlinesMax = 3
        }
        async let ended = LaneRun.end(of: lane)
        #expect(await lane.send(LaneScene.batch(0..<4)))
        var run = LaneRun()
        while run.completions.count < 4, let completions = await lane.completions() { run.take(completions) }
        #expect(await lane.send(LaneScene.batch(4..<10)))
        lane.finish()
        while let completions = await lane.completions() { run.take(completions) }
        #expect(await ended == nil)
        #expect(run.count { $0 == .unknown(.deadline) } == 3)
        #expect(run.acceptedCount == 7)
        #expect(scene.simulator.counts().connections == 2)
    }

    package static let endings: [FaultAction] = [
        FaultAction.close, .goAway(lastStream: .all, reason: "Shutdown"), .goAway(lastStream: .this, reason: nil),
        .goAway(lastStream: .before, reason: "Shutdown"), .reset(code: 2),
    ]

    package func `no ending of a connection loses a push or sends one twice`(ending: FaultAction) async throws {
        let scene = try LaneScene { options in
            options.faults = [FaultRule(when: FaultCondition.number(120), action: ending)]
        }
        let run = await LaneRun.of(scene.lane(kind) { $0.streamsMax = 100 }, LaneScene.batch(0..<300))
        #expect(run.error == nil)
        #expect(run.isComplete(0..<300))
        let processed = scene.simulator.log().filter { $0.status != 0 }
        #expect(Set(processed.map(\.apnsID)).count == processed.count)
        #expect(run.acceptedCount + run.count(where: \.isUnknown) == 300)
        #expect(run.acceptedCount <= scene.simulator.counts().accepted)
        #expect(run.count(where: \.isUnknown) <= 100)
        #expect(scene.simulator.counts().refusedStreams == 0)
    }

    package func `a connection that closes under a push leaves its outcome unknown`() async throws {
        let scene = try LaneScene { options in
            options.faults = [FaultRule(when: .token(LaneScene.token(1)), moment: .afterChecks, action: .close)]
        }
        let run = await LaneRun.of(scene.lane(kind) { $0.streamsMax = 1 }, LaneScene.batch(0..<3))
        guard case .unknown(.connectionLost) = run.result(1) else {
            Issue.record("\(String(describing: run.result(1)))")
            return
        }
        #expect(run.acceptedCount == 2)
        #expect(scene.simulator.counts().accepted == 3)
    }

    package func `a host that cannot be reached ends the lane with the push unsent`() async throws {
        let scene = try LaneScene()
        let closed = try ClosedPort()
        let endpoint = PushEndpoint(host: "127.0.0.1", port: closed.number)
        let run = await LaneRun.of(
            scene.lane(kind, to: endpoint) { $0.connectAttemptsMax = 3 }, LaneScene.batch(0..<50))
        guard case .unreachable(endpoint, let reason) = run.error else {
            Issue.record("\(String(describing: run.error))")
            return
        }
        #expect(reason.contains("127.0.0.1"))
        #expect(run.isComplete(0..<50))
        #expect(run.count { $0 == .notSent(.unreachable(reason)) } == 50)
    }

    package func `a service that goes away in mid run leaves no push without a response`() async throws {
        let scene = try LaneScene { options in
            options.faults = (1..<500).map { FaultRule(when: .token(LaneScene.token($0)), action: .silence) }
        }
        let lane = scene.lane(kind) { $0.streamsMax = 100 }
        async let ended = LaneRun.end(of: lane)
        #expect(await lane.send(LaneScene.batch(0..<500)))
        var run = LaneRun()
        run.take(await lane.completions() ?? [])
        scene.simulator.stop()
        while let completions = await lane.completions() { run.take(completions) }
        // Another test's simulator may have the port by now, with a certificate of its own.
        switch await ended {
        case .unreachable, .untrusted: break
        case let other: Issue.record("\(String(describing: other))")
        }
        #expect(run.isComplete(0..<500))
        #expect(run.acceptedCount == 1)
        #expect(run.count(where: \.isNotSent) >= 399)
    }

    package func `a server whose certificate does not verify is not spoken to`() async throws {
        let scene = try LaneScene()
        let other = try LaneScene()
        let run = await LaneRun.of(
            scene.lane(kind, trust: other.simulator.authorityPath), LaneScene.batch(0..<5))
        guard case .untrusted(scene.endpoint, _) = run.error else {
            Issue.record("\(String(describing: run.error))")
            return
        }
        #expect(run.count(where: \.isNotSent) == 5)
        #expect(scene.simulator.counts().requests == 0)
    }

    package func `a missing file of trusted certificates is named`() async throws {
        let scene = try LaneScene()
        let run = await LaneRun.of(scene.lane(kind, trust: "/nonexistent/ca.pem"), LaneScene.batch(0..<1))
        #expect(run.error?.description.contains("/nonexistent/ca.pem") == true, "\(String(describing: run.error))")
    }
}
