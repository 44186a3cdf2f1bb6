import APNs
import Campaigns
import Foundation
import Logging
import Model
import Sending
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing
import WebClient

@testable import Daemon

/// A campaign or a feed that takes long delays no other.
@Suite(.timeLimit(.minutes(10))) struct `Slow counts` {
    private static let devices = 5_000
    private let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }

    /// Far too much work for a test: all of these tags are looked up for each device.
    private static let slow = AudienceExpression.any((0..<800).map { .tag("t\($0)") })

    private static func isSlow(_ campaign: inout Campaign) {
        campaign.audience.expression = slow
        campaign.guards.maxReach = 100_000
    }

    /// Counts as well, but few devices.
    private static func isQuick(_ campaign: inout Campaign) {
        campaign.audience.expression = .oneOf(.installationID, [.text("install-1")])
        campaign.guards.maxReach = 100_000
    }

    @Test func `hold no campaign that becomes due meanwhile`() async throws {
        // So many that no count ends before its limit, however busy the machine is with the quick campaign.
        let scene = try await DaemonScene(devices: 4 * Self.devices)
        let snapshot = DaemonScene.snapshot(
            scene.campaign("slow-1", Self.isSlow), scene.campaign("slow-2", Self.isSlow),
            scene.campaign("slow-3", Self.isSlow),
            scene.campaign("quick", at: scene.clock.now + .seconds(120), Self.isQuick))
        let daemon = scene.daemon(whole)
        try await scene.running(daemon, snapshot) {
            try await scene.turn(daemon, until: "quick") { $0?.state == .finished }
            for number in 1...3 { #expect(try await scene.run(of: "slow-\(number)") == nil) }
        }
    }

    @Test func `end after a limit, and the campaign's other occurrences are not counted in vain`() async throws {
        let scene = try await DaemonScene(devices: Self.devices)
        let slow = scene.campaign("slow") { campaign in
            Self.isSlow(&campaign)
            campaign.schedule?.trigger = .cron("* * * * *")
            campaign.schedule?.lateByMax = .seconds(170)
        }
        let timetable = try #require(slow.timetable)
        var due: [Agenda.Due] = []
        var moment = scene.clock.now - .seconds(300)
        for _ in 0..<4 {
            let next = try #require(timetable.next(after: moment))
            due.append(Agenda.Due(campaign: slow, occurrence: next))
            moment = next.startsAt
        }
        due.append(try scene.due(scene.campaign("quick", Self.isQuick)))
        let dueRuns = DueRuns(store: scene.store, actor: "daemon", countLimit: .seconds(3))
        let made = try await dueRuns.make(due, now: scene.clock.now).map(\.made)
        try #require(made.count == 5)
        let delays = made.compactMap { made in if case .delayed(let delay) = made { delay } else { nil } }
        let ended = made.compactMap { made in if case .ended(let run) = made { run.state } else { nil } }
        #expect(ended.allSatisfy { $0 == .missed } && ended.count + delays.count == 4, "\(made)")
        #expect(delays.count >= 2 && delays.allSatisfy(\.isSlow))
        #expect(delays.count { $0.reason.hasPrefix("the audience was not counted within") } == 1, "\(delays)")
        #expect(delays.dropFirst().allSatisfy { $0.reason.hasPrefix("not tried, because another occurrence") })
        #expect(try await scene.run(of: "quick")?.state == .scheduled)
    }

    @Test func `take one turn at a time once they are known, and a start that ends makes room`() throws {
        let scene = DaemonScene(try PipelineScene())
        let names = (0..<12).map { "c\($0)" }
        let due = try names.map { try scene.due(scene.campaign($0)) }
        var backlog = DueBacklog()
        backlog.add(due)
        let first = backlog.begin(at: .zero)
        #expect(first.map { $0.map(\.campaign.campaign.name) } == names.prefix(DueBacklog.campaignsAtOnce).map { [$0] })
        #expect(backlog.begin(at: .zero).isEmpty)
        // No attempt is announced for what waits for a start to end.
        #expect(backlog.nextTry(after: .zero) == nil)
        let slow = DueRuns.Made.delayed(DueRuns.Delay(reason: "slow", isPassing: false, isSlow: true))
        for started in first.prefix(4) { backlog.settle(started, started.map { ($0, slow) }, at: .zero) }
        for started in first.dropFirst(4) { backlog.settle(started, [], at: .zero) }
        #expect(backlog.nextTry(after: .zero) == .seconds(1))
        // The four that are left of twelve, and one of the slow ones.
        let second = backlog.begin(at: .seconds(1))
        #expect(second.flatMap { $0 }.map(\.campaign.campaign.name) == ["c0"] + names.suffix(4))
        // Another look at any of them decides nothing: the rest have entries, and start when there is room.
        let decided = due.filter { backlog.isDecided($0) }.map(\.campaign.campaign.name)
        #expect(decided == names.prefix(4) + names.suffix(4))
        backlog.settle(second[0], [], at: .seconds(2))
        #expect(backlog.begin(at: .seconds(2)).flatMap { $0 }.map(\.campaign.campaign.name) == ["c1"])
    }

    @Test func `of a feed, like a server that does not answer, hold no other feed`() async throws {
        let feeds = try (0..<6).map { _ in try FeedScene() }
        let scene = DaemonScene(feeds[0].scene)
        let campaigns = try feeds.enumerated().map { number, feed in
            let definition = try feed.definition { campaign in
                campaign.name = "feed-\(number)"
                campaign.feed?.every = .seconds(60)
            }
            return ReadyCampaign(
                campaign: definition.campaign, template: definition.template, changedAt: scene.clock.now)
        }
        for feed in feeds.dropLast() { feed.answer(.withheld) }
        feeds[5].publish([("a", "A", 1)])
        let snapshot = Scheduler.CampaignSnapshot(campaigns: campaigns, names: Set(campaigns.map(\.campaign.name)))
        try await scene.running(scene.daemon(whole), snapshot) {
            while try await scene.store.feedState(campaign: "feed-5") == nil {
                try Task.checkCancellation()
                await Task.yield()
            }
            for number in 0..<5 { #expect(try await scene.store.feedState(campaign: "feed-\(number)") == nil) }
        }
    }
}

/// The end of the daemon.
extension `Slow counts` {
    @Test func `or a store that takes nothing make a stop no failure`() async throws {
        let scene = try await DaemonScene()
        let daemon = scene.daemon(whole)
        try await scene.refusing("BEFORE DELETE ON daemon") {
            try await scene.running(daemon, DaemonScene.snapshot(scene.campaign("c"))) {
                try await scene.turn(daemon, until: "c") { $0?.state == .finished }
            }
        }
        #expect(try await scene.store.daemon() != nil, "the row was removed")
    }
}
