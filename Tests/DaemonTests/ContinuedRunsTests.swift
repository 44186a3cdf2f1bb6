import APNs
import Campaigns
import Daemon
import Foundation
import Model
import Sending
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// A run that stopped by itself continues by itself once the cause is gone.
@Suite(.timeLimit(.minutes(10))) struct `A run that paused itself` {
    private func messages(_ scene: DaemonScene) async throws -> [WebhookMessage] {
        try await scene.store.takeWebhookMessages(
            now: scene.clock.now + .seconds(86_400), limit: 99, until: scene.clock.now + .seconds(90_000))
    }

    private static func halt(_ trouble: TroubledTransport.Trouble) -> RunHalt {
        switch trouble {
        case .unreachable: .unreachable
        case .credential: .credential
        }
    }

    @Test(arguments: [TroubledTransport.Trouble.unreachable, .credential])
    func `continues in the daemon once the cause is gone, and is told of once`(
        trouble: TroubledTransport.Trouble
    ) async throws {
        let scene = try await DaemonScene(devices: 50)
        try await scene.store.setWebhooks([.init(url: "https://a.example", secretPath: "/s")])
        let transport = TroubledTransport(trouble)
        let daemon = scene.daemon(transport)
        try await scene.running(daemon, DaemonScene.snapshot(scene.campaign("c"))) {
            try await scene.turn(daemon, until: "c") { $0?.halt == Self.halt(trouble) && $0?.owner == nil }
            let first = transport.refusing.seen.count
            let began = scene.clock.now
            // It is tried in vain for a while.
            try await scene.turn(daemon, until: "c", within: .seconds(900), inStepsOf: .seconds(5)) { run in
                (run?.heartbeatAt).map { $0 > began + .seconds(500) } ?? false && run?.state == .paused
            }
            // With one request each time.
            let tries = transport.refusing.seen.count - first
            #expect(trouble == .unreachable ? tries == 0 : (2...6).contains(tries), "\(tries)")
            transport.end()
            try await scene.turn(daemon, until: "c", within: .seconds(400), inStepsOf: .seconds(5)) {
                $0?.state == .finished
            }
        }
        let report = try await scene.store.report(try #require(try await scene.run(of: "c")).id)
        #expect(report.counts.accepted == 50 && transport.whole.seen.count == 50)
        #expect(try await messages(scene).map(\.kind) == [.paused, .finished])
    }

    @Test func `is late when the cause lasts for longer than late_by_max, and then waits for a person`() async throws {
        let scene = try await DaemonScene()
        let transport = TroubledTransport(.unreachable)
        let daemon = scene.daemon(transport)
        try await scene.running(daemon, DaemonScene.snapshot(scene.campaign("c"))) {
            try await scene.turn(daemon, until: "c", within: .seconds(7000), inStepsOf: .seconds(25)) {
                $0?.halt == .late
            }
            let late = try #require(try await scene.run(of: "c"))
            let found = scene.clock.now - late.createdAt
            #expect(found > .seconds(3600) && found <= .seconds(3600 + 900), "\(found)")
            transport.end()
            for _ in 0..<20 { await scene.pass(.seconds(50), daemon) }
            #expect(transport.whole.seen.isEmpty)
            #expect(try await scene.run(of: "c")?.halt == .late)
        }
    }

    @Test func `for want of its app is tried as soon as the configuration that names the app is read`() async throws {
        let scene = try await DaemonScene()
        let (transport, isConfigured) = (ScriptedTransport { _, _ in ScriptedTransport.accepted }, Flag())
        let senders = scene.senders { topic in
            guard isConfigured.isUp else { throw SendingError.noEndpoint(topic: topic) }
            return DaemonScene.setup(transport)
        }
        let daemon = scene.daemon(senders)
        try await scene.running(daemon, DaemonScene.snapshot(scene.campaign("c"))) {
            try await scene.turn(daemon, until: "c") { $0?.halt == .credential && $0?.owner == nil }
            isConfigured.raise()
            senders.reload()
            try await scene.turn(daemon, until: "c", within: .seconds(60)) { $0?.state == .finished }
        }
        #expect(transport.seen.count == 3)
    }

    @Test(arguments: [TroubledTransport.Trouble.unreachable, .credential])
    func `is tried again by run --due, not before its pause is over`(
        trouble: TroubledTransport.Trouble
    ) async throws {
        let scene = try await DaemonScene()
        let transport = TroubledTransport(trouble)
        let snapshot = DaemonScene.snapshot(scene.campaign("c"))
        var call = 0
        func runOnce() async throws -> [RunEnd] {
            call += 1
            return try await scene.daemon(transport, named: "call-\(call)").runOnce(snapshot, idleLimit: .zero).runs
                .map(\.end)
        }
        let first = try await runOnce()
        #expect(first.count == 1 && first.first?.goesOnWithNextStart == true)
        transport.end()
        #expect(try await runOnce().isEmpty)
        let pause = try #require(Self.halt(trouble).firstRetryAfter)
        scene.clock.advance(by: pause - .milliseconds(1))
        #expect(try await runOnce().isEmpty)
        scene.clock.advance(by: .milliseconds(1))
        #expect(try await runOnce() == [.finished])
    }

    /// The daemon is recorded as the owner, as after a claim whose response it lost.
    @Test(arguments: [RunState.cancelled, .paused])
    func `that the daemon could not leave is left later, so that others can end it`(state: RunState) async throws {
        let scene = try await DaemonScene(devices: 5)
        let store = scene.store
        let run = try await scene.scene.start(scene.scene.definition())
        #expect(try await store.claim(run.id, by: Actor("daemon"), now: scene.clock.now) == .claimed)
        _ = try await store.freeze(run.id, by: "daemon", now: scene.clock.now) { _ in }
        _ = try await store.lease(
            LeaseRequest(run: run.id, environment: .production, limit: 2, now: scene.clock.now, owner: "daemon"))
        try await store.change(run.id, to: state, reason: nil, now: scene.clock.now, by: "ray", seen: nil)
        #expect(try await store.run(run.id)?.counts.leased == 2)
        let daemon = scene.daemon(ScriptedTransport { _, _ in ScriptedTransport.accepted })
        try await scene.running(daemon, DaemonScene.snapshot()) {
            try await scene.turn(daemon, until: run.campaign, within: .seconds(60)) { $0?.owner == nil }
        }
        let left = try #require(try await store.run(run.id))
        #expect(left.state == state && left.counts.leased == 0)
        #expect((left.finishedAt != nil) == (state == .cancelled))
        #expect(left.counts.pending == (state == .cancelled ? 0 : 5))
        #expect(left.counts.suppressed == (state == .cancelled ? 5 : 0))
    }
}
