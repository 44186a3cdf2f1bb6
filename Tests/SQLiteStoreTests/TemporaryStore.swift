import Foundation
import Model
import SQLiteStore
import Store
import Testing

let wendercast = "com.example.wendercast"
let noon = Timestamp(milliseconds: 1_800_000_000_000)

/// A store in a folder of its own, closed and removed after `body`.
@discardableResult
func withStore<Value>(_ body: (SQLiteFileStore) async throws -> Value) async throws -> Value {
    try await withFolder { folder in
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        let result = await attempt { try await body(store) }
        try store.close()
        return try result.get()
    }
}

@discardableResult
func withFolder<Value>(_ body: (URL) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let result = await attempt { try await body(folder) }
    try FileManager.default.removeItem(at: folder)
    return try result.get()
}

private func attempt<Value>(_ body: () async throws -> Value) async -> Result<Value, any Error> {
    do { return .success(try await body()) } catch { return .failure(error) }
}

/// The same numbers on every machine (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

/// A token of 32 bytes that shows its number.
func token(_ number: Int) throws -> DeviceToken {
    var bytes = [UInt8](repeating: 0xAB, count: 24)
    withUnsafeBytes(of: Int64(number).bigEndian) { bytes.append(contentsOf: $0) }
    return try #require(DeviceToken(bytes: bytes))
}

func record(
    _ number: Int, installation: String? = nil, environment: PushEnvironment = .production, topic: String = wendercast,
    _ change: (inout DeviceRecord) -> Void = { _ in }
) throws -> DeviceRecord {
    var record = DeviceRecord(token: try token(number), environment: environment, topic: topic)
    record.installationID = installation ?? "install-\(number)"
    change(&record)
    return record
}

func definition(
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

extension SQLiteFileStore {
    /// A run claimed by `owner` and frozen.
    func startRun(
        _ definition: RunDefinition, occurrence: String = "once", owner: String = "a", now: Timestamp = noon
    ) async throws -> Int64 {
        let run = try await createRun(definition, occurrence: occurrence, now: now, by: "test").run.id
        #expect(try await claim(run, by: Actor(owner), now: now, staleAfter: .seconds(60)) == .claimed)
        _ = try await freeze(run, now: now) { _ in }
        return run
    }

    func lease(
        _ run: Int64, after: Int64 = 0, limit: Int = 1000, now: Timestamp = noon, owner: String = "a",
        environment: PushEnvironment = .production
    ) async throws -> Lease {
        try await lease(
            LeaseRequest(run: run, environment: environment, after: after, limit: limit, now: now, owner: owner))
    }

    func expectSumsClose(_ run: Int64, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let check = try await check(run)
        #expect(check.problems == [], sourceLocation: sourceLocation)
    }
}

extension Lease {
    /// Settlements of all its deliveries.
    func settlements(
        _ verdict: Settlement.Verdict, status: Int = 200, reason: String? = nil,
        effect: Settlement.DeviceEffect = .none
    ) -> [Settlement] {
        deliveries.map { delivery in
            Settlement(
                lease: id, device: delivery.device, generation: delivery.generation, attempt: delivery.attempt,
                verdict: verdict, status: status, reason: reason, localeIndex: 0, effect: effect)
        }
    }
}

extension Expiry? {
    /// Over at that moment; nil: never.
    static func until(_ moment: Timestamp?) -> Expiry? {
        moment.map { Expiry(plannedAt: $0 - .seconds(1), after: .seconds(1)) }
    }
}

// What most tests leave at its usual value.
extension DeviceRegistry {
    func importSegment(_ name: String, mode: SegmentImportMode) async throws -> any SegmentImport {
        try await importSegment(name, mode: mode, topic: nil)
    }

    func segments() async throws -> [SegmentSummary] { try await segments(now: nil) }

    func segment(_ name: String, now: Timestamp) async throws -> SegmentDetail {
        try await segment(name, now: now, sampleMax: 5)
    }

    func pruneDevices(
        goneBefore: Timestamp? = nil, notSeenSince: Timestamp? = nil, dryRun: Bool, now: Timestamp,
        by actor: Actor = "test"
    ) async throws -> PruneCounts {
        try await pruneDevices(
            goneBefore: goneBefore, notSeenSince: notSeenSince, topic: nil, dryRun: dryRun, now: now, by: actor)
    }

    func pruneDevices(
        goneBefore: Timestamp? = nil, notSeenSince: Timestamp? = nil, topic: String?, dryRun: Bool, now: Timestamp
    ) async throws -> PruneCounts {
        try await pruneDevices(
            goneBefore: goneBefore, notSeenSince: notSeenSince, topic: topic, dryRun: dryRun, now: now, by: "test")
    }
}

extension StoreUpkeep {
    func backUp(to path: String) async throws -> BackupSummary { try await backUp(to: path, overwriting: false) }

    func verify(budgets: [String: Configuration.SilentBudget]) async throws -> Verification {
        try await verify(budgets: budgets, faultsMax: 20)
    }

    func pruneOutcomes(
        finishedBefore moment: Timestamp, dryRun: Bool, now: Timestamp
    ) async throws -> OutcomePruneCounts {
        try await pruneOutcomes(finishedBefore: moment, dryRun: dryRun, now: now, by: "test")
    }
}
