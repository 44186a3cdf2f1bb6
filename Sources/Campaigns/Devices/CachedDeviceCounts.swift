package import Model
package import Store

/// How many devices there are, for pages that say so each time they are looked at: counting reads the whole table, which
/// takes seconds for millions of devices. One look a minute counts, behind whoever looked; all are told what was found last.
package actor CachedDeviceCounts {
    private let store: any DeviceRegistry
    private let ageMax: Duration
    /// Older ones are not shown: whoever looks waits.
    private static let shownFor: Duration = .seconds(600)
    private var last: (counts: [DeviceCount], at: Timestamp)?
    private var isCounting = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    package init(store: any DeviceRegistry, ageMax: Duration = .seconds(60)) {
        self.store = store
        self.ageMax = ageMax
    }

    /// Waits where there are no figures yet, or only old ones.
    package func counts(now: Timestamp) async throws -> DeviceCountsResult {
        while true {
            if let last, (.zero..<Self.shownFor).contains(now - last.at) {
                if now - last.at >= ageMax, !isCounting {
                    isCounting = true
                    Task { try? await count(now: now) }
                }
                return Self.result(last)
            }
            guard isCounting else { return try await count(now: now) }
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    @discardableResult
    private func count(now: Timestamp) async throws -> DeviceCountsResult {
        isCounting = true
        defer {
            isCounting = false
            for waiter in waiting { waiter.resume() }
            waiting = []
        }
        let counted = (counts: try await store.deviceCounts(), at: now)
        last = counted
        return Self.result(counted)
    }

    private static func result(_ counted: (counts: [DeviceCount], at: Timestamp)) -> DeviceCountsResult {
        DeviceCountsResult(countedAt: counted.at.iso8601, counts: counted.counts.map(DeviceCountResult.init))
    }
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
}
