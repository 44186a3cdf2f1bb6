package import Model
package import Store
import Synchronization
package import Testing

package let wendercast = "com.example.wendercast"
package let noon = Timestamp(milliseconds: 1_800_000_000_000)

/// A token of 32 bytes that shows its number.
package func token(_ number: Int) throws -> DeviceToken {
    var bytes = [UInt8](repeating: 0xAB, count: 24)
    withUnsafeBytes(of: Int64(number).bigEndian) { bytes.append(contentsOf: $0) }
    return try #require(DeviceToken(bytes: bytes))
}

package func record(
    _ number: Int, installation: String? = nil, environment: PushEnvironment = .production, topic: String = wendercast,
    _ change: (inout DeviceRecord) -> Void = { _ in }
) throws -> DeviceRecord {
    var record = DeviceRecord(token: try token(number), environment: environment, topic: topic)
    record.installationID = installation ?? "install-\(number)"
    change(&record)
    return record
}

package func definition(
    _ name: String = "new-podcast", pushType: PushType = .alert, audience: AudienceExpression = .everyone,
    _ change: (inout Campaign) -> Void = { _ in }
) throws -> RunDefinition {
    var campaign = Campaign(name: name, topic: wendercast, pushType: pushType, template: name)
    campaign.audience = Audience(source: "", expression: audience)
    change(&campaign)
    var template = Template(name: name)
    let blocks = try ["en", "de"].map { name in
        Template.LocalizedAlert(
            locale: try #require(LocaleTag(name)), title: nil, subtitle: nil, body: TemplateText(literal: name))
    }
    template.alert = .localized(blocks)
    return RunDefinition(campaign: campaign, template: template, variables: [:], plannedAt: noon)
}

extension RunLog where Self: DeliveryQueue & RunOwnership {
    /// A run claimed by `owner` and frozen.
    package func startRun(
        _ definition: RunDefinition, occurrence: String = "once", owner: String = "a", now: Timestamp = noon
    ) async throws -> Int64 {
        let run = try await createRun(definition, occurrence: occurrence, now: now, by: "test").run.id
        #expect(try await claim(run, by: Actor(owner), now: now) == .claimed)
        _ = try await freeze(run, by: owner, now: now) { _ in }
        return run
    }

    /// What a sender without a journal left is in doubt, and goes out again while there are attempts.
    @discardableResult
    package func recover(_ run: Int64, now: Timestamp) async throws -> Recovered {
        let record = try #require(try await self.run(run))
        let left = try await abandonedLeases(run)
        var recovered = Recovered(leases: left.count)
        var settlements: [Settlement] = []
        for lease in left {
            for delivery in lease.deliveries {
                let isResent = record.definition.campaign.mayResendUnknown(afterAttempt: delivery.attempt)
                if isResent { recovered.resent += 1 } else { recovered.unknown += 1 }
                settlements.append(
                    Settlement(
                        lease: lease.id, device: delivery.device, generation: delivery.generation,
                        leaseNumber: delivery.leaseNumber, attempt: delivery.attempt,
                        verdict: isResent ? .retry(notBefore: now) : .unknown, isInDoubt: true,
                        reason: Settlement.interrupted))
            }
        }
        _ = try await recover(run, heldBy: record.owner ?? "", left, settlements, now: now)
        return recovered
    }
}

/// What a recovery found.
package struct Recovered: Hashable, Sendable {
    package var leases = 0
    package var resent = 0
    package var unknown = 0
}

extension DeliveryQueue where Self: RunLog & RunOwnership {
    /// By its owner, which is made "a" where it has none.
    package func freeze(
        _ run: Int64, now: Timestamp, onBatch: @escaping @Sendable (FrozenBatch) -> Void
    ) async throws -> DeliveryCounts {
        if try await self.run(run)?.owner == nil {
            _ = try await claim(run, by: "a", now: now)
        }
        let owner = try await self.run(run)?.owner ?? ""
        return try await freeze(run, by: owner, now: now, onBatch: onBatch)
    }

    /// Freezes the first batch, and is cut off. A store that reads and writes at the same time may have written up to
    /// three more by then: 62,000 deliveries.
    package func beginFreeze(_ run: Int64) async throws {
        let cut = Mutex<Task<Void, any Error>?>(nil)
        // Begun before its task is known, it would be cut off after a later batch.
        let (known, becomesKnown) = AsyncStream<Never>.makeStream()
        let work = Task {
            for await _ in known {}
            _ = try await freeze(run, now: noon) { _ in cut.withLock { $0?.cancel() } }
        }
        cut.withLock { $0 = work }
        becomesKnown.finish()
        await #expect(throws: CancellationError.self) { try await work.value }
    }
}

extension DeliveryQueue {
    package func lease(
        _ run: Int64, after: Int64 = 0, limit: Int = 1000, now: Timestamp = noon, owner: String = "a",
        environment: PushEnvironment = .production
    ) async throws -> Lease {
        try await lease(
            LeaseRequest(run: run, environment: environment, after: after, limit: limit, now: now, owner: owner))
    }
}

extension DeliveryQueue {
    /// As a run that proves healthy ends.
    package func settleAndMark(run: Int64, _ settlements: [Settlement], now: Timestamp) async throws -> DeliveryCounts {
        let counts = try await settle(run: run, settlements, now: now)
        _ = try await markGone(run: run, now: now)
        return counts
    }
}

extension OutcomeReader {
    package func expectSumsClose(_ run: Int64, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let check = try await check(run)
        #expect(check.problems == [], sourceLocation: sourceLocation)
    }
}

extension Lease {
    /// Settlements of all its deliveries.
    package func settlements(
        _ verdict: Settlement.Verdict, status: Int = 200, reason: String? = nil,
        effect: Settlement.DeviceEffect = .none
    ) -> [Settlement] {
        deliveries.map { delivery in
            Settlement(
                lease: id, device: delivery.device, generation: delivery.generation,
                leaseNumber: delivery.leaseNumber, attempt: delivery.attempt, verdict: verdict, status: status,
                reason: reason, localeIndex: 0, effect: effect, stage: delivery.stage)
        }
    }
}

extension Expiry? {
    /// Over at that moment; nil: never.
    package static func until(_ moment: Timestamp?) -> Expiry? {
        moment.map { Expiry(plannedAt: $0 - .seconds(1), after: .seconds(1)) }
    }
}

// What most tests leave at its usual value.
extension DeviceRegistry {
    /// As a file is imported: a transaction that holds very many records is given up on a slow machine.
    package func importInBatches(_ records: [DeviceRecord]) async throws {
        for start in stride(from: 0, to: records.count, by: 5_000) {
            let batch = Array(records[start..<min(start + 5_000, records.count)])
            _ = try await importDevices(batch, now: noon, dryRun: false)
        }
    }

    package func importSegment(_ name: String, mode: SegmentImportMode) async throws -> any SegmentImport {
        try await importSegment(name, mode: mode, topic: nil)
    }

    package func segments() async throws -> [SegmentSummary] { try await segments(now: nil) }

    package func segment(_ name: String, now: Timestamp) async throws -> SegmentDetail {
        try await segment(name, now: now, sampleMax: 5)
    }

    package func pruneDevices(
        goneBefore: Timestamp? = nil, notSeenSince: Timestamp? = nil, dryRun: Bool, now: Timestamp,
        by actor: Actor = "test"
    ) async throws -> PruneCounts {
        try await pruneDevices(
            goneBefore: goneBefore, notSeenSince: notSeenSince, topic: nil, dryRun: dryRun, now: now, by: actor)
    }

    package func pruneDevices(
        goneBefore: Timestamp? = nil, notSeenSince: Timestamp? = nil, topic: String?, dryRun: Bool, now: Timestamp
    ) async throws -> PruneCounts {
        try await pruneDevices(
            goneBefore: goneBefore, notSeenSince: notSeenSince, topic: topic, dryRun: dryRun, now: now, by: "test")
    }
}

extension StoreUpkeep {
    package func backUp(to path: String) async throws -> BackupSummary {
        try await backUp(to: path, overwriting: false)
    }

    package func verify(budgets: [String: Configuration.SilentBudget]) async throws -> Verification {
        try await verify(budgets: budgets, faultsMax: 20)
    }

    package func pruneOutcomes(
        finishedBefore moment: Timestamp, dryRun: Bool, now: Timestamp
    ) async throws -> OutcomePruneCounts {
        try await pruneOutcomes(finishedBefore: moment, dryRun: dryRun, now: now, by: "test")
    }
}

/// Who is alive, as a promise of what several processes see of one store says it.
package final class Mortals: Sendable {
    private let gone = Mutex<Set<String>>([])

    package init() {}

    package func end(_ owner: String) { gone.withLock { _ = $0.insert(owner) } }

    package var isAlive: OwnerLiveness.IsAlive { { owner in self.gone.withLock { !$0.contains(owner) } } }
}

/// What a callback was given, in order.
package final class Collected<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    package init() {}

    package func add(_ more: [Element]) { elements.withLock { $0 += more } }

    package var all: [Element] { elements.withLock { $0 } }
}
