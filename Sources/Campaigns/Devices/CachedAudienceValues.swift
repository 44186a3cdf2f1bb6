import Model
import Store

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
    package func latest(_ topic: String) async throws -> AudienceValuesResult? {
        if try await store.size().bytes <= CachedDeviceCounts.countedAtOnceBytesMax {
            return AudienceValuesResult(try await store.audienceValues(topic: topic))
        }
        let counted = try await counted.latest(topic) { [store] in try await store.audienceValues(topic: topic) }
        return counted.map { AudienceValuesResult($0.figure) }
    }
}

/// The values that the active devices of an app have, the most frequent ones first. A value that is longer than a new
/// device may have is left out, because a form with many of them would be too large.
package struct AudienceValuesResult: Hashable, Sendable {
    package struct Value: Hashable, Sendable {
        package var name: String
        /// The number of active devices that have the value.
        package var devices: Int

        fileprivate init(_ value: AudienceValues.Value) { (name, devices) = (value.name, value.devices) }

        package init(_ name: String, devices: Int) { (self.name, self.devices) = (name, devices) }
    }

    package var locales: [Value] = []
    package var appVersions: [Value] = []
    package var tags: [Value] = []

    package init() {}

    fileprivate init(_ values: AudienceValues) {
        func offered(_ values: [AudienceValues.Value]) -> [Value] {
            values.filter { $0.name.utf8.count <= DeviceRecord.textBytesMax }.map(Value.init)
        }
        (locales, appVersions, tags) = (
            offered(values.locales), offered(values.appVersions), offered(values.tags)
        )
    }
}
