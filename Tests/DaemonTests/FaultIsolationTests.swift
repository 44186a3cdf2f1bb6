import APNs
import Campaigns
import Foundation
import Logging
import Model
import Sending
import SQLiteStore
import Senders
import SendingScene
import Store
import TestSupport
import Testing
import WebClient

@testable import Daemon

/// What is wrong with one campaign, run or feed delays no other.
@Suite(.timeLimit(.minutes(10))) struct `A fault of one` {
    private let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    private static func ofNobody(_ campaign: inout Campaign) {
        campaign.audience.expression = .segment("vips")
        campaign.guards.maxReach = 100_000
    }

    @Test(
        arguments: [(nil, "no segment \"vips\""), ("SELECT nonsense FROM device_view", "nonsense")]
            as [(String?, String)])
    func `campaign that cannot be counted ends its occurrence as refused, and the others start`(
        sql: String?, word: String
    ) async throws {
        let scene = try await DaemonScene()
        let campaigns = [
            scene.campaign("a-broken") { campaign in
                Self.ofNobody(&campaign)
                campaign.audienceSQL = sql
            }, scene.campaign("b-good") { $0.guards.maxReach = 100_000 },
        ]
        let due = try campaigns.map { try scene.due($0) }
        let made = try await DueRuns(store: scene.store, actor: "daemon").make(due, now: scene.clock.now)
        #expect(made.map(\.due.campaign.campaign.name) == ["a-broken", "b-good"])
        let broken = try #require(try await scene.run(of: "a-broken"))
        #expect(broken.state == .failed && broken.isRefused)
        #expect(broken.stateReason?.contains(word) == true, "\(broken.stateReason ?? "")")
        #expect(try await scene.run(of: "b-good")?.state == .scheduled)
    }

    @Test func `campaign that cannot be started waits alone, and starts once the cause is gone`() async throws {
        let scene = try await DaemonScene()
        let snapshot = DaemonScene.snapshot(scene.campaign("a-odd"), scene.campaign("b-good"))
        let daemon = scene.daemon(whole)
        try await scene.refusing(DaemonScene.ofCampaign("a-odd")) {
            try await scene.running(daemon, snapshot) {
                try await scene.turn(daemon, until: "b-good") { $0?.state == .finished }
                #expect(try await scene.run(of: "a-odd") == nil)
                try scene.allowing()
                try await scene.turn(daemon, until: "a-odd") { $0?.state == .finished }
            }
        }
    }

    @Test func `occurrence that could not be started in time says why`() async throws {
        let scene = try await DaemonScene()
        var due = try scene.due(scene.campaign("c"))
        due.fault = "the disk was odd"
        scene.clock.advance(by: .seconds(3601))
        _ = try await DueRuns(store: scene.store, actor: "daemon").make([due], now: scene.clock.now)
        let missed = try #require(try await scene.run(of: "c"))
        #expect(missed.state == .missed)
        #expect(missed.stateReason?.hasSuffix("; the run could not be started: the disk was odd") == true)
    }

    @Test func `occurrence, or run, costs a call of run --due no other, and the next call tries it again`() async throws
    {
        let scene = try await DaemonScene()
        let left = try await scene.scene.start(
            try scene.scene.definition(.background) { $0.name = "left" }, occurrence: "left")
        let snapshot = DaemonScene.snapshot(scene.campaign("a-odd"), scene.campaign("b-good"))
        try await scene.refusing(DaemonScene.ofCampaign("a-odd")) {
            try await scene.refusing("BEFORE INSERT ON delivery WHEN NEW.run_id = \(left.id)", named: "even") {
                let outcome = try await scene.daemon(whole).runOnce(snapshot, idleLimit: .zero)
                #expect(outcome.runs.map(\.run.campaign) == ["b-good"] && outcome.runs.map(\.end) == [.finished])
                let words = outcome.faults.flatMap(\.failure.messages)
                #expect(words.count == 2, "\(words)")
                #expect(words.contains { $0.hasPrefix("occurrence ") && $0.contains(" of a-odd: ") }, "\(words)")
                #expect(words.contains { $0.hasPrefix("run \(left.id): ") }, "\(words)")
            }
        }
        let outcome = try await scene.daemon(whole).runOnce(snapshot, idleLimit: .zero)
        #expect(outcome.faults.isEmpty)
        #expect(Set(outcome.runs.map(\.run.campaign)) == ["a-odd", "left"])
        #expect(outcome.runs.allSatisfy { $0.end == .finished })
    }

    @Test func `run that cannot be read is named, and every other run goes on`() async throws {
        let scene = try await DaemonScene()
        let definition = try scene.scene.definition(.background) { $0.name = "a-odd" }
        let odd = try await scene.scene.start(definition, occurrence: "odd")
        try scene.spoil(odd.id)
        let outcome = try await scene.daemon(whole).runOnce(
            DaemonScene.snapshot(scene.campaign("b-good")), idleLimit: .zero)
        #expect(outcome.runs.map(\.run.campaign) == ["b-good"] && outcome.runs.map(\.end) == [.finished])
        let words = outcome.faults.flatMap(\.failure.messages)
        #expect(words.count == 1 && words[0].hasPrefix("a-odd: run \(odd.id) cannot be read"), "\(words)")
        // The same under a daemon, which recovers, polls and looks for runs meanwhile.
        let daemon = scene.daemon(whole)
        let left = try await scene.scene.start(
            try scene.scene.definition(.background) { $0.name = "left" }, occurrence: "left")
        try await scene.running(daemon, DaemonScene.snapshot(scene.campaign("c-good"))) {
            try await scene.turn(daemon, until: "c-good") { $0?.state == .finished }
            try await scene.turn(daemon, until: "left") { $0?.state == .finished }
        }
        #expect(try await scene.store.run(left.id)?.state == .finished)
        #expect(try await scene.store.unreadableRuns().map(\.run) == [odd.id])
    }

    @Test func `abandoned run is named, and the others are recovered`() async throws {
        let scene = try await DaemonScene()
        let store = try SQLiteFileStore(path: scene.store.path) { $0 != "dead" }
        var runs: [Int64] = []
        for occurrence in ["odd", "good"] {
            let run = try await scene.scene.start(
                try scene.scene.definition(.background) { $0.name = occurrence }, occurrence: occurrence)
            #expect(try await scene.store.claim(run.id, by: "dead", now: scene.clock.now) == .claimed)
            runs.append(run.id)
        }
        let recovery = Recovery(store: store, journals: .none, clock: scene.clock.clock)
        try await scene.refusing("BEFORE UPDATE ON run WHEN NEW.id = \(runs[0])") {
            await #expect(throws: StoreError.self) { try await recovery.recoverAbandoned() }
            let left = try await store.abandonedRuns().map(\.id)
            #expect(left == [runs[0]])
        }
        #expect(try await recovery.recoverAbandoned().map(\.run) == [runs[0]])
        try store.close()
    }

    @Test func `write does not fail the stop of a daemon`() async throws {
        let scene = try await DaemonScene()
        try await scene.refusing("BEFORE DELETE ON daemon") {
            let daemon = scene.daemon(whole)
            try await scene.running(daemon, DaemonScene.snapshot(scene.campaign("c"))) {
                try await scene.turn(daemon, until: "c") { $0?.state == .finished }
            }
        }
        #expect(try await scene.store.daemon()?.owner == "daemon")
    }

    @Test func `run whose audience cannot be counted ends as failed, with the reason`() async throws {
        let scene = try await DaemonScene()
        let run = try await scene.scene.start(
            try scene.scene.definition(.background) { $0.audience.expression = .segment("vips") })
        let outcome = try await scene.daemon(whole).runOnce(DaemonScene.snapshot(), idleLimit: .zero)
        guard case .failed(let reason)? = outcome.runs.first?.end else {
            Issue.record("\(outcome)")
            return
        }
        #expect(reason.contains("no segment \"vips\""))
        #expect(try await scene.store.run(run.id)?.state == .failed)
    }

    @Test func `feed cancels no other poll, and its own is not asked again at once`() async throws {
        let (odd, good) = (try FeedScene(), try FeedScene())
        let scene = odd.scene
        func ready(_ name: String, _ feed: FeedScene) throws -> ReadyCampaign {
            let definition = try feed.definition { campaign in
                campaign.name = name
                campaign.feed?.every = .seconds(60)
            }
            return ReadyCampaign(
                campaign: definition.campaign, template: definition.template, changedAt: scene.clock.now)
        }
        let tracker = DaemonStatusTracker()
        let snapshot = DaemonScene.snapshot(try ready("a-odd", odd), try ready("b-good", good))
        _ = tracker.adopt(snapshot, marks: [:], now: scene.clock.now)
        let watch = FeedWatch(
            poller: FeedPoller(store: scene.store, web: HTTPClient(addresses: .any), actor: "test"), tracker: tracker,
            clock: scene.clock.clock,
            time: ConfirmedClock(
                store: scene.store, clock: scene.clock.clock, actor: "test", logger: Logger(label: "test")),
            sleepMax: .seconds(20), logger: Logger(label: "test"))
        for feed in [odd, good] { feed.publish([("a", "A", 1)]) }
        #expect(try await watch.pollDue().isEmpty)
        for feed in [odd, good] { feed.publish([("b", "B", 0), ("a", "A", 1)]) }
        let daemon = DaemonScene(scene)
        scene.clock.advance(by: .seconds(60))
        try await daemon.refusing(DaemonScene.ofCampaign("a-odd")) {
            #expect(try await Array(watch.pollDue().keys) == ["a-odd"])
            #expect(try await daemon.run(of: "b-good") != nil)
            for (seconds, requests) in [(1, 2), (58, 2), (1, 3), (60, 3), (60, 4)] {
                scene.clock.advance(by: .seconds(seconds))
                _ = try await watch.pollDue()
                #expect(odd.requests.count == requests)
            }
        }
        scene.clock.advance(by: .seconds(240))
        #expect(try await watch.pollDue().isEmpty)
        #expect(try await daemon.run(of: "a-odd") != nil)
    }

    @Test func `item of a feed that cannot be counted is refused, on record`() async throws {
        let feed = try FeedScene()
        let definition = try feed.definition(change: Self.ofNobody)
        feed.publish([])
        _ = try await feed.poll(definition)
        feed.publish([("a", "A", 0)])
        guard case .refused(_, let reason)? = try await feed.poll(definition).ended.first else {
            Issue.record("it was not refused")
            return
        }
        #expect(reason.contains("no segment \"vips\""))
        #expect(try await feed.next(definition).map { $0 > feed.scene.clock.now } == true)
        #expect(try await feed.poll(definition) == FeedPoll(found: .items(1)))
    }
}
