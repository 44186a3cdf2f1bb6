package import APNs
import Histogram
import Model
import Store
import Synchronization

/// One run as the lanes see it: how its leases become pushes, and what comes of them outcomes in the store.
struct RunInProgress: Sendable {
    let record: Run
    let renderers: VariantRenderers
    let ids: PushIDSpace
    let control: RunControl
    let settlementPolicy: SettlementPolicy
    let latencies: LatencyRecorder
    let store: any SendingStore
    let clock: WallClock

    var id: Int64 { record.id }
    var campaign: Campaign { record.definition.campaign }

    func composer() -> PushComposer { PushComposer(run: record, renderers: renderers, ids: ids) }

    /// Records what came of these deliveries, one completion each; returns what they say of the endpoint.
    func settle(
        _ sent: [SettlementPolicy.Sent], _ completions: [PushCompletion], in environment: PushEnvironment
    ) async -> [CircuitBreaker.Observation] {
        let now = clock.now()
        let rows = completions.map { OutcomePolicy.row(for: $0.result) }
        let settlements = zip(zip(sent, completions), rows).map { pair, row in
            settlementPolicy.settlement(of: pair.0, pair.1.result, row, now: now)
        }
        await write(settlements, now: now)
        latencies.record(completions)
        control.judge(
            environment, topic: campaign.deviceTopic,
            rows.indices.map { (rows[$0], sent[$0].device, completions[$0].result) })
        return rows.indices.map { CircuitBreaker.Observation(rows[$0], completions[$0].result) }
    }

    /// Records these as suppressed: their payload is over Apple's limit.
    func suppressTooLarge(_ deliveries: [SettlementPolicy.Sent]) async {
        guard !deliveries.isEmpty else { return }
        let settlements = deliveries.map {
            Settlement(
                lease: $0.lease, device: $0.device, generation: $0.generation, attempt: $0.attempt,
                verdict: .suppressed(.payloadTooLarge), mayHaveReachedAPNs: false, localeIndex: $0.localeIndex)
        }
        await write(settlements, now: clock.now())
    }

    /// Makes deliveries of which no request was started pending again.
    func giveBack(_ deliveries: [SettlementPolicy.Sent]) async {
        guard !deliveries.isEmpty else { return }
        let now = clock.now()
        let result = PushResult.notSent(.stopped)
        let row = OutcomePolicy.row(for: result)
        await write(deliveries.map { settlementPolicy.settlement(of: $0, result, row, now: now) }, now: now)
    }

    /// An outcome that cannot be recorded stops this run and no other; the next claim finds the delivery in doubt.
    private func write(_ settlements: [Settlement], now: Timestamp) async {
        do {
            let counts = try await store.settle(run: id, settlements, now: now)
            control.recorded(counts, settled: settlements.count)
        } catch {
            control.fail(error)
            control.recorded(nil, settled: settlements.count)
        }
    }
}

/// How long answers took, from the first byte of the request written, over all lanes of a run.
package final class LatencyRecorder: Sendable {
    private let histogram = Mutex(
        Histogram<UInt32>(highestTrackableValue: 120_000_000, numberOfSignificantValueDigits: .two))

    package init() {}

    package func record(_ completions: [PushCompletion]) {
        histogram.withLock { histogram in
            for completion in completions where completion.latencyMicroseconds > 0 {
                histogram.record(UInt64(completion.latencyMicroseconds))
            }
        }
    }

    /// Microseconds at this percentile (0 to 100); nil when nothing was answered.
    package func microseconds(atPercentile percentile: Double) -> Int? {
        histogram.withLock { histogram in
            histogram.totalCount == 0 ? nil : Int(histogram.valueAtPercentile(percentile))
        }
    }
}
