import Campaigns
package import Logging
package import Model
package import Sending

/// Delivers webhooks as the configuration says now.
package struct WebhookService {
    private static let lookEvery: Duration = .seconds(1)

    private let reloading: Reloading
    private let logger: Logger
    private let first: WebhookDispatcher
    private let clock: WallClock
    private let register: Register

    /// Makes the dispatcher of a configuration's webhooks. Throws ``Failure`` for a secret that cannot be read.
    package typealias Register = @Sendable ([Configuration.Webhook]) async throws -> WebhookDispatcher

    package init(reloading: Reloading, clock: WallClock, logger: Logger, register: @escaping Register) async throws {
        self.reloading = reloading
        self.clock = clock
        self.logger = logger
        self.register = register
        first = try await register(reloading.configuration.webhooks)
    }

    /// Until the task is cancelled; webhooks that cannot be taken over leave the old ones in place.
    package func run() async {
        var (dispatcher, known) = (first, reloading.configuration.webhooks)
        while !Task.isCancelled {
            let wanted = reloading.configuration.webhooks
            do {
                if wanted != known {
                    known = wanted
                    dispatcher = try await register(wanted)
                }
                try await dispatcher.deliverDue()
            } catch is CancellationError {
            } catch {
                logger.error(
                    "webhooks wait", metadata: ["reason": "\((error as? Failure)?.messages.first ?? "\(error)")"])
            }
            await clock.sleep(Self.lookEvery)
        }
    }
}
