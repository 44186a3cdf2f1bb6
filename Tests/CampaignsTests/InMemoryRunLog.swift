import Model
import Store
import Synchronization

/// A run log that forgets everything with the process: what a use case asks of a store, and nothing of SQL.
final class InMemoryRunLog: RunLog, AuditLog {
    private struct State {
        var runs: [Int64: Run] = [:]
        var events: [StoreEvent] = []
    }

    private let state = Mutex(State())

    func restoreGap() async throws -> RestoreGap? { nil }

    func createRun(
        _ definition: RunDefinition, occurrence: String, isTest: Bool, now: Timestamp, by actor: Actor,
        notes: [EventNote], files: [String: String], volume: VolumeRequest?, limits: ReachLimits?
    ) async throws -> (run: Run, isNew: Bool) {
        state.withLock { state in
            let name = definition.campaign.name
            if let known = state.runs.values.first(where: { $0.campaign == name && $0.occurrence == occurrence }) {
                return (known, false)
            }
            let id = Int64(state.runs.count + 1)
            let run = Run(
                id: id, campaign: name, occurrence: occurrence, definition: definition, state: .scheduled,
                isTest: isTest, createdAt: now)
            state.runs[id] = run
            Self.note(.runCreated, run, actor, occurrence, now, &state)
            return (run, true)
        }
    }

    func volumeHold(_ request: VolumeRequest, now: Timestamp) async throws -> VolumeHold? { nil }

    func change(
        _ run: Int64, to next: RunState, reason: String?, now: Timestamp, by actor: Actor, seen: SeenRun?
    ) async throws {
        try state.withLock { state in
            guard var changed = state.runs[run] else { throw StoreError.noSuchRun(run) }
            try seen?.require(changed)
            guard changed.state != next else { return }
            guard RunTransition(from: changed.state, to: next).isAllowed else {
                throw StoreError.illegalChange(run: run, from: changed.state, to: next)
            }
            changed.state = next
            changed.stateReason = reason
            changed.pausedBy = next == .paused ? actor.name : nil
            state.runs[run] = changed
            Self.note(.entered(next), changed, actor, reason ?? "", now, &state)
        }
    }

    /// As if that process sent it.
    func own(_ run: Int64, by owner: String) { state.withLock { $0.runs[run]?.owner = owner } }

    func run(_ id: Int64) async throws -> Run? { state.withLock { $0.runs[id] } }

    func run(campaign: String, occurrence: String) async throws -> Run? {
        state.withLock { $0.runs.values.first { $0.campaign == campaign && $0.occurrence == occurrence } }
    }

    func latestRun(campaign: String, includingTests: Bool) async throws -> Run? {
        state.withLock { state in
            state.runs.values.filter { $0.campaign == campaign && (includingTests || !$0.isTest) }
                .max { $0.id < $1.id }
        }
    }

    func latestRun(campaign: String, state wanted: RunState) async throws -> Run? {
        state.withLock { state in
            state.runs.values.filter { $0.campaign == campaign && $0.state == wanted && !$0.isTest }
                .max { $0.id < $1.id }
        }
    }

    func runs(limit: Int, includingTests: Bool) async throws -> [Run] {
        state.withLock { state in
            Array(state.runs.values.filter { includingTests || !$0.isTest }.sorted { $0.id > $1.id }.prefix(limit))
        }
    }

    func unreadableRuns() async throws -> [UnreadableRun] { [] }

    func listedRuns(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [ListedRun] {
        try await runs(filter, before: id, limit: limit).map { .readable($0) }
    }

    func events(run: Int64?, since: Timestamp?, limit: Int) async throws -> [StoreEvent] {
        state.withLock { state in
            state.events.filter { (run == nil || $0.run == run) && $0.at >= since ?? $0.at }
                .suffix(limit)
        }
    }

    private static func note(
        _ kind: EventKind, _ run: Run, _ actor: Actor, _ detail: String, _ now: Timestamp, _ state: inout State
    ) {
        state.events.append(
            StoreEvent(
                id: Int64(state.events.count + 1), at: now, kind: kind.rawValue, run: run.id, campaign: run.campaign,
                actor: actor, detail: detail, files: [:]))
    }
}

// What no use case of these tests asks for.
extension InMemoryRunLog {
    struct NotAsked: Error {}

    func createTestRun(
        _ definition: RunDefinition, occurrence: String, device: Int64, variant: Int?, now: Timestamp, by actor: Actor
    ) async throws -> Run { throw NotAsked() }

    func createEndedRun(
        _ definition: RunDefinition, occurrence: String, state: RunState, reason: String, now: Timestamp,
        by actor: Actor
    ) async throws -> Bool { throw NotAsked() }

    func runs(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [Run] { throw NotAsked() }

    func runs(_ filter: RunFilter, after id: Int64, limit: Int) async throws -> [Run] { throw NotAsked() }

    func events(_ filter: EventFilter, before id: Int64?, limit: Int) async throws -> EventPage { throw NotAsked() }

    func knownOccurrences(of campaign: String, among keys: [String]) async throws -> Set<String> { throw NotAsked() }

    func openRuns(for owner: String, inHand: Set<Int64>) async throws -> [Run] {
        throw NotAsked()
    }

    func openFeedRuns(campaign: String) async throws -> [Run] { throw NotAsked() }

    func unfinishedRuns(campaign: String, occurrencePrefix: String) async throws -> [Run] { throw NotAsked() }

    func haltedRuns() async throws -> [Run] { throw NotAsked() }

    func stages(of run: Int64) async throws -> [StageRecord] { [] }

    func approveStage(
        of run: Int64, stage: Int, variant: Int?, by actor: Actor, now: Timestamp
    ) async throws -> Bool { false }

    func waits(of run: Int64, now: Timestamp) async throws -> RunWaits { RunWaits() }

    func noteClocks(_ reading: ClockReading, by actor: Actor) async throws -> ClockStep? { throw NotAsked() }

    func clockSteps(since moment: Timestamp) async throws -> [ClockStep] { [] }

    func recordEvent(
        kind: EventKind, run: Int64?, actor: Actor, detail: String, files: [String: String], now: Timestamp
    ) async throws { throw NotAsked() }
}
