import Campaigns
import Foundation
import Logging
import Model
import Sending
import Synchronization

/// Checks whether the configured keys and certificates can be used, and until when. Reads them at a start, a reload and
/// a scrape. Scrapes read them at most once a minute. Logs each new problem and its end.
final class CredentialWatch: Sendable {
    struct State: Hashable, Sendable {
        var topic: String
        var environment: PushEnvironment
        var credential: String
        /// The reason why the credential cannot be used. `nil` if it can.
        var problem: String?
        /// The expiry of the certificate. `nil` for keys, which do not expire.
        var expiresAt: Timestamp?
    }

    private static let every: Duration = .seconds(60)

    private let configuration: @Sendable () -> Configuration
    private let logger: Logger
    private let last = Mutex<(states: [State], at: Duration)?>(nil)

    init(logger: Logger, configuration: @escaping @Sendable () -> Configuration) {
        self.configuration = configuration
        self.logger = logger
    }

    /// - Parameter isAnew: reads the files even if they were read within the last minute.
    @discardableResult func look(isAnew: Bool = false) -> [State] {
        let now = SystemUptime.now()
        return last.withLock { last in
            if !isAnew, let last, now - last.at < Self.every { return last.states }
            let states = read()
            log(states, before: last?.states ?? [])
            last = (states, now)
            return states
        }
    }

    private func read() -> [State] {
        configuration().apps.flatMap { app in
            PushEnvironment.allCases.filter(app.credential.environments.contains).map { environment in
                var state = State(
                    topic: app.topic, environment: environment, credential: app.credential.name(in: environment) ?? "")
                do {
                    state.expiresAt = try UnreadableSecret.explained {
                        try CredentialFacts(trying: app.credential, for: environment)
                    }.expiresAt
                } catch {
                    state.problem = "\(error)"
                }
                return state
            }
        }
    }

    private func log(_ states: [State], before: [State]) {
        for state in states {
            let known = before.first { $0.topic == state.topic && $0.environment == state.environment }
            guard known?.problem != state.problem else { continue }
            var facts: Logger.Metadata = .facts([
                .credential: "\(state.credential)", .environment: "\(state.environment.rawValue)",
            ])
            guard let problem = state.problem else {
                logger.notice("credential can be used again", metadata: facts)
                continue
            }
            facts[.reason] = "\(problem)"
            logger.error("credential cannot be used: nothing is sent with it", metadata: facts)
        }
    }
}
