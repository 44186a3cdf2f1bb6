import ArgumentParser
import Foundation
import Logging
import Model
import Store
import WebClient
import Daemon

extension WebhookDispatcher {
    /// How long a command that is done waits for webhooks; the next process goes on with the rest.
    static let lastWait: Duration = .seconds(10)

    /// Registers the configured webhooks, so that what happens to runs from now on is kept for them. To be called before
    /// anything does; throws ``Failure`` for a secret that cannot be read.
    static func registered(_ session: Session, logger: Logger) async throws -> WebhookDispatcher {
        try await registered(session.configuration.webhooks, session.store, by: session.actor, logger: logger)
    }

    static func registered(
        _ webhooks: [Configuration.Webhook], _ store: any AllRoles, by actor: Actor, logger: Logger
    ) async throws -> WebhookDispatcher {
        try await WebhookDispatcher.registered(
            webhooks, store: store, actor: actor, web: .webhooks, clock: .system,
            jitter: { Double.random(in: 0...1) }, logger: logger)
    }
}

extension HTTPClient {
    static let feeds = HTTPClient(agent: agent)

    /// A receiver that takes longer than this has its message again.
    static let webhooks: HTTPClient = {
        var limits = WebLimits()
        limits.totalTime = .seconds(10)
        limits.connectTime = .seconds(5)
        limits.bodyBytesMax = 1 << 20
        return HTTPClient(limits: limits, agent: agent)
    }()

    private static var agent: String { "fanfare/\(Fanfare.configuration.version)" }
}
