package import Store

/// The values that the devices of an app have, for a form that offers them. Counting them reads the whole table.
package struct CachedAudienceValues: Sendable {
    private static let countEvery: Duration = .seconds(600)

    private let store: any DeviceRegistry & StoreUpkeep
    private let counted: BackgroundCountCache<String, AudienceValues>

    init(store: any DeviceRegistry & StoreUpkeep, countQueue: CountQueue, clock: WallClock) {
        self.store = store
        counted = BackgroundCountCache(countQueue, clock: clock, every: Self.countEvery)
    }

    /// Returns the latest values of a topic; `nil` while they are being counted for the first time.
    package func latest(_ topic: String) async throws -> AudienceValues? {
        if try await store.size().bytes <= CachedDeviceCounts.countedAtOnceBytesMax {
            return try await store.audienceValues(topic: topic)
        }
        return try await counted.latest(topic) { [store] in try await store.audienceValues(topic: topic) }?.figure
    }
}
