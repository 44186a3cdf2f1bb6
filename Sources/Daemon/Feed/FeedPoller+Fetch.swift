import Campaigns
import FeedReader
import Model
import Rendering
import Store
import WebClient

/// The reason why a feed cannot be read, as text for people.
package struct FeedFailure: Error, CustomStringConvertible {
    package var description: String
}

extension FeedPoller {
    /// - Parameter known: the state after the last poll, which the server compares with. If the result has no feed,
    ///   the feed has not changed since then.
    func fetch(
        _ url: String, unlessLike known: FeedState?
    ) async throws(FeedFailure) -> (feed: Feed?, etag: String?, lastModified: String?) {
        var headers = [
            "Accept": "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.1"
        ]
        headers["If-None-Match"] = known?.etag
        headers["If-Modified-Since"] = known?.lastModified
        let answer: WebResponse
        do throws(WebError) {
            answer = try await web.send(WebRequest(.get, url, headers: headers))
        } catch {
            throw FeedFailure(description: error.description)
        }
        switch answer.status {
        // A 304 to a request without a state to compare with says nothing about the items.
        case 304 where known != nil:
            return (nil, Self.headerValue(answer.headers["etag"]) ?? known?.etag, known?.lastModified)
        case 200: break
        default: throw FeedFailure(description: "\(ShownURL.text(url)) responds \(answer.status)")
        }
        do throws(FeedError) {
            return (
                try await FeedDocument.readAside(answer.body, from: url), Self.headerValue(answer.headers["etag"]),
                Self.headerValue(answer.headers["last-modified"])
            )
        } catch {
            throw FeedFailure(description: "\(ShownURL.text(url)) is not a feed: \(error.description)")
        }
    }

    /// Returns a header value of the server if it can be sent back, and `nil` otherwise. It must have 1 to 1024
    /// printable ASCII bytes.
    private static func headerValue(_ text: String?) -> String? {
        text.flatMap { text in
            let isUsable = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            return isUsable && (1...1024).contains(text.utf8.count) ? text : nil
        }
    }
}

/// The occurrence key of a feed's item, derived from its guid: readable, bounded, and always the same for the same
/// guid.
enum FeedItemKey {
    private static let wordBytesMax = 40

    /// Returns `item-`, the last letters and digits of the guid, and the hash of the whole guid. The hash
    /// distinguishes guids that differ only in characters that the key omits.
    static func key(guid: String) -> String {
        let hash = String(FNV1a.hash(guid), radix: 16)
        let word = guid.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }.joined(separator: "-")
        let end = word.suffix(wordBytesMax).drop { $0 == "-" }
        return ["item", end + "", String(repeating: "0", count: 16 - hash.count) + hash].filter { !$0.isEmpty }
            .joined(separator: "-")
    }
}

/// Creates the run of one new item.
struct FeedRunStarter {
    enum Made {
        case run(Run)
        /// Recorded as failed, with the reason.
        case refused(String)
        /// Another process has created the run already.
        case known
    }

    let store: any ApprovePlans.PlanStore
    let definition: RunDefinition
    let actor: Actor
    let now: Timestamp
    let approvals: ApprovalRules?
    let brake: Configuration.VolumeBrake?

    func start(_ occurrence: String, _ values: [String: String]) async throws -> Made {
        do {
            let definition = try filled(values)
            _ = try VariantRenderers(definition)
            let (run, isNew, _) = try await StartRun(store: store, approvals: approvals, brake: brake)
                .start(
                    definition, occurrence: occurrence, by: actor, now: now, isScheduled: true, mayWait: false)
            // A run that exists and is still scheduled was created by a poll that ended before it recorded the item.
            return isNew || run.state == .scheduled ? .run(run) : .known
        } catch {
            // Items are news, so an item that needs an approval is refused instead of waiting.
            let reason = (error as? Unapproved)?.description ?? OccurrenceRefusal.summary(error)
            guard let reason else { throw error }
            return try await refuse(occurrence, values, reason)
        }
    }

    /// Records an item that is not sent. Returns `false` if the item is already recorded.
    func end(
        _ occurrence: String, _ values: [String: String], _ state: RunState, _ reason: String
    ) async throws -> Bool {
        try await store.createEndedRun(
            try filled(values), occurrence: occurrence, state: state, reason: reason, now: now, by: actor)
    }

    private func refuse(_ occurrence: String, _ values: [String: String], _ reason: String) async throws -> Made {
        try await end(occurrence, values, .failed, reason) ? .refused(reason) : .known
    }

    private func filled(_ values: [String: String]) throws -> RunDefinition {
        var definition = definition
        definition.variables = try RunVariables.merged(definition.campaign, with: values)
        definition.plannedAt = now
        return definition
    }
}
