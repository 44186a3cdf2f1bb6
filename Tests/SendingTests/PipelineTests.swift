import APNs
import Logging
import LonePipeline
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `A run` {
    /// The endpoint may be tried before anybody's retry is due: nobody is there to try it.
    @Test func `a retry after a break comes when it is due`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<5)
        let run = try await scene.start(try scene.definition())
        let transport = ScriptedTransport { _, times in
            times == 0 ? ScriptedTransport.refused(503, .serviceUnavailable) : ScriptedTransport.accepted
        }
        // Those of the five retries first, then that of the break.
        let asked = Watched(0)
        let sender = SendingSetup(
            transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 2, silentBudget: .init())
        let pipeline = LonePipeline(
            store: scene.store, sender: sender, clock: scene.clock.clock,
            jitter: {
                asked.change { count in
                    count += 1
                    return count > 5 ? 0 : 1
                }
            }, logger: Logger(label: "test"))
        let (clock, start) = (scene.clock, scene.clock.uptime)
        async let driver: Void = clock.runBySeconds(settlingWithin: .seconds(20))
        #expect(try await pipeline.execute(run, as: "test") { _, _ in } == .finished)
        let took = clock.uptime - start
        clock.release()
        await driver
        // Not half a minute later; the clock goes on while the machine is busy.
        #expect(took < .seconds(25), "\(took)")
        #expect(try await scene.report(run).counts.accepted == 5)
    }

    @Test func `every device gets one push in its language, over bounded leases`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<2500)
        try await scene.addDevices(2500..<2600, environment: .sandbox)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let run = try await scene.start(try scene.definition())
        #expect(try await scene.execute(run, transport, leaseMax: 300) == .finished)
        let seen = transport.seen
        #expect(Set(seen.map(\.push.token)).count == 2600)
        #expect(Set(seen.map(\.push.id)).count == 2600)
        #expect(seen.count == 2600)
        for entry in seen {
            let language = PipelineScene.number(entry.push.token) % 2 == 0 ? "de" : "en"
            #expect(String(decoding: entry.push.payload, as: UTF8.self).contains("Hello \(language)"))
        }
        #expect(Set(seen.map(\.headers.topic)) == [PipelineScene.topic])
        #expect(Set(seen.compactMap(\.headers.collapseID)).count == 1)
        let report = try await scene.report(run)
        #expect(report.counts.accepted == 2600)
        #expect(report.run.state == .finished)
        #expect(report.byEnvironment.map(\.counts.audience).sorted() == [100, 2500])
        #expect(report.byLocale.map(\.counts.accepted).sorted() == [1300, 1300])
    }

    @Test func `a throttled device alone waits, and gets the same push later`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<50)
        let transport = ScriptedTransport { push, times in
            PipelineScene.number(push.token) == 7 && times == 0
                ? ScriptedTransport.refused(429, .tooManyRequests) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition())
        async let end = scene.execute(run, transport)
        await scene.clock.sleeper(atLeast: .seconds(20))
        #expect(transport.seen.count == 50)
        scene.clock.advance(by: .seconds(31))
        #expect(try await end == .finished)
        let attempts = transport.seen.filter { PipelineScene.number($0.push.token) == 7 }
        #expect(attempts.count == 2)
        #expect(Set(attempts.map(\.push.id)).count == 1)
        let report = try await scene.report(run)
        #expect(report.counts.accepted == 50)
        #expect(report.attempts == 51)
    }

    @Test func `an unanswered push goes out under one id until its attempts are used up, then is unknown`() async throws
    {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let transport = ScriptedTransport { push, times in
            switch PipelineScene.number(push.token) {
            case 1: .unknown(.deadline)
            case 2 where times == 0: .unknown(.connectionLost("reset"))
            default: ScriptedTransport.accepted
            }
        }
        let run = try await scene.start(try scene.definition())
        #expect(try await scene.execute(run, transport) == .finished)
        let report = try await scene.report(run)
        #expect(report.counts.accepted == 9)
        #expect(report.unknown.map(\.reason) == ["DeadlineExceeded"])
        #expect(transport.seen.count == 15)
        #expect(Set(transport.seen.map(\.push.id)).count == 10)
    }

    @Test func `skip never sends a doubtful push again`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let transport = ScriptedTransport { push, _ in
            PipelineScene.number(push.token) < 3 ? .unknown(.deadline) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition { $0.onUnknown = .skip })
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(transport.seen.count == 10)
        #expect(try await scene.report(run).counts.unknown == 3)
    }

    @Test func `410 removes a device only if it was not registered since`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<20)
        let registered = (scene.clock.now - .seconds(86_400)).milliseconds
        let transport = ScriptedTransport { push, _ in
            switch PipelineScene.number(push.token) {
            case 1: ScriptedTransport.refused(410, .unregistered, timestamp: registered + 1)
            case 2: ScriptedTransport.refused(410, .unregistered, timestamp: registered - 1)
            default: ScriptedTransport.accepted
            }
        }
        let run = try await scene.start(try scene.definition())
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(try await scene.store.devices(matching: "install-1").first?.status == .gone)
        #expect(try await scene.store.devices(matching: "install-2").first?.status == .active)
        #expect(try await scene.report(run).devicesGone == 1)
    }

    @Test func `a healthy run suspends its wrong tokens, once it is over`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let transport = ScriptedTransport { push, _ in
            PipelineScene.number(push.token) == 3
                ? ScriptedTransport.refused(400, .badDeviceToken) : ScriptedTransport.accepted
        }
        let run = try await scene.start(try scene.definition())
        #expect(try await scene.execute(run, transport) == .finished)
        #expect(try await scene.store.devices(matching: "install-3").first?.status == .suspended)
        #expect(try await scene.report(run).devicesSuspended == 1)
    }

    @Test(arguments: [40, 5000])
    func `a run at the wrong host touches no device`(devices: Int) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<devices)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.refused(400, .badDeviceToken) }
        let run = try await scene.start(try scene.definition())
        let end = try await scene.execute(run, transport, leaseMax: 500)
        if devices > 1000 {
            guard case .breakerOpen(let reason) = end else {
                Issue.record("the breaker stayed closed: \(end)")
                return
            }
            #expect(reason.contains("environment"))
            #expect(try await scene.report(run).run.state == .paused)
        }
        let counts = try await scene.store.deviceCounts()
        #expect(counts.map(\.status) == [.active])
        #expect(counts.map(\.count) == [devices])
    }

    @Test func `a refused credential pauses the run, and the next start finishes it`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let run = try await scene.start(try scene.definition())
        let broken = ScriptedTransport { _, _ in ScriptedTransport.refused(403, .invalidProviderToken) }
        guard case .credentialRefused = try await scene.execute(run, broken) else {
            Issue.record("the credential fault was not seen")
            return
        }
        #expect(try await scene.report(run).counts.pending == 100)
        let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await scene.execute(run, whole) == .finished)
        #expect(try await scene.report(run).counts.accepted == 100)
    }

    @Test func `an unreachable host loses nobody`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<100)
        let run = try await scene.start(try scene.definition())
        let away = ScriptedTransport(failure: .unreachable(.production, reason: "refused")) { _, _ in
            .unknown(.deadline)
        }
        guard case .unreachable = try await scene.execute(run, away) else {
            Issue.record("the lane's failure was not seen")
            return
        }
        let report = try await scene.report(run)
        #expect(report.counts.pending + report.counts.unknown + report.counts.accepted == 100)
        let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        #expect(try await scene.execute(run, whole) == .finished)
        #expect(try await scene.report(run).counts.accepted == 100)
    }

    @Test func `a stop asked for in the middle is obeyed, and nobody is sent to twice`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1000)
        let run = try await scene.start(try scene.definition())
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let end = try await scene.pipeline(transport, lanes: 1, leaseMax: 10).execute(run, as: "first") {
            control, _ in
            control.stop(.stopRequested)
        }
        #expect(end == .stoppedEarly)
        #expect(try await scene.report(run).run.state == .running)
        #expect(try await scene.execute(run, transport, owner: "second") == .finished)
        #expect(transport.seen.count == 1000)
        #expect(try await scene.report(run).counts.accepted == 1000)
    }

    @Test func `at most two leases per lane are in flight`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<1000)
        let run = try await scene.start(try scene.definition())
        let store = scene.store
        let most = Mutex(0)
        // A lane looks at the store at each answer: one in ten at a time comes back.
        let transport = SlowTransport(answersAtOnce: 10) {
            let leased = try await store.summary(run: run.id).leased
            most.withLock { $0 = max($0, leased) }
        }
        #expect(
            try await scene.pipeline(transport, lanes: 2, leaseMax: 50).execute(run, as: "a") { _, _ in }
                == .finished)
        #expect((101...200).contains(most.withLock { $0 }))
        #expect(try await scene.report(run).counts.accepted == 1000)
    }

    @Test func `a run that a living process holds is left alone`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<10)
        let run = try await scene.start(try scene.definition())
        _ = try await scene.store.claim(run.id, by: "other", now: scene.clock.now)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        guard case .busy(let owner, _) = try await scene.execute(run, transport) else {
            Issue.record("the run was taken from its owner")
            return
        }
        #expect(owner == "other")
        #expect(transport.seen.isEmpty)
    }

    @Test func `the fourth silent push within the hour is refused`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<30)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        for number in 1...4 {
            let run = try await scene.start(
                try scene.definition(.background) { $0.expiresAfter = .seconds(1800) }, occurrence: "\(number)")
            #expect(try await scene.execute(run, transport) == .finished)
            let counts = try await scene.report(run).counts
            #expect(counts.accepted == (number < 4 ? 30 : 0))
            #expect(counts.suppressed == (number < 4 ? 0 : 30))
        }
        #expect(transport.seen.count == 90)
    }

    @Test func `a frequency cap holds the campaigns of its class, and no test`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<30)
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let cap = FrequencyCap(limit: 2, window: .seconds(86_400), classes: ["news"])
        for (number, pushClass, accepted) in [(1, "news", 30), (2, "news", 30), (3, "news", 0), (4, nil, 30)] {
            let run = try await scene.start(
                try scene.definition { $0.ownClass = pushClass }, occurrence: "\(number)")
            let end = try await scene.pipeline(transport, caps: [cap]).execute(run, as: "a") { _, _ in }
            #expect(end == .finished)
            let report = try await scene.report(run)
            #expect(report.counts.accepted == accepted && report.counts.suppressed == 30 - accepted)
            #expect(report.suppressed.map(\.reason) == (accepted == 0 ? ["frequency_cap"] : []))
        }
        var test = try await scene.start(try scene.definition { $0.ownClass = "news" }, occurrence: "test")
        #expect(CapRequest(test, caps: [cap]) != nil)
        test.isTest = true
        #expect(CapRequest(test, caps: [cap]) == nil)
        let silent = try await scene.start(try scene.definition(.background), occurrence: "silent")
        #expect(CapRequest(silent, caps: [FrequencyCap(limit: 2, window: .seconds(60))]) == nil)
        #expect(transport.seen.count == 90)
        #expect(try await scene.store.verify(budgets: [:], faultsMax: 9)[CapScan.name]?.compared == 60)
    }

    @Test func `a payload over Apple's limit is left out and told apart`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<4)
        var definition = try scene.definition()
        definition.template.custom = [
            .init("blob", .text(TemplateText(literal: String(repeating: "x", count: 4096))))
        ]
        let transport = ScriptedTransport { _, _ in ScriptedTransport.accepted }
        let run = try await scene.start(definition)
        let reason = "no device was reached: all 4 were left out (payload_too_large 4)"
        #expect(try await scene.execute(run, transport) == .noDeviceReached(reason))
        #expect(transport.seen.isEmpty)
        #expect(try await scene.report(run).suppressed.map(\.reason) == ["payload_too_large"])
        let ended = try await scene.store.run(run.id)
        #expect(ended?.state == .finished && ended?.halt == .unsuccessful && ended?.stateReason == reason)
        #expect(try await scene.store.events(run: run.id).last?.detail == reason)
    }
}
