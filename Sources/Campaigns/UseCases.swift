import CampaignFiles
package import Foundation
package import Model
package import Sending
package import Store

/// The use cases on one store and one set of files, for a front end that many people use at once. It passes no store on.
package struct UseCases: Sendable {
    /// As the files say now.
    package let configuration: @Sendable () -> Configuration
    private let clock: WallClock
    private let store: any AllRoles
    private let senders: SenderFolder
    private let registrations: RegistrationQueue
    private let givenDevices = GivenDevices()
    private let recentTokens = RecentTokens()
    private let waitingCampaigns = WaitingCampaigns()
    private let readTurns = ReadTurns()
    private let testLimit: TestSendLimit
    /// Of everything that is counted behind those who look.
    package let gate = CountingGate()
    /// How many devices there are.
    package let deviceCounts: CachedDeviceCounts
    /// Of runs that go on.
    package let runningReports: RunningReports

    package init(
        store: any AllRoles, senders: SenderFolder, clock: WallClock,
        configuration: @escaping @Sendable () -> Configuration
    ) {
        self.store = store
        self.senders = senders
        self.clock = clock
        self.configuration = configuration
        testLimit = TestSendLimit { clock.uptime() }
        registrations = RegistrationQueue(store: store) { clock.now() }
        deviceCounts = CachedDeviceCounts(store: store, gate: gate, clock: clock)
        runningReports = RunningReports(store: store, gate: gate, clock: clock)
    }

    package var now: Timestamp { clock.now() }
    /// The operator's.
    package var zone: TimeZone { .current }
    /// Since the machine started: for what must not follow a clock that somebody sets.
    package var uptime: Duration { clock.uptime() }
    /// Returns early when the task is cancelled.
    package func sleep(_ duration: Duration) async { await clock.sleep(duration) }

    package var runs: FollowRuns { FollowRuns(store: store, senders: senders, clock: clock) }
    package var control: ControlRun {
        ControlRun(
            store: store, clock: clock, isAlive: senders.isAlive, stopFile: senders.stopFile, plans: approving)
    }
    package var stopping: StopSending { StopSending(store: store, senders: senders, clock: clock) }
    package var start: StartCampaign { StartCampaign(store: store, runs: runs, configuration: configuration()) }
    package var approving: ApprovePlans { ApprovePlans(store: store, rules: configuration().approvals) }
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
            store: store, segment: configuration().testDevices, approvals: configuration().approvals, limit: testLimit)
    }
    package var audit: ReadAudit { ReadAudit(store: store) }
    package var devices: ManageDevices { ManageDevices(store: store) }
    package var registering: RegisterDevices {
        RegisterDevices(store: store, queue: registrations, given: givenDevices) { [clock] in clock.now() }
    }
    package var segments: ManageSegments { ManageSegments(store: store) }
    package var counting: CountAudience { CountAudience(store: store) { [clock] in clock.now() } }
    package var access: ManageAccess {
        ManageAccess(
            store: store, recent: recentTokens, people: configuration().approvals?.people ?? ConfiguredPeople())
    }
    package var observing: ObserveStore { ObserveStore(store: store, clock: clock) }
    package var health: ReadHealth { ReadHealth(store: store, following: runs, clock: clock) }
    package var deliveries: ListDeliveries { ListDeliveries(store: store) }
    package var timelines: ReadTimeline { ReadTimeline(store: store) }
    package var explaining: ExplainDevice {
        ExplainDevice(store: store) { [configuration] in configuration().appIfKnown(for: $0) }
    }

    /// - Parameter topic: of the campaign that is planned.
    package func planning(_ topic: String) -> PlanCampaign {
        PlanCampaign(store: store, configuration: configuration(), topic: topic)
    }

    /// Tells whether an error's words are the database's own.
    package static func quotesDatabase(_ error: any Error) -> Bool { (error as? StoreError)?.quotesDatabase == true }

    /// What the files start by themselves, and the files that are wrong.
    ///
    /// - Parameter sees: whether the caller sees an app's campaigns; any other is as if it did not exist.
    package func schedule(
        sees: (_ topic: String) -> Bool = { _ in true }
    ) -> (coming: ListSchedule, problems: [CampaignCatalogue.Problem]) {
        let configuration = configuration()
        var catalogue = CampaignCatalogue()
        catalogue.refresh(campaigns: configuration.campaigns, templates: configuration.templates)
        return (
            ListSchedule(campaigns: catalogue.ready.filter { sees($0.campaign.topic) }, zone: zone), catalogue.problems
        )
    }

    /// Throws if a change of a segment would change what starts automatically, for a caller who may not start runs.
    package func requireStartsNothing(segment name: String) async throws {
        try await files.requireStartsNothing(segment: name, try await store.segments(now: nil))
    }

    /// Removes a segment that neither the store nor the files need.
    package func removeSegment(_ name: String, by actor: Actor) async throws {
        try await segments.remove(name, usedBy: try await files.users(ofSegment: name), by: actor, now: now)
    }

    /// What the runs of a campaign stand under, by the name of its file; any other is taken to be their own.
    package func runName(ofCampaign name: String) -> String { files.runName(ofCampaign: name) ?? name }

    /// One push of a campaign, for a device as the store knows it.
    ///
    /// - Parameter sees: whether whoever asks may learn of a device of a topic.
    package func rendering(
        _ definition: RunDefinition, device: String, variant: String?, sees: (_ topic: String) -> Bool = { _ in true }
    ) async throws -> Rendering {
        try await RenderPayload.rendering(definition, device: device, variant: variant, in: store, sees: sees)
    }

    /// The run a person means: a number, a campaign's name for its latest one, or `campaign/occurrence`.
    package func run(_ text: String) async throws -> Run { try await RunLookup.run(text, in: store) }
}

extension UseCases {
    /// What an outside caller may spend on expensive reads: to be put around everything that is done for a request.
    ///
    /// - Parameters:
    ///   - caller: has one expensive read at a time; those of other callers go on beside it.
    ///   - presence: returns when the caller is gone, which ends the read; nil: the caller's leaving ends nothing.
    package func requestReads(of caller: String, presence: (@Sendable () async -> Void)?) -> RequestReads {
        RequestReads(allowance: ReadAllowance(turns: readTurns, caller: caller, presence: presence))
    }

    /// What a run's deliveries wait for, in sentences, by this machine's zone.
    package func waitWords(of held: FollowRuns.Held) -> [String] {
        WaitsText(held.waits, held.holder?.storeWait, now: now).sentences
    }
}

/// The expensive reads that one request may make.
package struct RequestReads: Sendable {
    fileprivate let allowance: ReadAllowance

    /// Carries out a part of the request's work within them.
    package func within<Value>(_ work: () async throws -> Value) async rethrows -> Value {
        try await allowance.use(work)
    }
}

extension UseCases {
    /// Records that a person has ended their session.
    package func recordSignedOut(by actor: Actor) async throws {
        try await store.recordEvent(kind: .signedOut, run: nil, actor: actor, detail: "", now: now)
    }

    /// Records that callers at an address sent secrets that are not good. Its caller bounds how often.
    package func recordRefused(_ count: Int, from address: String) async throws {
        let place = address.isEmpty ? "an unknown address" : address
        try await store.recordEvent(
            kind: .signInRefused, run: nil, actor: Actor("unknown", origin: .page),
            detail: "\(count.counted("wrong token")) from \(place)", now: now)
    }
}

extension UseCases {
    /// A page of runs, newest first; it may have fewer than `limit` and still be followed by others.
    ///
    /// - Parameter topic: of an app; nil: of all.
    package func runs(
        _ filter: RunFilter, ofTopic topic: String?, cursor: String? = nil, limit: Int
    ) async throws -> RunPageResult {
        try await ListRuns(store: store, runs: runs).page(filter, cursor: cursor, limit: limit) { run in
            topic.map { run.definition.campaign.topic.isTopic(of: $0) } ?? true
        }
    }

    /// The runs that a list leaves out, since their rows cannot be read, oldest first; `nil` if there are none. An app's
    /// caller is told of none: the row does not say which app's run it is.
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
    /// ISO 8601, without an offset in UTC: `2026-12-01`, `2026-12-01T09:00`, `2026-12-01T09:00:00+01:00`.
    package static func parse(_ text: String) -> Timestamp? { ISOTime.parse(text) }
}
