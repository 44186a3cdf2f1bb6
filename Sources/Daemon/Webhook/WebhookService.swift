import Campaigns
import Foundation
package import Model
import Platform
package import Store
import Synchronization

/// The JSON body of a webhook request: `type` is the event, and `data` describes the run, or the approval of a plan.
struct WebhookBody: Encodable {
    struct Run: Encodable {
        var run: Int64
        var campaign: String
        var occurrence: String
        var state: String
        var reason: String?
        var counts: [String: Int]
        var createdAt: String
        var startedAt: String?
        var finishedAt: String?
    }

    /// A plan that waits for signatures, or has them.
    struct Approval: Encodable {
        /// The number of the request.
        var approval: Int64
        var campaign: String
        var occurrence: String?
        /// The hash of the plan.
        var plan: String
        /// The path of the page on which the plan is read and signed.
        var page: String
        var reach: Int
        var needs: Int
        /// The first words that a phone shows.
        var excerpt: String?
        var note: String?
        var askedBy: String
        var askedAt: String
        var signedBy: [String]
    }

    private enum Content: Encodable {
        case run(Run)
        case approval(Approval)

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .run(let run): try run.encode(to: encoder)
            case .approval(let approval): try approval.encode(to: encoder)
            }
        }
    }

    private var id: String
    private var type: String
    private var timestamp: String
    private var data: Content

    init(_ message: WebhookMessage, id: String, _ record: ApprovalRecord) {
        self.id = id
        type = "plan.\(message.kind.rawValue)"
        timestamp = message.at.iso8601
        let request = record.request
        data = .approval(
            Approval(
                approval: request.id, campaign: request.campaign,
                occurrence: request.occurrence.isEmpty ? nil : request.occurrence, plan: request.plan,
                page: "/approvals/\(request.id)", reach: request.reach, needs: request.needs,
                excerpt: request.definition.excerpt(in: []), note: request.note, askedBy: request.askedBy,
                askedAt: request.askedAt.iso8601,
                signedBy: record.signatures.filter { !$0.isRejection }.map(\.name)))
    }

    init(_ message: WebhookMessage, id: String, run: Model.Run) {
        self.id = id
        type = "run.\(message.kind.rawValue)"
        timestamp = message.at.iso8601
        let counts = run.counts
        let state = message.kind.state ?? run.state
        data = .run(
            Run(
                run: run.id, campaign: run.campaign, occurrence: run.occurrence, state: state.rawValue,
                reason: message.reason,
                counts: [
                    "audience": counts.audience, "pending": counts.pending + counts.leased, "accepted": counts.accepted,
                    "rejected": counts.rejected, "unknown": counts.unknown, "suppressed": counts.suppressed,
                ],
                createdAt: run.createdAt.iso8601, startedAt: run.startedAt?.iso8601, finishedAt: run.finishedAt?.iso8601
            ))
    }

    var bytes: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Array(try encoder.encode(self))
        }
    }
}

/// A webhook's shared secret, in a file of its own.
package enum WebhookSecret {
    private static let bytesMin = 16

    /// Returns the bytes of the file's text without surrounding blanks. If the text begins with `whsec_`, decodes the
    /// rest as base64, as Standard Webhooks defines.
    package static func read(_ path: String) throws -> [UInt8] {
        let text = try SecretFile.text(of: path, holding: "the webhook's secret")
        let prefix = "whsec_"
        let secret =
            text.hasPrefix(prefix)
            ? Data(base64Encoded: String(text.dropFirst(prefix.count))).map { Array($0) } ?? [] : Array(text.utf8)
        guard secret.count >= bytesMin else {
            throw Failure(
                .configuration,
                "\(path) holds no secret of at least \(bytesMin) bytes; create one with `openssl rand -hex 32 > "
                    + "\(path)`"
            )
        }
        return secret
    }
}

/// Delivers webhooks according to the current configuration.
package struct WebhookService {
    private static let lookEvery: Duration = .seconds(1)
    /// The time between checks that the webhooks are still registered. A process of an older version replaces them, and
    /// so does one that counted this daemon as dead.
    package static let keptEvery: Duration = .seconds(60)

    private let reloading: Reloading
    private let first: WebhookDispatcher
    private let clock: WallClock
    private let register: Register

    /// Creates the dispatcher of a configuration's webhooks. Throws ``Failure`` for a secret that cannot be read.
    package typealias Register = @Sendable ([Configuration.Webhook]) async throws -> WebhookDispatcher

    package init(reloading: Reloading, clock: WallClock, register: @escaping Register) async throws {
        self.reloading = reloading
        self.clock = clock
        self.register = register
        first = try await register(reloading.configuration.webhooks)
    }

    private struct Job: Sendable {
        var dispatcher: WebhookDispatcher
        var batch: WebhookDispatcher.Batch
    }

    /// Delivers until the task is cancelled. If new webhooks cannot be registered, the old ones stay in place.
    ///
    /// The loop does not wait for a batch, so a webhook that does not respond delays no other.
    package func run(_ supervisor: Supervisor) async throws {
        let current = Mutex(
            (dispatcher: first, known: reloading.configuration.webhooks, keepAt: clock.uptime() + Self.keptEvery))
        let ended = Signal()
        try await supervisor.keep(
            .webhooks,
            each: { (job: Job) in
                defer { ended.raise() }
                try await job.dispatcher.deliver(job.batch)
            }
        ) { found in
            while !Task.isCancelled {
                let seen = ended.version
                let wanted = reloading.configuration.webhooks
                var fault: (any Error)?
                if wanted != current.withLock({ $0.known }) {
                    do {
                        let dispatcher = try await register(wanted)
                        current.withLock { $0 = (dispatcher, wanted, clock.uptime() + Self.keptEvery) }
                    } catch {
                        fault = error
                    }
                }
                let (dispatcher, known, keepAt) = current.withLock { $0 }
                if clock.uptime() >= keepAt {
                    current.withLock { $0.keepAt = clock.uptime() + Self.keptEvery }
                    do { try await dispatcher.keepRegistered(known) } catch { fault = error }
                }
                for batch in try await dispatcher.takeDue() {
                    found.yield(Job(dispatcher: dispatcher, batch: batch))
                }
                if let fault { throw fault }
                // Look again after a batch, because its webhook may have more messages.
                await ended.wait(after: seen, atMost: Self.lookEvery, clock: clock)
            }
        }
    }
}
