import Foundation
import Model
import Store

/// What a webhook is posted, as JSON: `type` says what has happened, `data` to which run.
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

    var id: String
    var type: String
    var timestamp: String
    var data: Run

    init(_ message: WebhookMessage, id: String, run: Model.Run) {
        self.id = id
        type = "run.\(message.state.rawValue)"
        timestamp = message.at.iso8601
        let counts = run.counts
        data = Run(
            run: run.id, campaign: run.campaign, occurrence: run.occurrence, state: message.state.rawValue,
            reason: message.reason,
            counts: [
                "audience": counts.audience, "pending": counts.pending + counts.leased, "accepted": counts.accepted,
                "rejected": counts.rejected, "unknown": counts.unknown, "suppressed": counts.suppressed,
            ],
            createdAt: run.createdAt.iso8601, startedAt: run.startedAt?.iso8601, finishedAt: run.finishedAt?.iso8601)
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
