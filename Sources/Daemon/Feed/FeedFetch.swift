import Campaigns
import FeedReader
import Model
import Sending
import Store
import WebClient

/// Why a feed gives no items, in words for a person.
package struct FeedFailure: Error, CustomStringConvertible {
    package var description: String
}

extension FeedPoller {
    /// - Parameter known: what the server may compare with; without a feed in the result nothing has changed since.
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
        case 304: return (nil, answer.headers["etag"] ?? known?.etag, known?.lastModified)
        case 200: break
        default: throw FeedFailure(description: "\(ShownURL.text(url)) answers \(answer.status)")
        }
        do throws(FeedError) {
            return (
                try await FeedDocument.readAside(answer.body, from: url), Self.headerValue(answer.headers["etag"]),
                Self.headerValue(answer.headers["last-modified"])
            )
        } catch {
            throw FeedFailure(description: "\(ShownURL.text(url)) is no feed: \(error.description)")
        }
    }

    /// What a server gave is given back to it: bounded, and nothing that a header cannot carry.
    private static func headerValue(_ text: String?) -> String? {
        text.flatMap { text in
            let isUsable = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            return isUsable && (1...1024).contains(text.utf8.count) ? text : nil
        }
    }
}

/// The occurrence key of a feed's item, made of its guid: readable, bounded, and the same for the same guid for ever.
enum FeedItemKey {
    private static let wordBytesMax = 40

    /// `item-` and the guid's end as far as it is letters and digits, with the hash of the whole guid: two guids never
    /// share a key by what was left out.
    static func key(guid: String) -> String {
        let hash = String(FNV1a.hash(guid), radix: 16)
        let word = guid.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }.joined(separator: "-")
        let end = word.suffix(wordBytesMax).drop { $0 == "-" }
        return ["item", end + "", String(repeating: "0", count: 16 - hash.count) + hash].filter { !$0.isEmpty }
            .joined(separator: "-")
    }
}

/// Makes the run of one new item.
struct FeedRunStarter {
    enum Made {
        case run(Run)
        /// On record as failed, with the reason.
        case refused(String)
        /// Somebody was faster.
        case known
    }

    let store: any AllRoles
    let definition: RunDefinition
    let actor: Actor
    let now: Timestamp
    let approvals: ApprovalRules?
    let brake: Configuration.VolumeBrake?

    func start(_ occurrence: String, _ values: [String: String]) async throws -> Made {
        do {
            let definition = try filled(values)
            _ = try VariantRenderers(definition)
            let (run, isNew) = try await StartRun(store: store, approvals: approvals, brake: brake)
                .start(
                    definition, occurrence: occurrence, by: actor, now: now, isScheduled: true, mayWait: false)
            // One that is there and not over was made by a poll that did not get as far as its record.
            return isNew || run.state == .scheduled ? .run(run) : .known
        } catch {
            // An item is news: it does not wait for people.
            let reason = (error as? Unapproved)?.description ?? OccurrenceRefusal.words(error)
            guard let reason else { throw error }
            return try await refuse(occurrence, values, reason)
        }
    }

    /// Puts an item on record that is not sent; false when it was there.
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
