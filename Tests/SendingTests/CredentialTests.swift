import APNs
import Foundation
import Logging
import LonePipeline
import Model
import SQLiteStore
@testable import Sending
import SendingScene
import Store
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct `A refused credential` {
    private static let sandbox = 10_000
    private let scene: PipelineScene

    init() throws {
        scene = try PipelineScene()
    }

    /// Sandbox devices have the higher numbers.
    private func transport(_ sandbox: PushResult) -> ScriptedTransport {
        ScriptedTransport { push, _ in
            PipelineScene.number(push.token) < Self.sandbox ? ScriptedTransport.accepted : sandbox
        }
    }

    private func addDevices(production: Int, sandbox: Int) async throws {
        try await scene.addDevices(0..<production)
        try await scene.addDevices(Self.sandbox..<Self.sandbox + sandbox, environment: .sandbox)
    }

    private func pipeline(
        _ transports: [PushEnvironment: any Transport], leaseMax: Int = 1000
    ) -> LonePipeline {
        let all: [PushEnvironment: PushEndpoint] = [.production: .production, .sandbox: .sandbox]
        var sender = SendingSetup(
            transports: transports, endpoints: all.filter { transports[$0.key] != nil }, lanesPerEnvironment: 2,
            silentBudget: .init())
        sender.leaseMax = leaseMax
        for environment in transports.keys { sender.credentials[environment] = "key \(environment)KEY" }
        return LonePipeline(
            store: scene.store, sender: sender, clock: scene.clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
    }

    private func execute(
        _ run: Run, _ transports: [PushEnvironment: any Transport], leaseMax: Int = 1000, idleLimit: Duration? = nil
    ) async throws -> RunEnd {
        try await pipeline(transports, leaseMax: leaseMax).execute(run, as: "test", idleLimit: idleLimit) { _, _ in }
    }

    private func refusal(_ end: RunEnd) throws -> String {
        guard case .credentialRefused(let reason) = end else {
            Issue.record("it ended otherwise: \(end)")
            return ""
        }
        return reason
    }

    @Test(arguments: [
        PushReason.invalidProviderToken, .badEnvironmentKeyIdInToken, .missingProviderToken, .expiredProviderToken,
        .unrelatedKeyIdInToken, .forbidden, .badCertificateEnvironment,
    ])
    func `stops its environment, and the other one goes on to its end`(reason: PushReason) async throws {
        try await addDevices(production: 3000, sandbox: 200)
        let run = try await scene.start(try scene.definition { $0.maxAttempts = 1 })
        let refusing = transport(ScriptedTransport.refused(403, reason))
        let end = try await execute(run, [.production: refusing, .sandbox: refusing], leaseMax: 50)
        let words = try refusal(end)
        for word in [
            reason.description, "sandbox, key sandboxKEY", "200 deliveries", "a daemon retries them automatically",
        ] {
            #expect(words.contains(word), "\(words)")
        }
        #expect(!words.contains("production"))
        let report = try await scene.report(run)
        #expect((report.counts.accepted, report.counts.pending) == (3000, 200))
        #expect(report.run.state == .paused && report.run.halt == .credential && report.run.stateReason == words)
        // Two lanes of one lease on the wire and one behind it, at most; tried twice where a new token may help.
        #expect(refusing.seen.count { PipelineScene.number($0.push.token) >= Self.sandbox } <= 400)
        // Still refused: one request says so.
        let tried = ScriptedTransport { _, _ in ScriptedTransport.refused(403, reason) }
        _ = try refusal(try await execute(run, [.production: tried, .sandbox: tried], leaseMax: 50))
        let isOfToken = [.expiredProviderToken, .unrelatedKeyIdInToken].contains(reason)
        #expect(isOfToken ? tried.seen.count <= 400 : tried.seen.count == 1, "\(tried.seen.count)")
        // The key put right, nobody is missing, and no attempt was used up.
        let accepting = transport(ScriptedTransport.accepted)
        #expect(try await execute(run, [.production: accepting, .sandbox: accepting]) == .finished)
        #expect(try await scene.report(run).counts.accepted == 3200)
        #expect(accepting.seen.count == 200)
    }

    @Test func `of both environments ends the run`() async throws {
        try await addDevices(production: 500, sandbox: 200)
        let run = try await scene.start(try scene.definition())
        let refusing = ScriptedTransport { _, _ in ScriptedTransport.refused(403, .invalidProviderToken) }
        let words = try refusal(try await execute(run, [.production: refusing, .sandbox: refusing], leaseMax: 50))
        #expect(words.contains("production, key productionKEY"), "\(words)")
        #expect(words.contains("sandbox, key sandboxKEY"), "\(words)")
        #expect(try await scene.report(run).counts.pending == 700)
    }

    @Test func `that its lanes cannot even use stops its environment alone`() async throws {
        try await addDevices(production: 500, sandbox: 200)
        let run = try await scene.start(try scene.definition())
        let broken = ScriptedTransport(failure: .credentialUnusable("no such file")) { _, _ in .notSent(.stopped) }
        let end = try await execute(
            run, [.production: transport(ScriptedTransport.accepted), .sandbox: broken], leaseMax: 50)
        let words = try refusal(end)
        #expect(words.contains("sandbox, key sandboxKEY: no such file"), "\(words)")
        let counts = try await scene.report(run).counts
        #expect((counts.accepted, counts.pending) == (500, 200))
    }

    @Test func `an environment without a key is said to have none when the other is done`() async throws {
        try await addDevices(production: 500, sandbox: 7)
        let run = try await scene.start(try scene.definition())
        let accepting = transport(ScriptedTransport.accepted)
        let words = try refusal(try await execute(run, [.production: accepting]))
        #expect(words.contains("sandbox: the app has no key for it; add keys.sandbox"), "\(words)")
        let report = try await scene.report(run)
        #expect((report.counts.accepted, report.counts.pending) == (500, 7))
        #expect(report.run.halt == .credential)
        #expect(try await execute(run, [.production: accepting, .sandbox: accepting]) == .finished)
        #expect(accepting.seen.count == 507)
    }

    @Test func `an environment without a key that has no devices is no matter`() async throws {
        try await addDevices(production: 500, sandbox: 0)
        let run = try await scene.start(try scene.definition())
        #expect(try await execute(run, [.production: transport(ScriptedTransport.accepted)]) == .finished)
    }

    /// A device of the other environment is asked to wait for half a minute: it has its turn first.
    @Test func `ends the run only when nothing of the other environment waits any more`() async throws {
        try await addDevices(production: 100, sandbox: 5)
        let run = try await scene.start(try scene.definition())
        let refusing = ScriptedTransport { push, times in
            let number = PipelineScene.number(push.token)
            if number >= Self.sandbox { return ScriptedTransport.refused(403, .invalidProviderToken) }
            return number == 7 && times == 0
                ? ScriptedTransport.refused(429, .tooManyRequests) : ScriptedTransport.accepted
        }
        async let end = execute(run, [.production: refusing, .sandbox: refusing])
        await scene.clock.sleeper(atLeast: .seconds(29))
        async let driver: Void = scene.clock.run(inStepsOf: .seconds(30))
        _ = try refusal(try await end)
        scene.clock.release()
        await driver
        let counts = try await scene.report(run).counts
        #expect((counts.accepted, counts.pending) == (100, 5))
    }

    @Test func `leaves a run to others when the rest of the other environment is due much later`() async throws {
        try await addDevices(production: 100, sandbox: 5)
        let run = try await scene.start(try scene.definition())
        let refusing = ScriptedTransport { push, _ in
            let number = PipelineScene.number(push.token)
            if number >= Self.sandbox { return ScriptedTransport.refused(403, .invalidProviderToken) }
            return number == 7 ? ScriptedTransport.refused(429, .tooManyRequests) : ScriptedTransport.accepted
        }
        let end = try await execute(run, [.production: refusing, .sandbox: refusing], idleLimit: .seconds(5))
        guard case .waiting = end else {
            Issue.record("it ended otherwise: \(end)")
            return
        }
        #expect(try await scene.report(run).counts.pending == 6)
    }
}

/// Two processes on one store, each with sources of its own, and several apps in each.
@Suite(.timeLimit(.minutes(10))) struct `Provider tokens of a store` {
    private let folder: TemporaryDirectory
    private let time = ManualTime()

    init() throws {
        folder = try TemporaryDirectory()
        try OpenSSLCommand.makeSigningKey(at: folder.file("key.p8"))
    }

    private func process() throws -> (store: SQLiteFileStore, tokens: ProviderTokens) {
        let store = try SQLiteFileStore(path: folder.file("store.sqlite"))
        let clock = ProviderTokenClock(now: time.now, uptime: time.uptime, bootID: "boot")
        return (store, ProviderTokens(log: store, clock: clock, logger: Logger(label: "test")))
    }

    private func source(_ tokens: ProviderTokens, keyID: String = "ABC123DEFG") throws -> ProviderTokenSource {
        try tokens.source(of: try SigningKey(path: folder.file("key.p8")), teamID: "DEF123GHIJ", keyID: keyID)
    }

    private func token(_ source: ProviderTokenSource) async throws -> [UInt8] {
        try await source.keepFresh { try source.authorization().authorization }
    }

    @Test func `are one for each key, in one process and in several, also after all have ended`() async throws {
        let first = try process()
        let token = try await token(try source(first.tokens))
        // Another app, or the same after a reload, reads the key file again.
        #expect(try source(first.tokens) === (try source(first.tokens)))
        let second = try process()
        #expect(try await self.token(try source(second.tokens)) == token)
        try first.store.close()
        try second.store.close()
        time.advance(by: .seconds(600))
        let third = try process()
        #expect(try await self.token(try source(third.tokens)) == token)
        #expect(third.tokens.ages().map(\.age) == [.seconds(600)])
        #expect(try await self.token(try source(third.tokens, keyID: "XYZ123DEFG")) != token)
        try third.store.close()
    }

    @Test func `are not those of a key that was replaced in its file`() async throws {
        let first = try process()
        let token = try await token(try source(first.tokens))
        try FileManager.default.removeItem(atPath: folder.file("key.p8"))
        try OpenSSLCommand.makeSigningKey(at: folder.file("key.p8"))
        #expect(try await self.token(try source(first.tokens)) != token)
        let second = try process()
        #expect(try await self.token(try source(second.tokens)) != token)
        try first.store.close()
        try second.store.close()
    }
}
