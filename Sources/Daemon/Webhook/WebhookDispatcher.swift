package import Logging
package import Model
import Platform
import Sending
package import Store
import Synchronization
package import WebClient

/// Delivers messages about runs and approvals to webhooks. It takes the messages from the store's outbox, posts them,
/// and retries after growing pauses until they are accepted or three days old. No sender of pushes waits for it.
package struct WebhookDispatcher: Sendable {
    package typealias WebhookStore = DaemonLog & RunLog & AuditLog & DeliveryQueue & ApprovalLog

    private static let atOnce = 4
    /// The duration of a message's lease, longer than a request may take. No other process tries the message
    /// meanwhile.
    private static let heldFor: Duration = .seconds(60)
    /// The shortest time that a request gets. A shorter one would count as a failed attempt.
    private static let requestMin: Duration = .seconds(1)
    private static let firstPause: Duration = .milliseconds(500)
    private static let pauseMax: Duration = .seconds(3600)
    /// The time after which a message is given up.
    package static let keptFor: Duration = .seconds(3 * 86_400)

    private let store: any WebhookStore
    private let actor: Actor
    private let signatures: [String: WebhookSignature]
    private let web: HTTPClient
    private let clock: WallClock
    private let jitter: @Sendable () -> Double
    private let logger: Logger
    private let busy = BusyWebhooks()

    /// - Parameters:
    ///   - signatures: the signatures by the webhook's address.
    ///   - jitter: returns a number from 0 to 1, to spread attempts.
    package init(
        store: any WebhookStore, actor: Actor, signatures: [String: WebhookSignature], web: HTTPClient,
        clock: WallClock,
        jitter: @escaping @Sendable () -> Double, logger: Logger
    ) {
        self.store = store
        self.actor = actor
        self.signatures = signatures
        self.web = web
        self.clock = clock
        self.jitter = jitter
        self.logger = logger
    }

    /// Registers the configured webhooks, so that later events of runs are kept for them. Call this before the
    /// process changes any run. Throws ``Failure`` for a secret that cannot be read.
    ///
    /// - Parameter isDaemon: whether the actor is a daemon. Its webhooks then stay registered as long as it lives.
    package static func registered(
        _ webhooks: [Configuration.Webhook], store: any WebhookStore, actor: Actor, isDaemon: Bool, web: HTTPClient,
        clock: WallClock, jitter: @escaping @Sendable () -> Double, logger: Logger
    ) async throws -> WebhookDispatcher {
        let signatures = try signatures(of: webhooks)
        try await store.setWebhooks(webhooks, of: isDaemon ? actor.name : nil)
        return WebhookDispatcher(
            store: store, actor: actor, signatures: signatures, web: web, clock: clock, jitter: jitter, logger: logger)
    }

    /// Registers a daemon's webhooks again if another process has removed one of them.
    func keepRegistered(_ webhooks: [Configuration.Webhook]) async throws {
        try await store.keepWebhooks(webhooks, of: actor.name)
    }

    /// Returns the signatures by URL. Throws ``Failure`` for a secret that cannot be read.
    package static func signatures(of webhooks: [Configuration.Webhook]) throws -> [String: WebhookSignature] {
        let pairs = try webhooks.map { ($0.url, WebhookSignature(secret: try WebhookSecret.read($0.secretPath))) }
        return Dictionary(pairs) { $1 }
    }

    /// Delivers what is due, for a process that is about to exit, until nothing is left or the time is up. The
    /// remaining messages stay in the store for the next process.
    package func drain(within limit: Duration) async throws {
        let end = clock.uptime() + limit
        while !Task.isCancelled, mayTake(until: end) {
            try await deliverDue(until: end)
            guard let next = try await store.nextWebhookMessage(of: Set(signatures.keys)) else { return }
            let wait = next - clock.now()
            guard wait <= end - Self.requestMin - clock.uptime() else { return }
            await clock.sleep(max(.milliseconds(10), wait))
        }
    }

    /// Whether a message that is taken now has the time for a request.
    private func mayTake(until end: Duration?) -> Bool { end.map { clock.uptime() + Self.requestMin < $0 } ?? true }

    /// Tries each due message once.
    ///
    /// - Parameter end: the time by ``WallClock/uptime`` at which all requests end. No message is taken in the second
    ///   before it.
    package func deliverDue(until end: Duration? = nil) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            while mayTake(until: end) {
                let batches = try await takeDue()
                for batch in batches { group.addTask { try await deliver(batch, until: end) } }
                if batches.isEmpty, try await group.next() == nil { return }
            }
            try await group.waitForAll()
        }
    }

    /// Due messages of one webhook, taken from the outbox.
    package struct Batch: Sendable {
        fileprivate var url: String
        fileprivate var messages: [WebhookMessage]
    }

    /// Takes due messages of the webhooks without a batch in flight. A webhook that does not respond thus delays no
    /// other. Messages of webhooks that this process does not know stay for a process that can sign them. Each batch
    /// must be passed to ``deliver(_:until:)``.
    package func takeDue() async throws -> [Batch] {
        let known = Set(signatures.keys)
        guard let next = try await store.nextWebhookMessage(of: known), next <= clock.now() else { return [] }
        return try await busy.gate.pass {
            let now = clock.now()
            let messages = try await store.takeWebhookMessages(
                now: now, limit: Self.atOnce, until: now + Self.heldFor, of: known.subtracting(busy.urls))
            let batches = Dictionary(grouping: messages, by: \.url).map { Batch(url: $0.key, messages: $0.value) }
            busy.insert(batches.map(\.url))
            return batches
        }
    }

    /// Tries each message of a batch once.
    package func deliver(_ batch: Batch, until end: Duration? = nil) async throws {
        defer { busy.remove(batch.url) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for message in batch.messages { group.addTask { try await deliverAlone(message, end) } }
            try await group.waitForAll()
        }
    }

    /// Delivers a message. A message that cannot be built or looked up waits like one that is not accepted, so it
    /// delays no other.
    private func deliverAlone(_ message: WebhookMessage, _ end: Duration?) async throws {
        do {
            try await deliver(message, end)
        } catch {
            if Task.isCancelled || DaemonEnd.isReason(error, owner: actor.name) { throw error }
            try await postpone(message, "\(error)")
        }
    }

    private func deliver(_ message: WebhookMessage, _ end: Duration?) async throws {
        let id = "\(String(store.namespace.high, radix: 16))-\(message.event)"
        guard let signature = signatures[message.url] else { return }
        guard let body = try await body(message, id: id) else {
            return try await store.removeWebhookMessage(message.id)
        }
        var headers = signature.headers(id: id, seconds: clock.now().seconds, body: body)
        headers["Content-Type"] = "application/json"
        let problem: String
        do throws(WebError) {
            let request = WebRequest(.post(body: body), message.url, headers: headers)
            let answer = try await web.send(request, within: end.map { max(.milliseconds(1), $0 - clock.uptime()) })
            if (200..<300).contains(answer.status) { return try await done(message) }
            problem = "it responds \(answer.status)"
        } catch {
            problem = error.description
        }
        try await postpone(message, problem)
    }

    /// Returns the JSON of a message. `nil` if its run or approval no longer exists.
    private func body(_ message: WebhookMessage, id: String) async throws -> [UInt8]? {
        if let number = message.approval {
            return try await store.approval(.number(number)).map { try WebhookBody(message, id: id, $0).bytes }
        }
        return try await store.run(message.run).map { try WebhookBody(message, id: id, run: $0).bytes }
    }

    private func done(_ message: WebhookMessage) async throws(WebError) {
        do {
            try await store.removeWebhookMessage(message.id)
        } catch {
            // The webhook gets the message once more, with the same id.
            logger.warning("a webhook's message stays in the outbox", metadata: .facts([.reason: "\(error)"]))
        }
    }

    /// Returns the pause until the next attempt, without jitter: twice as long each time, up to ``pauseMax``.
    package static func pause(afterAttempts attempts: Int) -> Duration {
        var pause = firstPause
        for _ in 1..<min(max(attempts, 1), 14) { pause = pause * 2 }
        return min(pause, pauseMax)
    }

    private func postpone(_ message: WebhookMessage, _ problem: String) async throws {
        let now = clock.now()
        let pause = Self.pause(afterAttempts: message.attempts)
        let metadata: Logger.Metadata = .facts([
            .url: "\(ShownURL.text(message.url))", .reason: "\(problem)",
            .run: message.approval.map { "approval \($0)" } ?? "\(message.run)",
        ])
        guard now < message.at + Self.keptFor else {
            logger.error("a webhook message is no longer retried", metadata: metadata)
            try await store.recordEvent(
                kind: .webhookGivenUp, run: message.approval == nil ? message.run : nil, actor: actor.named("webhooks"),
                detail: "\(ShownURL.text(message.url)): \(problem)", now: now)
            return try await store.removeWebhookMessage(message.id)
        }
        logger.warning("a webhook message is retried later", metadata: metadata)
        let jitter = Duration.milliseconds(Int64(Double(pause.wholeMilliseconds) * 0.2 * jitter()))
        try await store.postponeWebhookMessage(message.id, until: now + pause + jitter, problem: problem)
    }
}

/// The webhooks that have a batch of messages in flight.
private final class BusyWebhooks: Sendable {
    /// One taker at a time, so that no two take messages of one webhook.
    let gate = AsyncGate()
    private let state = Mutex(Set<String>())

    var urls: Set<String> { state.withLock { $0 } }

    func insert(_ urls: [String]) { state.withLock { $0.formUnion(urls) } }

    func remove(_ url: String) { state.withLock { _ = $0.remove(url) } }
}
