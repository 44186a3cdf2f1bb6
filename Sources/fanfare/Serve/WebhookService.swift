import Foundation
import Logging
import Model
import Store
import Daemon
import Sending

/// Delivers webhooks as the configuration says now.
struct WebhookService {
    private static let lookEvery: Duration = .seconds(1)

    let reloading: Reloading
    let store: any AllRoles
    let logger: Logger
    private let first: WebhookDispatcher

    /// Throws ``Failure`` for a secret that cannot be read.
    init(reloading: Reloading, store: any AllRoles, logger: Logger) async throws {
        self.reloading = reloading
        self.store = store
        self.logger = logger
        first = try await .registered(reloading.configuration, store, logger: logger)
    }

    /// Until the task is cancelled; webhooks that cannot be taken over leave the old ones in place.
    func run() async {
        var (courier, known) = (first, reloading.configuration.webhooks)
        while !Task.isCancelled {
            let wanted = reloading.configuration.webhooks
            do {
                if wanted != known {
                    known = wanted
                    courier = try await .registered(reloading.configuration, store, logger: logger)
                }
                try await courier.deliverDue()
            } catch is CancellationError {
            } catch {
                logger.error(
                    "webhooks wait", metadata: ["reason": "\((error as? Failure)?.messages.first ?? "\(error)")"])
            }
            await WallClock.system.sleep(Self.lookEvery)
        }
    }
}
