package import Campaigns
package import Model
import Rendering
import Sending
import Store

/// Creates a run for each due occurrence, once: any other process that reads the same schedule finds the run.
package struct DueRuns: Sendable {
    package enum Made: Hashable, Sendable {
        case run(Run)
        /// Not sent: recorded as missed or refused.
        case ended(Run)
        /// The occurrence starts automatically once its plan is approved; see ``DueRuns/awaited(_:now:except:)``.
        case waits(String)
        /// The occurrence could not be started, and is still due.
        case delayed(Delay)

        package var run: Run? {
            switch self {
            case .run(let run), .ended(let run): run
            case .waits, .delayed: nil
            }
        }
    }

    package struct Delay: Hashable, Sendable {
        package var reason: String
        /// Whether the store accepts nothing now. The delay then says nothing about the occurrence.
        package var isPassing: Bool
        /// Whether the count of the audience took too long. The campaign's other occurrences probably take as long.
        package var isSlow = false
    }

    /// The longest time of one expensive read for an occurrence.
    package static let countLimit: Duration = .seconds(120)

    /// The longest time of one expensive read for an occurrence that waits for approval. The limit is short, because
    /// other occurrences wait meanwhile.
    private static let lookLimit: Duration = .seconds(5)

    /// The number of campaigns whose occurrences ``make(_:now:)`` starts at the same time, so that a campaign with a
    /// slow count delays no other. A daemon starts one campaign in each call. `run --due` starts all campaigns in one
    /// call. No outside callers use its process, so `run --due` may use all of their reads in ``ReadQueue``.
    private static let campaignsAtOnce = ReadQueue.atOnceMax

    private static let awaitedMax = 1000

    private let store: any ApprovePlans.PlanStore
    /// The actor that is recorded as the creator of the runs.
    private let actor: Actor
    private let approvals: ApprovalRules?
    private let brake: Configuration.VolumeBrake?
    private let countLimit: Duration

    /// - Parameters:
    ///   - approvals: the configured rules; `nil` if nothing needs approval.
    ///   - brake: the configured volume brake; `nil` if no run waits because of its size.
    ///   - countLimit: the longest time of one expensive read.
    package init(
        store: any ApprovePlans.PlanStore, actor: Actor, approvals: ApprovalRules? = nil,
        brake: Configuration.VolumeBrake? = nil,
        countLimit: Duration = Self.countLimit
    ) {
        self.countLimit = countLimit
        self.brake = brake
        self.store = store
        self.actor = actor
        self.approvals = approvals
    }

    /// Creates the runs, and returns the results in the given order. Occurrences that already have a run are left out.
    /// An error of one entry ends or delays that entry only. Throws only if the task is cancelled, and for a
    /// ``DaemonEnd``.
    package func make(_ due: [Agenda.Due], now: Timestamp) async throws -> [(due: Agenda.Due, made: Made)] {
        let campaigns = Dictionary(grouping: due.indices) { due[$0].campaign.campaign.name }
        return try await withThrowingTaskGroup(of: [(index: Int, made: Made)].self) { group in
            var made: [(index: Int, made: Made)] = []
            let inOrder = campaigns.values.sorted { $0[0] < $1[0] }
            for (number, indices) in inOrder.enumerated() {
                if number >= Self.campaignsAtOnce { made += try await group.next() ?? [] }
                let name = due[indices[0]].campaign.campaign.name
                group.addTask { try await make(indices.map { ($0, due[$0]) }, of: name, now: now) }
            }
            for try await more in group { made += more }
            return made.sorted { $0.index < $1.index }.map { (due[$0.index], $0.made) }
        }
    }

    private func make(
        _ entries: [(index: Int, due: Agenda.Due)], of campaign: String, now: Timestamp
    ) async throws -> [(index: Int, made: Made)] {
        let known: Set<String>
        do {
            known = try await store.knownOccurrences(of: campaign, among: entries.map(\.due.occurrence.key))
        } catch {
            let delay = try delay(for: error)
            return entries.map { ($0.index, .delayed(delay)) }
        }
        var result: [(index: Int, made: Made)] = []
        var slow: Delay?
        for (index, due) in entries where !known.contains(due.occurrence.key) {
            // After one count that was too slow, do not try the campaign's other counts. An occurrence that is too
            // late needs no count.
            if var slow, now <= due.occurrence.missedAfter {
                slow.reason = "not tried, because another occurrence of the campaign was too slow: \(slow.reason)"
                result.append((index, .delayed(slow)))
                continue
            }
            do {
                let made = try await ReadAllowance(limit: countLimit).use { try await make(due, now: now) }
                if let made { result.append((index, made)) }
            } catch {
                let delay = try delay(for: error)
                if delay.isSlow { slow = delay }
                result.append((index, .delayed(delay)))
            }
        }
        return result
    }

    /// Returns the delay for an error. Rethrows an error that concerns all entries.
    private func delay(for error: any Error) throws -> Delay {
        if Task.isCancelled || DaemonEnd.isReason(error, owner: actor.name) { throw error }
        switch error {
        case ReadRefusal.tookTooLong(let limit):
            return Delay(
                reason:
                    "the audience was not counted within \(WrittenDuration.text(limit)); simplify the audience, or "
                    + "send with `fanfare run`, which has no limit", isPassing: false, isSlow: true)
        case StoreError.audienceSQL(.tooSlow): return Delay(reason: "\(error)", isPassing: false, isSlow: true)
        default: return Delay(reason: "\(error)", isPassing: (error as? StoreError)?.isPassing ?? false)
        }
    }

    /// Returns the occurrences waiting for approval that ``make(_:now:)`` must process now. At least one of these is
    /// true:
    ///
    /// - The occurrence has its approvals.
    /// - It was rejected, or is too late.
    /// - It has another plan since its files changed.
    /// - It cannot be checked; ``make(_:now:)`` then reports why.
    ///
    /// - Parameter isResting: whether an occurrence waits for its next attempt.
    package func awaited(
        _ campaigns: [ReadyCampaign], now: Timestamp, slowMax: Int = .max,
        except isDecided: (Agenda.Due) -> Bool = { _ in false }
    ) async throws -> [Agenda.Due] {
        guard !campaigns.isEmpty else { return [] }
        let plans = ApprovePlans(store: store, rules: approvals)
        var due: [Agenda.Due] = []
        var slow = 0
        let records = try await store.awaitedApprovals(
            rejectedSince: now - Agenda.lookBackMax, limit: Self.awaitedMax)
        for (index, record) in records.enumerated() {
            let request = record.request
            // A newer plan of the same occurrence comes first.
            if records[..<index].contains(where: { $0.request.isOfSameOccurrence(as: request) }) { continue }
            guard let campaign = campaigns.first(where: { $0.campaign.name == request.campaign }),
                let occurrence = campaign.timetable?.occurrence(named: request.occurrence),
                occurrence.startsAt > now - Agenda.lookBackMax
            else {
                // The campaign or the occurrence no longer exists. Its file may be missing only for a moment, so keep
                // recent requests.
                if request.state == .open, request.askedAt < now - Agenda.lookBackMax {
                    try await store.lapseApprovals(
                        campaign: request.campaign, occurrence: request.occurrence, now: now)
                }
                continue
            }
            let entry = Agenda.Due(campaign: campaign, occurrence: occurrence)
            guard occurrence.startsAt <= now, !isDecided(entry) else { continue }
            do {
                let isDue = try await ReadAllowance(limit: min(countLimit, Self.lookLimit)).use {
                    try await isToBeMade(entry, record, plans, now: now)
                }
                if isDue { due.append(entry) }
            } catch {
                due.append(entry)
                if try delay(for: error).isSlow { slow += 1 }
                if slow >= slowMax { break }
            }
        }
        return due
    }

    private func isToBeMade(
        _ due: Agenda.Due, _ record: ApprovalRecord, _ plans: ApprovePlans, now: Timestamp
    ) async throws -> Bool {
        let (request, occurrence) = (record.request, due.occurrence)
        let known = try await store.knownOccurrences(of: request.campaign, among: [occurrence.key])
        guard known.isEmpty else {
            if request.state == .open {
                try await store.lapseApprovals(campaign: request.campaign, occurrence: occurrence.key, now: now)
            }
            return false
        }
        if request.state == .rejected || now > occurrence.missedAfter { return true }
        return try await plans.isReady(
            record, definition(of: due), files: due.campaign.files, now: now)
    }

    private func make(_ due: Agenda.Due, now: Timestamp) async throws -> Made? {
        let occurrence = due.occurrence
        do {
            let definition = try await definition(of: due)
            let gap = try await store.restoreGap()
            if let reason = gap?.refusal(startsAt: occurrence.startsAt, campaign: definition.campaign.name) {
                return try await end(definition, occurrence, .missed, reason, now)
            }
            guard now <= occurrence.missedAfter else {
                let fault = due.fault.map { "; the run could not be started: \($0)" } ?? ""
                return try await end(definition, occurrence, .missed, occurrence.lateness(at: now) + fault, now)
            }
            _ = try VariantRenderers(definition)
            let (run, isNew, _) = try await StartRun(store: store, approvals: approvals, brake: brake)
                .start(
                    definition, occurrence: occurrence.key, by: actor, now: now, files: due.campaign.files,
                    isScheduled: true)
            return isNew ? .run(run) : nil
        } catch let unapproved as Unapproved where unapproved.isWaiting {
            return .waits(unapproved.description)
        } catch {
            guard let reason = OccurrenceRefusal.summary(error) else { throw error }
            return try await end(try await definition(of: due), occurrence, .failed, reason, now)
        }
    }

    /// Returns what an occurrence sends: the files as they are now, with the values that a person gave for it. The
    /// values are read once, as a whole, and the run keeps them. A later change no longer counts.
    private func definition(of due: Agenda.Due) async throws -> RunDefinition {
        let given = try await store.values(campaign: due.campaign.campaign.name, occurrence: due.occurrence.key)
        return due.campaign.definition(for: due.occurrence, with: given?.variables ?? [:])
    }

    private func end(
        _ definition: RunDefinition, _ occurrence: Occurrence, _ state: RunState, _ reason: String, _ now: Timestamp
    ) async throws -> Made? {
        let isNew = try await store.createEndedRun(
            definition, occurrence: occurrence.key, state: state, reason: reason, now: now, by: actor)
        try await store.lapseApprovals(campaign: definition.campaign.name, occurrence: occurrence.key, now: now)
        guard isNew else { return nil }
        return try await store.run(campaign: definition.campaign.name, occurrence: occurrence.key).map { .ended($0) }
    }
}

extension Scheduler {
    /// The time that decides what is due. The clock must be confirmed, because a missed occurrence is final.
    var time: ConfirmedClock { ConfirmedClock(store: store, clock: clock, actor: actor, logger: logger) }
}

extension ApprovalRequest {
    fileprivate func isOfSameOccurrence(as other: ApprovalRequest) -> Bool {
        campaign == other.campaign && occurrence == other.occurrence
    }
}

/// The reason why an occurrence, or an item of a feed, cannot be sent with the current files and segments of its
/// campaign.
///
/// Such an occurrence ends immediately as refused, with this reason in the log, in `status` and in a webhook. A
/// person must correct the cause, and can then send the occurrence with `fanfare run`. Any other error may be
/// temporary.
enum OccurrenceRefusal {
    /// Returns the reason, or `nil` for an error that the campaign does not cause.
    static func summary(_ error: any Error) -> String? {
        switch error {
        case let error as Unapproved: error.isWaiting ? nil : error.description
        case let error as GuardRefusal: error.description
        case let error as PayloadRenderer.RenderError: error.description
        case let error as RunVariables.VariableError: error.description
        case let error as StoreError: error.isAboutAudience ? error.description : nil
        default: nil
        }
    }
}
