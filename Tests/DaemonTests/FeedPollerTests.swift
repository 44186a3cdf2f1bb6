import APNs
import Campaigns
import Daemon
import Foundation
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing
import WebClient

/// A feed on a local server, whose document a test changes.
final class FeedScene: Sendable {
    let scene: PipelineScene
    private let document = Mutex(LocalServer.Reply(404))
    private let server = Mutex<LocalServer?>(nil)

    init() throws {
        scene = try PipelineScene()
        let server = try LocalServer { [weak self] request in
            guard let reply = self?.document.withLock({ $0 }) else { return .init(404) }
            let isKnown = request.headers["if-none-match"].map { $0 == reply.headers["ETag"] } ?? false
            return isKnown ? .init(304) : reply
        }
        self.server.withLock { $0 = server }
    }

    var requests: [LocalServer.Request] { server.withLock { $0?.requests ?? [] } }
    var url: String { server.withLock { $0?.url ?? "" } }

    /// Newest first, as feeds have it; the date is `hours` ago.
    func publish(_ items: [(guid: String, title: String, hours: Int)], etag: String? = nil) {
        let now = scene.clock.now
        let texts = items.map { item in
            let date = (now - .seconds(item.hours * 3600)).iso8601
            return """
                <entry><id>\(item.guid)</id><title>\(item.title)</title><published>\(date)</published></entry>
                """
        }
        answer(
            .init(
                "<feed xmlns=\"http://www.w3.org/2005/Atom\">\(texts.joined())</feed>",
                headers: etag.map { ["ETag": $0] } ?? [:]))
    }

    func answer(_ reply: LocalServer.Reply) {
        document.withLock { $0 = reply }
    }

    func definition(path: String = "/feed", change: (inout Campaign) -> Void = { _ in }) throws -> RunDefinition {
        let url = url + path
        return try scene.definition { campaign in
            campaign.variables = ["title": ""]
            campaign.feed = FeedTrigger(url: url)
            campaign.feed?.variables = ["title": .title]
            change(&campaign)
        }
    }

    func poll(_ definition: RunDefinition) async throws -> FeedPoll {
        try await FeedPoller(store: scene.store, web: HTTPClient(addresses: .any), actor: "test").poll(
            definition, now: scene.clock.now)
    }

    func next(_ definition: RunDefinition) async throws -> Timestamp? {
        try await FeedPoller(store: scene.store, web: HTTPClient(addresses: .any), actor: "test")
            .nextPoll(of: definition.campaign, now: scene.clock.now)
    }
}

@Suite(.timeLimit(.minutes(10))) struct `A campaign's feed` {
    @Test func `starts one run for each new item, and none for what was there before`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition()
        feed.publish([("b", "B", 1), ("a", "A", 2)])
        #expect(try await feed.poll(definition) == FeedPoll(found: .catalogue(items: 2)))
        feed.publish([("d", "D", 0), ("c", "C", 0), ("b", "B", 1), ("a", "A", 2)])
        let poll = try await feed.poll(definition)
        #expect(poll.found == .items(4))
        #expect(poll.runs.map(\.definition.variables) == [["title": "C"], ["title": "D"]])
        #expect(poll.runs.map(\.definition.plannedAt) == [feed.scene.clock.now, feed.scene.clock.now])
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(4)))
        feed.publish([("d", "D, corrected", 0), ("c", "C", 0)])
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(2)))
        feed.publish([("b", "B again", 0), ("a", "A again", 0)])
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(2)))
        #expect(try await feed.scene.store.runs(limit: 10).count == 2)
    }

    @Test func `asks nobody to sign an item, and refuses one that needs it`() async throws {
        let feed = try FeedScene()
        try await feed.scene.addDevices(0..<3)
        // The same words for each item: what is signed once must not let the next one through.
        let definition = try feed.definition { $0.feed?.variables = [:] }
        let poller = FeedPoller(
            store: feed.scene.store, web: HTTPClient(addresses: .any), actor: "test",
            approvals: { ApprovalRules(rules: [.init(above: 0, needs: 1)]) })
        feed.publish([("a", "A", 1)])
        _ = try await poller.poll(definition, now: feed.scene.clock.now)
        feed.publish([("b", "B", 0), ("a", "A", 1)])
        let poll = try await poller.poll(definition, now: feed.scene.clock.now)
        #expect(poll.runs.isEmpty && poll.ended.count == 1)
        guard case .refused(_, let reason)? = poll.ended.first else { return }
        #expect(reason.contains("a run for a feed item cannot wait for approval"), "\(reason)")
        #expect(!reason.contains("fanfare approve"), "\(reason)")
        #expect(try await feed.scene.store.approvals(in: nil, limit: 9).isEmpty)
    }

    @Test func `is asked whether it has changed, and believed`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition()
        feed.publish([("a", "A", 1)], etag: "\"one\"")
        _ = try await feed.poll(definition)
        #expect(try await feed.poll(definition).found == .unchanged)
        feed.publish([("b", "B", 0), ("a", "A", 1)], etag: "\"two\"")
        #expect(try await feed.poll(definition).runs.count == 1)
        #expect(try await feed.poll(definition).found == .unchanged)
        #expect(feed.requests.map { $0.headers["if-none-match"] } == [nil, "\"one\"", "\"one\"", "\"two\""])
    }

    /// A broken server or cache may answer so, and the poll has asked for no comparison.
    @Test func `is not read by a first answer of no change`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition()
        feed.answer(.init(304))
        guard case .failed(let reason) = try await feed.poll(definition).found else {
            Issue.record("the first 304 is taken for a feed")
            return
        }
        #expect(reason.hasSuffix("responds 304"), "\(reason)")
        feed.publish([("b", "B", 0), ("a", "A", 1)])
        #expect(try await feed.poll(definition) == FeedPoll(found: .catalogue(items: 2)))
        #expect(try await feed.scene.store.runs(limit: 10).isEmpty)
    }

    @Test func `keeps its tag if an answer of no change has one that cannot be sent`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition()
        feed.publish([("a", "A", 1)], etag: "\"one\"")
        _ = try await feed.poll(definition)
        for tag in ["\u{85}", "\"" + String(repeating: "x", count: 2000) + "\"", ""] {
            feed.answer(.init(304, headers: ["ETag": tag]))
            #expect(try await feed.poll(definition).found == .unchanged)
        }
        #expect(try await feed.poll(definition).found == .unchanged)
        #expect(feed.requests.dropFirst().map { $0.headers["if-none-match"] } == Array(repeating: "\"one\"", count: 4))
    }

    @Test func `with another address begins anew`() async throws {
        let feed = try FeedScene()
        feed.publish([("a", "A", 1)])
        _ = try await feed.poll(try feed.definition())
        feed.publish([("z", "Z", 0), ("a", "A", 1)])
        let moved = try feed.definition(path: "/moved")
        #expect(try await feed.next(moved) == feed.scene.clock.now)
        #expect(try await feed.poll(moved).found == .catalogue(items: 2))
        #expect(try await feed.poll(moved).runs.isEmpty)
    }

    @Test func `does not send what is older than late_by_max, and says so`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition { $0.feed?.lateByMax = .seconds(6 * 3600) }
        feed.publish([])
        _ = try await feed.poll(definition)
        feed.publish([("new", "New", 6), ("old", "Old", 7)])
        let poll = try await feed.poll(definition)
        #expect(poll.runs.map(\.definition.variables) == [["title": "New"]])
        #expect(poll.ended.count == 1)
        let runs = try await feed.scene.store.runs(limit: 10)
        let missed = try #require(runs.first { $0.state == .missed })
        #expect(missed.stateReason == "published 7h ago; late_by_max is 6h")
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(2)))
    }

    @Test func `that was built anew sends nothing`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition()
        feed.publish([("a", "A", 1)])
        _ = try await feed.poll(definition)
        feed.publish((0..<50).map { ("https://new.example.com/\($0)", "Old news", 0) })
        #expect(try await feed.poll(definition) == FeedPoll(found: .tooManyNew(count: 50, max: 3)))
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(50)))
        #expect(try await feed.scene.store.runs(limit: 10).isEmpty)
    }

    /// A new server may serve the whole archive where the old one served ten items.
    @Test func `that grows backwards records one event, and sends what is new`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition()
        feed.publish([("a", "A", 1)])
        _ = try await feed.poll(definition)
        let archive = (0..<290).map { ("old-\($0)", "Old \($0)", 48 + $0) }
        feed.publish([("b", "B", 0), ("a", "A", 1)] + archive)
        let poll = try await feed.poll(definition)
        #expect(poll.runs.map(\.definition.variables) == [["title": "B"]])
        #expect(poll.ended.isEmpty && poll.archived == 290 && poll.found == .items(292))
        let store = feed.scene.store
        #expect(try await store.runs(limit: 10).count == 1)
        let events = try await store.events(run: nil, since: nil, limit: 50).filter { $0.kind == "feed_held" }
        #expect(events.count == 1 && events.first?.detail.contains("290 new items") == true, "\(events)")
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(292)))
    }

    @Test func `that cannot be read costs nothing but a longer pause`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition { $0.feed?.every = .seconds(300) }
        let start = feed.scene.clock.now
        #expect(try await feed.next(definition) == start)
        for (reply, pause) in [
            (LocalServer.Reply(503), 600), (.init("<html/>"), 1200), (.init("<feed"), 2400), (.init(404), 3600),
            (.init(404), 3600),
        ] {
            feed.answer(reply)
            guard case .failed = try await feed.poll(definition).found else {
                Issue.record("it was read")
                return
            }
            #expect(try await feed.next(definition) == start + .seconds(pause))
        }
        feed.publish([("a", "A", 1)])
        #expect(try await feed.poll(definition).found == .catalogue(items: 1))
        #expect(try await feed.next(definition) == start + .seconds(300))
        feed.answer(.init(500))
        _ = try await feed.poll(definition)
        feed.publish([("b", "B", 0), ("a", "A", 1)])
        #expect(try await feed.poll(definition).runs.count == 1)
    }

    @Test func `leaves a run that a guard refuses on record, and goes on`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition { $0.guards.minReach = 5 }
        feed.publish([])
        _ = try await feed.poll(definition)
        feed.publish([("a", "A", 0)])
        let poll = try await feed.poll(definition)
        #expect(poll.runs.isEmpty)
        guard case .refused(_, let reason)? = poll.ended.first else {
            Issue.record("\(poll)")
            return
        }
        #expect(reason.contains("min_reach is 5"))
        #expect(try await feed.scene.store.runs(limit: 10).map(\.state) == [.failed])
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(1)))
    }

    @Test func `two polls at once make one run of an item`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition()
        feed.publish([])
        _ = try await feed.poll(definition)
        feed.publish([("a", "A", 0)])
        let polls = try await withThrowingTaskGroup(of: FeedPoll.self) { group in
            for _ in 0..<5 { group.addTask { try await feed.poll(definition) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(polls.flatMap(\.runs).map(\.id)).count == 1)
        #expect(try await feed.scene.store.runs(limit: 10).count == 1)
    }

    @Test func `keys are bounded, readable and never shared`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition { $0.feed?.newMax = 100 }
        feed.publish([])
        _ = try await feed.poll(definition)
        let long = "https://example.com/?p=" + String(repeating: "x", count: 500)
        let guids = ["42", "urn:uuid:4-2", "urn-uuid-4-2", long + "1", "a" + long + "1", "日本語", "../../etc; rm"]
        feed.publish(guids.map { ($0, "T", 0) })
        let keys = try await feed.poll(definition).runs.map(\.occurrence)
        #expect(Set(keys).count == guids.count)
        for key in keys {
            #expect(key.utf8.count <= 64)
            #expect(key.wholeMatch(of: /item(-[a-z0-9]+)+/) != nil, "\(key)")
        }
        #expect(keys.contains { $0.hasPrefix("item-42-") })
    }
}
