import Model
package import Sending
package import Store

/// How many devices there are, for pages that say so each time they are looked at: counting reads the whole table, which
/// takes seconds for millions of devices.
package struct CachedDeviceCounts: Sendable {
    private enum Subject { case allDevices }

    /// A store that is no larger has no more devices than are counted while the page waits.
    package static let countedAtOnceBytesMax = 4 << 20
    private static let countEvery: Duration = .seconds(60)

    private let store: any DeviceRegistry & StoreUpkeep
    private let clock: WallClock
    private let atOnceBytesMax: Int
    private let counted: CountedBehind<Subject, [DeviceCount]>

    package init(
        store: any DeviceRegistry & StoreUpkeep, gate: CountingGate, clock: WallClock,
        atOnceBytesMax: Int = countedAtOnceBytesMax
    ) {
        self.store = store
        self.clock = clock
        self.atOnceBytesMax = atOnceBytesMax
        counted = CountedBehind(gate, clock: clock, every: Self.countEvery)
    }

    /// As they were counted last; nil: they are being counted.
    package func latest() async throws -> DeviceCountsResult? {
        if let counts = try await countedAtOnce() { return counts }
        return try await counted.latest(.allDevices, count: count).map { DeviceCountsResult($0.figure, at: $0.at) }
    }

    /// The same for whoever needs them: waits where there are none.
    package func awaited() async throws -> DeviceCountsResult {
        if let counts = try await countedAtOnce() { return counts }
        let counts = try await counted.awaited(.allDevices, count: count)
        return DeviceCountsResult(counts.figure, at: counts.at)
    }

    private func countedAtOnce() async throws -> DeviceCountsResult? {
        guard try await store.size().bytes <= atOnceBytesMax else { return nil }
        return DeviceCountsResult(try await count(), at: clock.now())
    }

    @Sendable private func count() async throws -> [DeviceCount] { try await store.deviceCounts() }
}

/// The stable shape of how many devices there were at some moment.
package struct DeviceCountsResult: Codable, Hashable, Sendable {
    /// ISO 8601, UTC.
    package var countedAt: String
    package var counts: [DeviceCountResult]

    package init(countedAt: String, counts: [DeviceCountResult]) {
        self.countedAt = countedAt
        self.counts = counts
    }

    fileprivate init(_ counts: [DeviceCount], at moment: Timestamp) {
        self.init(countedAt: moment.iso8601, counts: counts.map(DeviceCountResult.init))
    }
}
