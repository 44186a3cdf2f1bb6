package import Campaigns
package import Model
package import Sending
package import Store

/// Makes a run of each occurrence that is due, once: whoever else looks at the same schedule finds it there.
package struct DueRuns: Sendable {
    package enum Made: Hashable, Sendable {
        case run(Run)
        /// Not sent: on record as missed or refused.
        case ended(Run)
        /// It goes by itself once its plan is approved; see ``DueRuns/awaited(_:now:)``.
        case waits(String)

        package var run: Run? {
            switch self {
            case .run(let run), .ended(let run): run
            case .waits: nil
            }
        }
    }

    private static let awaitedMax = 1000

    private let store: any AllRoles
    /// Who is on record as having made them.
    private let actor: Actor
    private let approvals: ApprovalRules?
    private let brake: Configuration.VolumeBrake?

    /// - Parameters:
    ///   - approvals: as configured; nil: nothing needs approval.
    ///   - brake: as configured; nil: nothing waits because it is much.
    package init(
        store: any AllRoles, actor: Actor, approvals: ApprovalRules? = nil, brake: Configuration.VolumeBrake? = nil
    ) {
        self.brake = brake
        self.store = store
        self.actor = actor
        self.approvals = approvals
    }

    /// In the order given; occurrences that have a run already are left out.
    package func make(_ due: [Agenda.Due], now: Timestamp) async throws -> [(due: Agenda.Due, made: Made)] {
        var keys: [String: [String]] = [:]
        for entry in due { keys[entry.campaign.campaign.name, default: []].append(entry.occurrence.key) }
        var known: [String: Set<String>] = [:]
        for (campaign, keys) in keys { known[campaign] = try await store.knownOccurrences(of: campaign, among: keys) }
        var result: [(due: Agenda.Due, made: Made)] = []
        for entry in due where known[entry.campaign.campaign.name]?.contains(entry.occurrence.key) != true {
            if let made = try await make(entry, now: now) { result.append((entry, made)) }
        }
        return result
    }

    /// Of the occurrences that wait for approval, those to be made now: what has its signatures, what was rejected or is too
    /// late, and what has another plan since its files changed.
    package func awaited(_ campaigns: [ReadyCampaign], now: Timestamp) async throws -> [Agenda.Due] {
        guard !campaigns.isEmpty else { return [] }
        let plans = ApprovePlans(store: store, rules: approvals)
        var due: [Agenda.Due] = []
        let records = try await store.awaitedApprovals(
            rejectedSince: now - Agenda.lookBackMax, limit: Self.awaitedMax)
        for (index, record) in records.enumerated() {
            let request = record.request
            // Another plan of the same occurrence has come since.
            if records[..<index].contains(where: { $0.request.isOfSameOccurrence(as: request) }) { continue }
            guard let campaign = campaigns.first(where: { $0.campaign.name == request.campaign }),
                let occurrence = campaign.timetable?.occurrence(named: request.occurrence),
                occurrence.startsAt > now - Agenda.lookBackMax
            else {
                // Its campaign or its time is no more; a file may be away for a moment.
                if request.state == .open, request.askedAt < now - Agenda.lookBackMax {
                    try await store.lapseApprovals(
                        campaign: request.campaign, occurrence: request.occurrence, now: now)
                }
                continue
            }
            guard occurrence.startsAt <= now else { continue }
            let known = try await store.knownOccurrences(of: request.campaign, among: [occurrence.key])
            guard known.isEmpty else {
                if request.state == .open {
                    try await store.lapseApprovals(campaign: request.campaign, occurrence: occurrence.key, now: now)
                }
                continue
            }
            let isOver = request.state == .rejected || now > occurrence.missedAfter
            var isReady = isOver
            if !isOver {
                isReady = try await plans.isReady(
                    record, campaign.definition(for: occurrence), files: campaign.files, now: now)
            }
            if isReady { due.append(Agenda.Due(campaign: campaign, occurrence: occurrence)) }
        }
        return due
    }

    private func make(_ due: Agenda.Due, now: Timestamp) async throws -> Made? {
        let occurrence = due.occurrence
        do {
            let definition = try due.campaign.definition(for: occurrence)
            guard now <= occurrence.missedAfter else {
                return try await end(definition, occurrence, .missed, occurrence.lateness(at: now), now)
            }
            do {
                _ = try VariantRenderers(definition)
                let (run, isNew) = try await StartRun(store: store, approvals: approvals, brake: brake)
                    .start(
                        definition, occurrence: occurrence.key, by: actor, now: now, files: due.campaign.files,
                        isScheduled: true)
                return isNew ? .run(run) : nil
            } catch let unapproved as Unapproved {
                if unapproved.isWaiting { return .waits(unapproved.description) }
                return try await end(definition, occurrence, .failed, unapproved.description, now)
            } catch let error as PayloadRenderer.RenderError {
                return try await end(definition, occurrence, .failed, error.description, now)
            } catch let error as GuardRefusal {
                return try await end(definition, occurrence, .failed, error.description, now)
            }
        }
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

extension ApprovalRequest {
    fileprivate func isOfSameOccurrence(as other: ApprovalRequest) -> Bool {
        campaign == other.campaign && occurrence == other.occurrence
    }
}

/// A run that `run --due` carried out, went on with or put on record as not sent, as it was left.
package struct DueRun: Hashable, Sendable {
    package var run: Run
    package var end: RunEnd

    package init(run: Run, end: RunEnd) {
        self.run = run
        self.end = end
    }
}

/// The stable shape of `run --due --json`.
package struct DueResult: Codable, Hashable, Sendable {
    package struct Entry: Codable, Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var occurrence: String
        package var state: String
        package var stateReason: String?
        /// As in ``RunResult``.
        package var halt: String?
        package var counts: CountsResult
    }

    package var runs: [Entry]

    package init(ended: [DueRun]) {
        runs = ended.map { ended in
            Entry(
                run: ended.run.id, campaign: ended.run.campaign, occurrence: ended.run.occurrence,
                state: ended.run.state.rawValue, stateReason: ended.run.stateReason, halt: ended.run.halt?.rawValue,
                counts: CountsResult(ended.run.counts))
        }
    }
}
