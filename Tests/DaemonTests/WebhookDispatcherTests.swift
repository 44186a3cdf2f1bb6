import Campaigns
import Daemon
import Foundation
import GRDB
import Logging
import Model
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing
import WebClient

@testable import SQLiteStore

/// Messages from the store's outbox to a local server, under a clock that sleeping moves.
@Suite(.timeLimit(.minutes(10))) struct `The webhooks' dispatcher` {
    private static let secret = [UInt8](repeating: 7, count: 32)

    private func dispatcher(_ scene: PipelineScene, _ urls: [String]) -> WebhookDispatcher {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let signature = WebhookSignature(secret: Self.secret)
        let clock = WallClock(
            now: { scene.clock.now }, uptime: { scene.clock.uptime }, sleep: { scene.clock.advance(by: $0) })
        return WebhookDispatcher(
            store: scene.store, actor: "daemon",
            signatures: Dictionary(uniqueKeysWithValues: urls.map { ($0, signature) }),
            web: HTTPClient(addresses: .any), clock: clock, jitter: { 0 }, logger: logger)
    }

    private func end(_ scene: PipelineScene, _ state: RunState, _ occurrence: String = "o") async throws {
        #expect(
            try await scene.store.createEndedRun(
                try scene.definition(), occurrence: occurrence, state: state, reason: "why", now: scene.clock.now,
                by: "test"))
    }

    @Test func `tries again later and later, signed anew, until it is taken`() async throws {
        let scene = try PipelineScene()
        let failures = Mutex(3)
        let server = try LocalServer { _ in
            scene.clock.advance(by: .milliseconds(1))
            return .init(
                failures.withLock { left in
                    left -= 1
                    return left >= 0
                } ? 503 : 200)
        }
        try await scene.store.setWebhooks([.init(url: server.url, secretPath: "")])
        let start = scene.clock.now
        try await end(scene, .missed)
        try await dispatcher(scene, [server.url]).drain(within: .seconds(60))
        #expect(server.requests.count == 4)
        #expect(scene.clock.now - start == .milliseconds(500 + 1000 + 2000 + 4))
        #expect(Set(server.requests.map { $0.headers["webhook-id"] }).count == 1)
        for request in server.requests {
            let seconds = try #require(request.headers["webhook-timestamp"].flatMap { Int64($0) })
            let id = try #require(request.headers["webhook-id"])
            let expected = WebhookSignature(secret: Self.secret).headers(id: id, seconds: seconds, body: request.body)
            #expect(request.headers["webhook-signature"] == expected["webhook-signature"])
        }
        #expect(try await scene.store.nextWebhookMessage() == nil)
    }

    @Test func `says that a plan waits for approval, with its note and the way to it`() async throws {
        let scene = try PipelineScene()
        let server = try LocalServer { _ in .init(200) }
        try await scene.store.setWebhooks([.init(url: server.url, secretPath: "", events: [.approvalWanted])])
        let request = ApprovalRequest(
            definition: try scene.definition(), occurrence: "", plan: "p2-x", digest: "d", reach: 100, needs: 2,
            authors: [], askedBy: "os:carl", askedAt: scene.clock.now, note: "before 9, please")
        let asked = try await scene.store.requestApproval(request, isAnew: false, by: "carl")
        try await dispatcher(scene, [server.url]).drain(within: .seconds(60))
        let body = try #require(server.requests.first?.body)
        let text = String(decoding: body, as: UTF8.self)
        for words in [
            #""type":"plan.approval_wanted""#, #""note":"before 9, please""#, #""asked_by":"os:carl""#, #""needs":2"#,
            #""page":"/approvals/\#(asked.request.id)""#, #""signed_by":[]"#,
        ] {
            #expect(text.contains(words), "\(words) in \(text)")
        }
        #expect(try await scene.store.nextWebhookMessage() == nil)
    }

    /// A receiver refuses what was signed minutes ago: it may be somebody's who listened.
    @Test func `signs each attempt with its own time, not with that of the message`() async throws {
        let scene = try PipelineScene()
        let isUp = Watched(false)
        let server = try LocalServer { _ in .init(isUp.change { $0 } ? 200 : 503) }
        try await scene.store.setWebhooks([.init(url: server.url, secretPath: "")])
        let start = scene.clock.now
        try await end(scene, .missed)
        let dispatcher = dispatcher(scene, [server.url])
        for later in [0, 600, 3600] {
            scene.clock.advance(by: start + .seconds(later) - scene.clock.now)
            isUp.change { $0 = later == 3600 }
            try await dispatcher.deliverDue()
        }
        let signedAt = server.requests.map { $0.headers["webhook-timestamp"].flatMap { Int64($0) } }
        #expect(signedAt == [0, 600, 3600].map { start.seconds + $0 })
        #expect(try await scene.store.nextWebhookMessage() == nil)
    }

    @Test func `tells each webhook what it asked for and no more`() async throws {
        let scene = try PipelineScene()
        let server = try LocalServer { _ in .init(200) }
        let all = server.url + "/all"
        let some = server.url + "/some"
        let pauses = server.url + "/pauses"
        try await scene.store.setWebhooks([
            .init(url: all, secretPath: ""), .init(url: some, secretPath: "", events: [.missed]),
            .init(url: pauses, secretPath: "", events: [.paused]),
        ])
        try await end(scene, .missed, "a")
        try await end(scene, .failed, "b")
        let store = scene.store
        for (occurrence, pausedBy) in [("breaker", nil), ("person", "anna")] {
            let run = try await scene.start(try scene.definition(), occurrence: occurrence)
            _ = try await store.claim(run.id, by: "o", now: scene.clock.now)
            if let pausedBy {
                try await store.change(run.id, to: .paused, reason: nil, now: scene.clock.now, by: Actor(pausedBy))
            }
            try await store.release(
                run.id, by: "o", state: .paused, reason: pausedBy == nil ? "breaker" : nil, now: scene.clock.now)
        }
        let late = try await scene.start(try scene.definition(), occurrence: "late")
        scene.clock.advance(by: .seconds(3601))
        _ = try await store.claim(late.id, by: "o", now: scene.clock.now)
        try await dispatcher(scene, [all, some, pauses]).deliverDue()
        let told = server.requests.map { request in
            let type = request.text.firstMatch(of: /"type":"run\.([a-z]+)"/)?.output.1 ?? ""
            return "\(request.path) \(type)"
        }
        #expect(
            told.sorted() == [
                "/all failed", "/all late", "/all missed", "/all paused", "/pauses paused", "/pauses paused",
                "/some missed",
            ])
        let words = try #require(server.requests.first { $0.text.contains("run.late") }?.text)
        #expect(words.contains(#""state":"paused""#) && words.contains("fanfare resume \(late.id)"), "\(words)")
    }

    @Test func `takes nothing more after the end of its time`() async throws {
        let scene = try PipelineScene()
        let server = try LocalServer { _ in
            scene.clock.advance(by: .seconds(11))
            return .init(200)
        }
        try await scene.store.setWebhooks([.init(url: server.url, secretPath: "")])
        for number in 0..<9 { try await end(scene, .missed, "o\(number)") }
        try await dispatcher(scene, [server.url]).drain(within: .seconds(10))
        #expect((1...4).contains(server.requests.count))
        #expect(try await scene.store.nextWebhookMessage() != nil)
    }

    @Test func `takes nothing that would get less than a second for its request`() async throws {
        let scene = try PipelineScene()
        // Four messages are taken at a time. The first three are answered once the fourth is there as well.
        let requests = Mutex(0)
        let gate = DispatchSemaphore(value: 0)
        let server = try LocalServer { _ in
            let count = requests.withLock { count in
                count += 1
                return count
            }
            if count == 4 {
                scene.clock.advance(by: .milliseconds(9_500))
                for _ in 1...3 { gate.signal() }
            }
            if count < 4 { _ = gate.wait(timeout: .now() + 240) }
            return .init(200)
        }
        try await scene.store.setWebhooks([.init(url: server.url, secretPath: "")])
        for number in 0..<9 { try await end(scene, .missed, "o\(number)") }
        try await dispatcher(scene, [server.url]).drain(within: .seconds(10))
        #expect(server.requests.count == 4)
        let left = try await scene.store.takeWebhookMessages(
            now: scene.clock.now, limit: 9, until: scene.clock.now + .seconds(60))
        #expect(left.count == 5 && left.allSatisfy { $0.attempts == 1 })
    }

    /// The slow webhook answers only once the other one was told.
    @Test func `a webhook that is slow delays no other`() async throws {
        let scene = try PipelineScene()
        let told = DispatchSemaphore(value: 0)
        let server = try LocalServer { request in
            if request.path == "/slow" {
                guard told.wait(timeout: .now() + 20) == .success else { return .init(500) }
            }
            told.signal()
            return .init(200)
        }
        let (slow, quick) = (server.url + "/slow", server.url + "/quick")
        try await scene.store.setWebhooks([
            .init(url: slow, secretPath: ""), .init(url: quick, secretPath: "", events: [.failed]),
        ])
        for number in 0..<5 { try await end(scene, .missed, "o\(number)") }
        try await end(scene, .failed, "last")
        try await dispatcher(scene, [slow, quick]).deliverDue()
        #expect(server.requests.count == 7)
        #expect(try await scene.store.nextWebhookMessage() == nil)
    }

    @Test func `a message in the hand of a process that died is sent by another`() async throws {
        let scene = try PipelineScene()
        let server = try LocalServer { _ in .init(200) }
        try await scene.store.setWebhooks([.init(url: server.url, secretPath: "")])
        try await end(scene, .missed)
        let now = scene.clock.now
        #expect(try await scene.store.takeWebhookMessages(now: now, limit: 9, until: now + .seconds(60)).count == 1)
        let dispatcher = dispatcher(scene, [server.url])
        try await dispatcher.deliverDue()
        #expect(server.requests.isEmpty)
        scene.clock.advance(by: .seconds(60))
        try await dispatcher.deliverDue()
        #expect(server.requests.count == 1)
    }

    /// Two machines may have different configurations for a while.
    @Test func `a process leaves the messages of webhooks that it does not know`() async throws {
        let scene = try PipelineScene()
        let server = try LocalServer { _ in .init(200) }
        let (shared, added) = (server.url + "/shared", server.url + "/added")
        try await scene.store.setWebhooks([.init(url: shared, secretPath: ""), .init(url: added, secretPath: "")])
        try await end(scene, .missed)
        for known in [[], [shared]] {
            let start = scene.clock.uptime
            try await dispatcher(scene, known).drain(within: .seconds(60))
            #expect(scene.clock.uptime - start < .seconds(1), "waits for messages that it may not take")
            #expect(server.requests.map(\.path) == known.map { _ in "/shared" })
        }
        try await dispatcher(scene, [shared, added]).deliverDue()
        #expect(server.requests.map(\.path) == ["/shared", "/added"])
        #expect(try await scene.store.nextWebhookMessage() == nil)
    }

    @Test func `gives up after three days, on record`() async throws {
        let scene = try PipelineScene()
        let server = try LocalServer { _ in .init(404) }
        try await scene.store.setWebhooks([.init(url: server.url, secretPath: "")])
        try await end(scene, .missed)
        let run = try #require(try await scene.store.latestRun(campaign: "c"))
        let (dispatcher, start) = (dispatcher(scene, [server.url]), scene.clock.now)
        // Not every attempt of three days: each is a request, and the next test counts them.
        for hours in [0, 71, 72] {
            #expect(try await scene.store.nextWebhookMessage() != nil)
            scene.clock.advance(by: start + .seconds(hours * 3600) - scene.clock.now)
            try await dispatcher.deliverDue()
        }
        #expect(server.requests.count == 3)
        #expect(try await scene.store.nextWebhookMessage() == nil)
        #expect(try await scene.store.events(run: run.id).contains { $0.kind == "webhook_given_up" })
    }

    @Test func `makes some eighty attempts in three days, in the end once an hour`() {
        var (passed, attempts) = (Duration.zero, 0)
        while passed < WebhookDispatcher.keptFor {
            attempts += 1
            passed += WebhookDispatcher.pause(afterAttempts: attempts)
        }
        #expect((60...120).contains(attempts))
        #expect(WebhookDispatcher.pause(afterAttempts: attempts) == .seconds(3600))
    }

    @Test func `a webhook taken out of the configuration is told nothing more`() async throws {
        let scene = try PipelineScene()
        try await scene.store.setWebhooks([.init(url: "http://127.0.0.1:1/", secretPath: "")])
        try await end(scene, .missed)
        #expect(try await scene.store.nextWebhookMessage() != nil)
        try await scene.store.setWebhooks([])
        #expect(try await scene.store.nextWebhookMessage() == nil)
        try await end(scene, .failed, "b")
        #expect(try await scene.store.nextWebhookMessage() == nil)
    }

    /// A process of an older version replaces the webhooks, and a command without a daemon may do so.
    @Test func `a daemon registers its webhooks again after another process has removed them`() async throws {
        let scene = try PipelineScene()
        let folder = try TemporaryDirectory()
        var configuration = Configuration(store: "a", campaigns: folder.path, templates: folder.path)
        let server = try LocalServer { _ in .init(200) }
        configuration.webhooks = [.init(url: server.url, secretPath: "")]
        let logger = Logger(label: "test")
        let reloading = Reloading(
            source: ConfigurationSource(named: folder.file("fanfare.yaml"), environment: [:]),
            configuration: configuration, logger: logger)
        let service = try await WebhookService(reloading: reloading, clock: scene.clock.clock) { webhooks in
            try await scene.store.setWebhooks(webhooks, of: "daemon")
            return dispatcher(scene, webhooks.map(\.url))
        }
        let supervisor = Supervisor(owner: "daemon", clock: scene.clock.clock, logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await service.run(supervisor) }
            try await scene.store.write { db in try db.execute(sql: "DELETE FROM webhook") }
            for _ in 0..<Int(WebhookService.keptEvery / .seconds(1)) + 1 {
                let next = scene.clock.now + .seconds(1)
                await scene.clock.sleeper(until: next)
                scene.clock.advance(by: .seconds(1))
            }
            await scene.clock.sleeper(until: scene.clock.now + .seconds(1))
            try await end(scene, .missed)
            #expect(try await scene.store.nextWebhookMessage() != nil)
            group.cancelAll()
            try await group.waitForAll()
        }
    }
}
