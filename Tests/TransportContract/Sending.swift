import APNs
import APNsSimulator
import Platform
import TestSupport
import Testing

// What every transport promises when all goes well.
extension TransportPromises {
    package func `every push is answered once and seen once under its own id`() async throws {
        let scene = try LaneScene()
        let run = await LaneRun.of(scene.lane(kind), LaneScene.batch(0..<300), LaneScene.batch(300..<500))
        #expect(run.error == nil)
        #expect(run.isComplete(0..<500))
        #expect(run.acceptedCount == 500)
        let log = scene.simulator.log()
        #expect(log.count == 500)
        #expect(Set(log.map(\.apnsID)) == Set((0..<500).map { LaneScene.push($0).id.description }))
        #expect(run.completions.values.joined().allSatisfy { $0.latencyMicroseconds > 0 })
    }

    package func `thousands of pushes go over one connection`() async throws {
        let scene = try LaneScene { $0.unknownTokens = .accept }
        let run = await LaneRun.of(
            scene.lane(kind), LaneScene.batch(0..<1000), LaneScene.batch(1000..<2000), LaneScene.batch(2000..<3000))
        #expect(run.isComplete(0..<3000))
        #expect(run.acceptedCount == 3000)
        #expect(scene.simulator.counts().connections == 1)
    }

    package func `token, headers and payload arrive as given`() async throws {
        let scene = try LaneScene()
        let first = PushHeaders(
            topic: LaneScene.topic, pushType: "alert", priority: 5, expiration: 1_900_000_000, collapseID: "run-7")
        let second = PushHeaders(topic: LaneScene.topic, pushType: "alert", priority: 10, expiration: 0)
        let lane = scene.lane(kind)
        let run = await LaneRun.of(
            lane, LaneScene.batch(0..<20, headers: first), LaneScene.batch(20..<40, headers: second))
        #expect(run.acceptedCount == 40)
        for entry in scene.simulator.log() {
            let number = try #require((0..<40).first { LaneScene.push($0).id.description == entry.apnsID })
            let headers = number < 20 ? first : second
            #expect(entry.token == HexText.of(LaneScene.token(number)))
            #expect(entry.payload == LaneScene.push(number).payload)
            #expect(entry.topic == headers.topic && entry.pushType == headers.pushType)
            #expect(entry.priority == String(headers.priority) && entry.collapseID == headers.collapseID)
            #expect(entry.expiration == headers.expiration.map { String($0) })
            #expect(entry.hasAuthorization)
        }
    }

    package func `one connection carries all, with one stream until a push was accepted`() async throws {
        let scene = try LaneScene()
        let lane = scene.lane(kind)
        let run = await LaneRun.of(lane, LaneScene.batch(0..<400))
        #expect(run.acceptedCount == 400)
        let log = scene.simulator.log()
        let early = log.filter { !$0.hadAcceptance }
        #expect(!early.isEmpty)
        #expect(early.allSatisfy { $0.openStreams <= 1 })
        #expect(log.map(\.openStreams).max() ?? 0 > 1)
        #expect(scene.simulator.counts().refusedStreams == 0)
        #expect(scene.simulator.counts().connections == 1)
        #expect(lane.status.connects == 1)
    }

    package func `dead tokens at the front are tried alone until one is accepted`() async throws {
        let scene = try LaneScene { options in
            for number in 0..<5 {
                options.registry.setGone(token: LaneScene.token(number), environment: .production, since: 17)
            }
        }
        let run = await LaneRun.of(scene.lane(kind), LaneScene.batch(0..<100))
        #expect(run.acceptedCount == 95)
        #expect(scene.simulator.log().prefix(6).allSatisfy { $0.openStreams <= 1 })
        #expect(scene.simulator.counts().refusedStreams == 0)
    }

    package func `neither our stream limit nor the peer's is passed`(limits: (streamsMax: Int, peer: Int)) async throws
    {
        let scene = try LaneScene { options in
            options.streamsMax = limits.peer
            options.answerDelayMs = 1
        }
        let run = await LaneRun.of(scene.lane(kind) { $0.streamsMax = limits.streamsMax }, LaneScene.batch(0..<200))
        #expect(run.acceptedCount == 200)
        #expect(scene.simulator.log().map(\.openStreams).max() == 7)
        #expect(scene.simulator.counts().refusedStreams == 0)
    }

    package func `a full lane takes the next batch only when answers were taken`() async throws {
        let scene = try LaneScene()
        let lane = scene.lane(kind) { $0.outstandingMax = 10 }
        async let ended = LaneRun.end(of: lane)
        #expect(await lane.send(LaneScene.batch(0..<10)))
        let order = Collected<String>()
        async let second: Void = {
            #expect(await lane.send(LaneScene.batch(10..<20)))
            order.add("second batch taken")
        }()
        // Room for a lane that does not wait to show itself.
        for _ in 0..<2000 { await Task.yield() }
        order.add("answers taken")
        var run = LaneRun()
        while run.completions.count < 20, let completions = await lane.completions() { run.take(completions) }
        await second
        #expect(order.all == ["answers taken", "second batch taken"])
        lane.finish()
        #expect(await lane.completions() == nil)
        #expect(await ended == nil)
        #expect(run.isComplete(0..<20))
    }

    package func `a finished lane answers what it has, takes nothing more and ends`() async throws {
        let scene = try LaneScene()
        let lane = scene.lane(kind)
        #expect(await lane.send(LaneScene.batch(0..<100)))
        lane.finish()
        lane.finish()
        #expect(await lane.send(LaneScene.batch(100..<110)) == false)
        let run = await LaneRun.of(lane)
        #expect(run.isComplete(0..<100))
        #expect(run.acceptedCount == 100)
        #expect(await lane.send(LaneScene.batch(100..<110)) == false)
        #expect(await lane.completions() == nil)
        #expect(lane.status.inFlight == 0 && lane.status.queued == 0)
    }

    package func `a lane without work connects to nobody`() async throws {
        let scene = try LaneScene()
        let run = await LaneRun.of(scene.lane(kind), PushBatch(headers: LaneScene.headers, pushes: []))
        #expect(run.error == nil && run.completions.isEmpty)
        #expect(scene.simulator.counts().connections == 0)
    }

    package func `a name is looked up, and the address that answers is used`() async throws {
        let scene = try LaneScene()
        // Mostly ::1 as well, where nobody listens.
        let endpoint = PushEndpoint(host: "localhost", port: scene.endpoint.port)
        let run = await LaneRun.of(scene.lane(kind, to: endpoint), LaneScene.batch(0..<20))
        #expect(run.error == nil)
        #expect(run.acceptedCount == 20)
    }

    package func `a client certificate may come as PKCS#12`() async throws {
        let scene = try LaneScene()
        let paths = try scene.simulator.issueClientCertificate(
            topic: LaneScene.topic, environment: .production, directory: scene.directory.path)
        let archive = scene.directory.file("push.p12")
        try OpenSSLCommand.run(
            "pkcs12", "-export", "-in", paths.certificatePath, "-inkey", paths.keyPath, "-certfile",
            scene.simulator.authorityPath, "-out", archive, "-passout", "pass:secret")
        let certificate = try ClientCertificate(
            certificatePath: archive, password: "secret", now: SimulatorOptions.systemMilliseconds())
        let run = await LaneRun.of(scene.lane(kind, credential: .certificate(certificate)), LaneScene.batch(0..<20))
        #expect(run.error == nil)
        #expect(run.acceptedCount == 20)
    }

    package func `a client certificate speaks for us without authorization`() async throws {
        let scene = try LaneScene()
        let run = await LaneRun.of(
            scene.lane(kind, credential: try scene.certificate(for: .production)), LaneScene.batch(0..<50))
        #expect(run.error == nil)
        #expect(run.acceptedCount == 50)
        #expect(scene.simulator.log().allSatisfy { !$0.hasAuthorization })
    }
}
