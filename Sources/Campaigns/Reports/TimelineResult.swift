package import Model
package import Store

/// Reads a run's timeline and its planned waves. The timeline remains when the run's outcomes are pruned.
package struct ReadTimeline: Sendable {
    private let store: any OutcomeReader

    package init(store: any OutcomeReader) {
        self.store = store
    }

    package func timeline(of run: Run) async throws -> TimelineResult {
        TimelineResult(run: run.id, try await store.timeline(run.id))
    }

    /// Returns the waves, in order of time, of a run that follows each device's clock. Empty for other runs, and until
    /// the audience is frozen. The waves do not change after that.
    package func waves(of run: Run) async throws -> [PlannedWave] {
        guard run.definition.wall != nil, run.isFrozen else { return [] }
        var waves: [PlannedWave] = []
        for share in try await store.waves(run.id) {
            if waves.last?.startsAt != share.startsAt { waves.append(PlannedWave(startsAt: share.startsAt)) }
            waves[waves.count - 1].devices += share.deliveries
            if let zone = share.zone { waves[waves.count - 1].zones.append(zone) }
        }
        return waves
    }
}

/// Deliveries of a run that are planned to start at one moment.
package struct PlannedWave: Hashable, Sendable {
    package var startsAt: Timestamp
    package var devices = 0
    /// Most devices first.
    package var zones: [String] = []
}

/// The stable shape of a run's timeline: the outcomes of its pushes over time.
package struct TimelineResult: Codable, Hashable, Sendable {
    package struct Slot: Codable, Hashable, Sendable {
        /// The start of the slot, ISO 8601 and UTC. A slot lasts ``TimelineResult/slotSeconds``.
        package var startsAt: String
        package var accepted, rejected, unknown, suppressed: Int
        /// The number of attempts that failed and are followed by another attempt.
        package var retried: Int
        /// From the request's first byte to its response, in milliseconds; absent if there were no responses.
        package var p50Ms, p99Ms: Double?
        /// The rejections that were taken back in the slot. `rejected` counts them in the slot of the response.
        package var reopened: Int

        package init(
            startsAt: String, accepted: Int, rejected: Int, unknown: Int, suppressed: Int, retried: Int, p50Ms: Double?,
            p99Ms: Double?, reopened: Int = 0
        ) {
            self.startsAt = startsAt
            self.accepted = accepted
            self.rejected = rejected
            self.unknown = unknown
            self.suppressed = suppressed
            self.retried = retried
            self.p50Ms = p50Ms
            self.p99Ms = p99Ms
            self.reopened = reopened
        }
    }

    package var run: Int64
    /// 10, or a multiple of 10 if the run lasted so long that shorter slots would be too many.
    package var slotSeconds: Int
    /// In order of time. Slots in which nothing happened are left out.
    package var slots: [Slot]
    /// `true` if the run began before timelines were recorded, so that its beginning is missing. Otherwise absent.
    package var isPartial: Bool?

    package init(run: Int64, slotSeconds: Int, slots: [Slot], isPartial: Bool? = nil) {
        self.isPartial = isPartial
        self.run = run
        self.slotSeconds = slotSeconds
        self.slots = slots
    }
}

extension TimelineResult {
    /// The maximum number of slots. In the chart of a page, more slots would overlap.
    private static let slotsMax = 360
    /// The candidate numbers of stored slots per slot. The smallest one that yields at most `slotsMax` slots is used.
    private static let merged: [Int64] = [1, 2, 3, 6, 12, 30, 60, 90, 180, 360, 1080, 2160, 8640]

    package init(run: Int64, _ timeline: Timeline) {
        let factor = Self.merged.first { Self.merge(timeline.slots, by: $0).count <= Self.slotsMax } ?? 8640
        self.init(
            run: run, slotSeconds: Int(Timeline.slotSeconds * factor),
            slots: Self.merge(timeline.slots, by: factor).map(Slot.init), isPartial: timeline.isWhole ? nil : true)
    }

    /// Merges `factor` slots into one. Each merged slot begins at a multiple of its length.
    private static func merge(_ slots: [Timeline.Slot], by factor: Int64) -> [Timeline.Slot] {
        slots.reduce(into: []) { merged, slot in
            let number = Timeline.slot(of: slot.startsAt) / factor * factor
            let start = Timeline.start(ofSlot: number)
            if merged.last?.startsAt != start { merged.append(Timeline.Slot(startsAt: start)) }
            merged[merged.count - 1].add(slot)
        }
    }
}

extension TimelineResult.Slot {
    fileprivate init(_ slot: Timeline.Slot) {
        self.init(
            startsAt: slot.startsAt.iso8601, accepted: slot.accepted, rejected: slot.rejected, unknown: slot.unknown,
            suppressed: slot.suppressed, retried: slot.retried,
            p50Ms: slot.latencies.milliseconds(atShare: 0.5), p99Ms: slot.latencies.milliseconds(atShare: 0.99),
            reopened: slot.reopened)
    }
}
