import APNs
import Campaigns
import Daemon
import Foundation
import GRDB
import Logging
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing
import WebClient

/// A daemon over a real store, under a clock that is turned by hand, and ways to break what it works on.
struct DaemonScene {
    let scene: PipelineScene

    init(devices: Int = 3) async throws {
        scene = try PipelineScene()
        try await scene.addDevices(0..<devices)
    }

    init(_ scene: PipelineScene) { self.scene = scene }

    var store: SQLiteFileStore { scene.store }
    var clock: ManualClock { scene.clock }

    private static let logger: Logger = {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return logger
    }()

    static func setup(_ transport: any APNs.Transport) -> SendingSetup {
        SendingSetup(
            transport: transport, endpoints: [.production: .production], lanesPerEnvironment: 1,
            silentBudget: .init(limit: 100, window: .seconds(60)))
    }

    func senders(
        named name: String = "daemon", _ sender: @escaping @Sendable (_ topic: String) throws -> SendingSetup
    ) -> LocalSender {
        LocalSender(
            store: store, actor: Actor(name), clock: clock.clock, jitter: { 0 }, logger: Self.logger, sender: sender)
    }

    func daemon(
        _ transport: any APNs.Transport, named name: String = "daemon", supervisor: Supervisor? = nil
    ) -> Scheduler {
        daemon(senders(named: name) { _ in Self.setup(transport) }, named: name, supervisor: supervisor)
    }

    func daemon(
        _ senders: LocalSender, named name: String = "daemon", supervisor: Supervisor? = nil
    ) -> Scheduler {
        Scheduler(
            store: store, senders: senders, actor: Actor(name), clock: clock.clock, web: HTTPClient(addresses: .any),
            retention: { Configuration.Retention(outcomes: .seconds(400 * 86_400)) }, supervisor: supervisor,
            logger: Self.logger)
    }

    /// A campaign that is due now, by its time, and may be found an hour late.
    func campaign(
        _ name: String, at start: Timestamp? = nil, _ change: (inout Campaign) -> Void = { _ in }
    ) -> ReadyCampaign {
        var campaign = Campaign(name: name, topic: PipelineScene.topic, pushType: .background, template: "t")
        let start = start ?? clock.now
        campaign.schedule = Schedule(trigger: .at(String(start.iso8601.prefix(16))))
        campaign.schedule?.zone = .named("UTC")
        campaign.expiresAfter = nil
        change(&campaign)
        return ReadyCampaign(campaign: campaign, template: Template(name: "t"), changedAt: clock.now - .seconds(3600))
    }

    /// The occurrence of a campaign that is due now.
    func due(_ campaign: ReadyCampaign) throws -> Agenda.Due {
        let next = campaign.timetable?.next(after: clock.now - .seconds(60))
        return Agenda.Due(campaign: campaign, occurrence: try #require(next))
    }

    static func snapshot(_ campaigns: ReadyCampaign...) -> Scheduler.CampaignSnapshot {
        Scheduler.CampaignSnapshot(campaigns: campaigns, names: Set(campaigns.map(\.campaign.name)))
    }

    /// Carries the daemon on until `body` is done.
    func running(
        _ daemon: Scheduler, _ snapshot: Scheduler.CampaignSnapshot, _ body: () async throws -> Void
    ) async throws {
        let (snapshots, continuation) = AsyncStream.makeStream(of: Scheduler.CampaignSnapshot.self)
        continuation.yield(snapshot)
        defer { continuation.finish() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await daemon.run(snapshots) }
            try await body()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    func run(of campaign: String) async throws -> Run? { try await store.latestRun(campaign: campaign) }

    /// Turns the clock step by step until the campaign's run is as wanted; for `limit` at most. What the daemon has in
    /// hand is given time to end before the clock goes on: a clock that runs ahead of a slow machine makes everything
    /// late.
    func turn(
        _ daemon: Scheduler, until campaign: String, within limit: Duration = .seconds(1800),
        inStepsOf step: Duration = .seconds(1), _ isWanted: (Run?) -> Bool
    ) async throws {
        let end = clock.now + limit
        while clock.now < end {
            if isWanted(try await run(of: campaign)) { return }
            await pass(step, daemon)
        }
        // What was begun by then may take its time.
        let patience = ContinuousClock.now + Self.patience
        while ContinuousClock.now < patience {
            if isWanted(try await run(of: campaign)) { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        let run = try await run(of: campaign)
        #expect(isWanted(run), "\(run.map { "\($0.state) \($0.stateReason ?? "")" } ?? "no run")")
    }

    /// By the machine's clock.
    private static let patience: Duration = .seconds(30)

    /// Turns the clock, and returns when whoever that woke sleeps again, and no run is in hand. A run that itself waits
    /// for the clock is not waited for any longer.
    func pass(_ time: Duration, _ daemon: Scheduler) async {
        await clock.advance(by: time, settlingWithin: .seconds(1))
        let end = ContinuousClock.now + .milliseconds(200)
        var looks = 0
        while looks < 100 || (ContinuousClock.now < end && !daemon.status.running.isEmpty && !Task.isCancelled) {
            await Task.yield()
            looks += 1
        }
    }

    /// The store refuses a write of one kind while `body` works, or until ``allowing(_:)``, whatever it is.
    func refusing(
        _ trigger: String, named name: String = "odd", while body: () async throws -> Void
    ) async throws {
        try change("CREATE TRIGGER \(name) \(trigger) BEGIN SELECT RAISE(ABORT, 'odd'); END")
        try await body()
        try allowing(name)
    }

    /// Makes the run's definition one that cannot be read.
    func spoil(_ run: Int64) throws { try change("UPDATE run SET definition = '{' WHERE id = \(run)") }

    func allowing(_ name: String = "odd") throws { try change("DROP TRIGGER IF EXISTS \(name)") }

    /// As another program would.
    private func change(_ sql: String) throws {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(30)
        let queue = try DatabaseQueue(path: store.path, configuration: configuration)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    static func ofCampaign(_ name: String) -> String { "BEFORE INSERT ON run WHEN NEW.campaign = '\(name)'" }
}

/// APNs that is out of reach, or refuses the credential, until a test says otherwise.
final class TroubledTransport: APNs.Transport {
    enum Trouble: Sendable { case unreachable, credential }

    let whole = ScriptedTransport { _, _ in ScriptedTransport.accepted }
    let refusing = ScriptedTransport { _, _ in ScriptedTransport.refused(403, .invalidProviderToken) }
    private let away = ScriptedTransport(failure: .unreachable(.production, reason: "refused")) { _, _ in
        .notSent(.stopped)
    }
    private let trouble: Watched<Trouble?>

    init(_ trouble: Trouble?) { self.trouble = Watched(trouble) }

    func end() { trouble.change { $0 = nil } }

    func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        switch trouble.change({ $0 }) {
        case nil: whole.lane(to: endpoint, named: name)
        case .unreachable: away.lane(to: endpoint, named: name)
        case .credential: refusing.lane(to: endpoint, named: name)
        }
    }
}
