import Model
package import Store

/// The number of devices, for pages that show it on each request. Counting reads the whole table, which takes seconds
/// for millions of devices.
package struct CachedDeviceCounts: Sendable {
    private enum Subject { case allDevices }

    /// The maximum size of a store, in bytes, whose devices are counted while the page waits.
    package static let countedAtOnceBytesMax = 4 << 20
    private static let countEvery: Duration = .seconds(60)

    private let store: any DeviceRegistry & StoreUpkeep
    private let clock: WallClock
    private let atOnceBytesMax: Int
    private let counted: BackgroundCountCache<Subject, [DeviceCount]>

    package init(
        store: any DeviceRegistry & StoreUpkeep, countQueue: CountQueue, clock: WallClock,
        atOnceBytesMax: Int = countedAtOnceBytesMax
    ) {
        self.store = store
        self.clock = clock
        self.atOnceBytesMax = atOnceBytesMax
        counted = BackgroundCountCache(countQueue, clock: clock, every: Self.countEvery)
    }

    /// Returns the latest counts; `nil` while the devices are being counted for the first time.
    package func latest() async throws -> DeviceCountsResult? {
        if let counts = try await countedAtOnce() { return counts }
        return try await counted.latest(.allDevices, count: count).map { DeviceCountsResult($0.figure, at: $0.at) }
    }

    /// Returns the latest counts, and waits for them if there are none yet.
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

/// The stable shape of the device counts at one moment.
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
