import APNs
import Model
import Store

/// One run as the lanes see it: how its leases become pushes, and its answers outcomes.
struct RunInProgress: Sendable {
    let run: Run
    let renderers: VariantRenderers
    let ids: PushIDSpace
    let control: RunControl
    let rule: SettlementPolicy
    let latencies: LatencyRecorder
    let store: any SendingStore
    let clock: WallClock

    func composer() -> PushComposer { PushComposer(run: run, renderers: renderers, ids: ids) }

    /// Records the answers to these deliveries, one each; returns what they say of the endpoint.
    func settle(
        _ sent: [SettlementPolicy.Sent], _ responses: [PushCompletion], in environment: PushEnvironment
    ) async -> [CircuitBreaker.Sign] {
        let now = clock.now()
        let rows = responses.map { OutcomePolicy.row(for: $0.result) }
        let settlements = zip(zip(sent, responses), rows).map { pair, row in
            rule.settlement(of: pair.0, pair.1.result, row, now: now)
        }
        await record(settlements, now: now)
        latencies.record(responses)
        control.judge(
            environment, topic: run.definition.campaign.deviceTopic,
            rows.indices.map { (rows[$0], sent[$0].device, responses[$0].result) })
        return rows.indices.map { CircuitBreaker.Sign(rows[$0], responses[$0].result) }
    }

    func suppressTooLarge(_ deliveries: [SettlementPolicy.Sent]) async {
        guard !deliveries.isEmpty else { return }
        let settlements = deliveries.map {
            Settlement(
                lease: $0.lease, device: $0.device, generation: $0.generation, attempt: $0.attempt,
                verdict: .suppressed(.payloadTooLarge), mayHaveReachedAPNs: false, localeIndex: $0.localeIndex)
        }
        await record(settlements, now: clock.now())
    }

    /// Nothing of them was written: all of them are pending again.
    func giveBack(_ deliveries: [SettlementPolicy.Sent]) async {
        guard !deliveries.isEmpty else { return }
        let now = clock.now()
        let result = PushResult.notSent(.stopped)
        let row = OutcomePolicy.row(for: result)
        await record(deliveries.map { rule.settlement(of: $0, result, row, now: now) }, now: now)
    }

    /// What cannot be recorded stops this run and no other; the next claim finds it in doubt.
    private func record(_ settlements: [Settlement], now: Timestamp) async {
        do {
            let counts = try await store.settle(run: run.id, settlements, now: now)
            control.recorded(counts, settled: settlements.count)
        } catch {
            control.fail(error)
            control.recorded(nil, settled: settlements.count)
        }
    }
}
