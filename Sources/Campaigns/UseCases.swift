import CampaignFiles
package import Foundation
package import Model
package import Senders
package import Store

/// The use cases on one store and one set of files, for a front end with many concurrent users. The front end has no
/// access to the store itself.
package struct UseCases: Sendable {
    /// Returns the configuration as the files define it now.
    package let configuration: @Sendable () -> Configuration
    private let clock: WallClock
    private let store: any AllRoles
    private let senders: SenderFolder
    private let registrations: CommitQueue<DeviceRecord, RegisteredDevice>
    private let feedbackQueue: CommitQueue<[FeedbackEvent], [FeedbackVerdict]>
    private let runTopics = RunTopics()
    private let givenDevices = GivenDevices()
    private let recentTokens = RecentTokens()
    private let waitingCampaigns = WaitingCampaigns()
    private let readQueue = ReadQueue()
    private let testLimit: TestSendLimit
    private let currentCampaigns: CurrentCampaigns
    /// The gate of all counts that run in the background.
    package let countQueue = CountQueue()
    /// The number of devices.
    package let deviceCounts: CachedDeviceCounts
    package let audienceValues: CachedAudienceValues
    /// The reports of unfinished runs.
    package let runningReports: RunningReports
    /// The state of the installation. `nil` in a process that is no service.
    package let installation: InstallationHealth?
    /// Changes the configuration and the keys. `nil` in a process that is no service.
    package let setup: ManageSetup?
    /// Files of devices that people upload.
    package let uploads: DeviceUploads

    /// - Parameters:
    ///   - diagnosis: the checks of the installation. `nil` in a process that is no service.
    ///   - tools: the means to change the configuration and the keys. `nil` in a process that is no service.
    ///   - isSending: returns whether this process sends a run. Reports of apps are then set aside.
    package init(
        store: any AllRoles, senders: SenderFolder, clock: WallClock,
        isSending: @escaping @Sendable () -> Bool = { false },
        diagnosis: (@Sendable () -> DiagnoseInstallation)? = nil, tools: SetupTools? = nil,
        configuration: @escaping @Sendable () -> Configuration
    ) {
        self.store = store
        self.senders = senders
        self.clock = clock
        self.configuration = configuration
        testLimit = TestSendLimit { clock.uptime() }
        currentCampaigns = CurrentCampaigns(configuration: configuration)
        registrations = CommitQueue("registrations") { records in
            try await store.registerDevices(records, reading: true, now: clock.now())
        }
        feedbackQueue = CommitQueue("reports", batchMax: 2_000, waitingMax: 50_000) { batches in
            try await RecordFeedback.recorded(batches, in: store, isSending: isSending())
        }
        deviceCounts = CachedDeviceCounts(store: store, countQueue: countQueue, clock: clock)
        audienceValues = CachedAudienceValues(store: store, countQueue: countQueue, clock: clock)
        runningReports = RunningReports(store: store, countQueue: countQueue, clock: clock)
        setup = tools.map { ManageSetup(store: store, tools: $0) }
        let folder = (senders.path as NSString).deletingLastPathComponent
        uploads = DeviceUploads(folder: "\(folder.isEmpty ? "." : folder)/uploads", store: store, clock: clock)
        installation = diagnosis.map { InstallationHealth(store: store, clock: clock, diagnosis: $0) }
    }

    package var now: Timestamp { clock.now() }
    /// The operator's time zone.
    package var zone: TimeZone { .current }
    /// The time since the machine started, for measurements that must not follow changes of the wall clock.
    package var uptime: Duration { clock.uptime() }
    /// Sleeps, and returns early if the task is cancelled.
    package func sleep(_ duration: Duration) async { await clock.sleep(duration) }

    package var runs: FollowRuns { FollowRuns(store: store, senders: senders, clock: clock) }
    package var control: ControlRun {
        ControlRun(
            store: store, clock: clock, isAlive: senders.isAlive, stopFile: senders.stopFile, plans: approving)
    }
    package var stopping: StopSending { StopSending(store: store, senders: senders, clock: clock) }
    package var start: StartCampaign { StartCampaign(store: store, runs: runs, configuration: configuration()) }
    package var approving: ApprovePlans { ApprovePlans(store: store, rules: configuration().approvals) }
    package var values: GiveValues { GiveValues(store: store) }
    package var plans: KeepPlans { KeepPlans(store: store, rules: configuration().approvals) }
    package var correcting: CorrectRun {
        CorrectRun(
            store: store, runs: runs, templates: configuration().templates, approvals: configuration().approvals)
    }
    package var files: ManageFiles {
        ManageFiles(configuration: configuration(), store: store, zone: zone, waiting: waitingCampaigns)
    }
    package var reports: ReportRun { ReportRun(store: store) }
    package var tests: SendTest {
        SendTest(
            store: store, segment: configuration().testDevices, named: configuration().namedTestDevices,
            approvals: configuration().approvals, limit: testLimit)
    }
    /// The names of devices for tests, in order.
    package var testDeviceNames: [String] { configuration().namedTestDevices.keys.sorted() }
    package var audit: ReadAudit { ReadAudit(store: store) }
    package var devices: ManageDevices { ManageDevices(store: store) }
    package var registering: RegisterDevices {
        RegisterDevices(store: store, queue: registrations, given: givenDevices) { [clock] in clock.now() }
    }
    package var installationSecrets: InstallationSecrets {
        InstallationSecrets(store: store, makeSecret: access.makeSecret, clock: clock)
    }

    package var feedback: RecordFeedback {
        RecordFeedback(store: store, queue: feedbackQueue, topics: runTopics, clock: clock)
    }
    /// - Parameter version: the version of this program.
    package func exporting(version: String) -> ExportData { ExportData(store: store, version: version) }
    package var segments: ManageSegments { ManageSegments(store: store) }
    package var counting: CountAudience { CountAudience(store: store) { [clock] in clock.now() } }
    package var access: ManageAccess {
        ManageAccess(
            store: store, recent: recentTokens, people: configuration().approvals?.people ?? ConfiguredPeople())
    }
    package var maintaining: MaintainStore { MaintainStore(store: store) }
    package var observing: ObserveStore { ObserveStore(store: store, clock: clock) }
    package var health: ReadHealth {
        ReadHealth(
            store: store, following: runs, installation: installation, clock: clock, campaigns: currentCampaigns)
    }
    package var deliveries: ListDeliveries { ListDeliveries(store: store) }
    package var timelines: ReadTimeline { ReadTimeline(store: store) }
    package var explaining: ExplainDevice {
        ExplainDevice(store: store) { [configuration] in configuration().appIfKnown(for: $0) }
    }

    /// - Parameter topic: the topic of the campaign to plan.
    package func planning(_ topic: String) -> PlanCampaign {
        PlanCampaign(store: store, configuration: configuration(), topic: topic)
    }

    /// Returns the values that people gave for coming starts of schedules.
    package func startValues() async throws -> StartValues { try await .read(store, now: now) }

    /// Returns whether an error's text comes from the database itself.
    package static func quotesDatabase(_ error: any Error) -> Bool { (error as? StoreError)?.quotesDatabase == true }

    /// Returns the list of automatic starts that the files define, and the problems of the files.
    ///
    /// - Parameters:
    ///   - zone: the zone of the times; `nil` for the operator's.
    ///   - sees: whether the caller may see an app's campaigns. The schedule leaves out all others; the problems are
    ///     those of all files.
    package func schedule(
        in zone: TimeZone? = nil, sees: (_ topic: String) -> Bool = { _ in true }
    ) -> (coming: ListSchedule, problems: [CampaignCatalogue.Problem]) {
        let configuration = configuration()
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        return (
            ListSchedule(campaigns: catalogue.ready.filter { sees($0.campaign.topic) }, zone: zone ?? self.zone),
            catalogue.problems
        )
    }

    /// Throws if a change of a segment would change what starts automatically, for a caller who may not start runs.
    package func requireStartsNothing(segment name: String) async throws {
        try await files.requireStartsNothing(segment: name, try await store.segments(now: nil))
    }

    /// Returns what uses each segment, in words: campaigns, waiting changes, settings, other segments and waiting runs.
    package func users(ofSegments names: [String]) async throws -> [String: [String]] {
        let known = try await store.segmentUsers(of: names)
        return try await files.users(ofSegments: names).merging(known) { $0 + $1 }
    }

    /// Removes a segment that neither the store nor the files need.
    package func removeSegment(_ name: String, by actor: Actor) async throws {
        try await segments.remove(name, usedBy: try await files.users(ofSegment: name), by: actor, now: now)
    }

    /// Returns the name that a campaign's runs are stored under, given the name of its file. Returns any other name
    /// unchanged.
    package func runName(ofCampaign name: String) -> String { files.runName(ofCampaign: name) ?? name }

    /// Returns one push of a campaign, rendered for a device of the store.
    ///
    /// - Parameter sees: whether the caller may learn of a device of a topic.
    package func rendering(
        _ definition: RunDefinition, device: String, variant: String?, sees: (_ topic: String) -> Bool = { _ in true }
    ) async throws -> Rendering {
        try await RenderPayload.rendering(
            definition, device: configuration().namedTestDevices[device] ?? device, variant: variant, in: store,
            sees: sees)
    }

    /// Returns the run that a text names: a number, a campaign's name for its latest run, or `campaign/occurrence`.
    package func run(_ text: String) async throws -> Run { try await RunLookup.run(text, in: store) }
}

extension UseCases {
    /// Returns the limits for the expensive reads of an outside caller. Everything that is done for a request must run
    /// within them.
    ///
    /// - Parameters:
    ///   - caller: the caller's name. Each caller has one expensive read at a time; reads of different callers run
    ///     concurrently.
    ///   - presence: returns when the caller is gone, which ends the read; `nil` to let the read continue without
    ///     the caller.
    package func requestReads(of caller: String, presence: (@Sendable () async -> Void)?) -> RequestReads {
        RequestReads(allowance: ReadAllowance(queue: readQueue, caller: caller, presence: presence))
    }

    /// Returns sentences that say what a run's deliveries wait for.
    ///
    /// - Parameter zone: the reader's time zone.
    package func waitSummaries(of held: FollowRuns.Held, zone: TimeZone) -> [String] {
        WaitsText(held.waits, held.holder?.storeWait, now: now, zone: zone).sentences
    }
}

/// The limits for the expensive reads of one request.
package struct RequestReads: Sendable {
    fileprivate let allowance: ReadAllowance

    /// Performs a part of the request's work within these limits.
    package func within<Value>(_ work: () async throws -> Value) async rethrows -> Value {
        try await allowance.use(work)
    }
}

extension UseCases {
    /// Records that a person has ended their session.
    package func recordSignedOut(by actor: Actor) async throws {
        try await store.recordEvent(kind: .signedOut, run: nil, actor: actor, detail: "", now: now)
    }

    /// Records that callers at an address sent invalid secrets. The caller of this method must limit how often it is
    /// called.
    package func recordRefused(_ count: Int, from address: String) async throws {
        let place = address.isEmpty ? "an unknown address" : address
        try await store.recordEvent(
            kind: .signInRefused, run: nil, actor: Actor("unknown", origin: .page),
            detail: "\(count.counted("wrong token")) from \(place)", now: now)
    }
}

extension UseCases {
    /// Returns a page of runs, newest first. A page may have fewer than `limit` runs although other pages follow.
    ///
    package func runs(_ search: RunSearch, cursor: String? = nil, limit: Int) async throws -> RunPageResult {
        try await ListRuns(store: store, runs: runs).page(search, cursor: cursor, limit: limit)
    }

    /// Returns a page of runs with their definitions.
    package func found(_ search: RunSearch, at position: ListPosition, limit: Int) async throws -> FoundRuns {
        try await store.search(search, at: position, limit: limit)
    }

    /// Returns the runs that a list omits because their rows cannot be read, oldest first; `nil` if there are none.
    /// Returns `nil` to a caller of one app, because the row does not say which app the run belongs to.
    package func unreadableRuns(
        _ filter: RunFilter = RunFilter(), ofTopic topic: String?
    ) async throws -> [UnreadableRunResult]? {
        guard topic == nil else { return nil }
        let found = try await store.unreadableRuns().filter { run in
            (filter.campaign.map { $0 == run.campaign } ?? true)
                && (filter.states.isEmpty || filter.states.contains { $0.rawValue == run.state })
        }
        return found.isEmpty ? nil : found.map(UnreadableRunResult.init)
    }
}

/// A moment as people and programs write it.
package enum WrittenMoment {
    /// Parses ISO 8601. A time without an offset is in UTC: `2026-12-01`, `2026-12-01T09:00`,
    /// `2026-12-01T09:00:00+01:00`.
    package static func parse(_ text: String) -> Timestamp? { ISOTime.parse(text) }
}
