import APNs
import Model
import Platform
import Rendering
import Store
import Synchronization

/// One run for the lanes: how its leases become pushes, and how the results of the pushes become outcomes in the store.
struct RunInProgress: Sendable {
    let record: Run
    let owner: Actor
    let renderers: VariantRenderers
    let ids: PushIDSpace
    let control: RunControl
    let settlementPolicy: SettlementPolicy
    let latencies: LatencyRecorder
    let store: any SendingStore
    let clock: WallClock
    let settlementClock: SettlementClock

    var id: Int64 { record.id }
    var campaign: Campaign { record.definition.campaign }

    func composer() -> PushComposer { PushComposer(run: record, renderers: renderers, ids: ids) }

    /// Records the results of these deliveries, one completion each. Returns whether they could be recorded, and what
    /// they say about the endpoint.
    func settle(
        _ sent: [SettlementPolicy.Sent], _ completions: [PushCompletion], in environment: PushEnvironment
    ) async -> (isRecorded: Bool, observations: [CircuitBreaker.Observation]) {
        let (at, lag) = await settlementClock.now()
        let rows = completions.map { OutcomePolicy.row(for: $0.result) }
        let settlements = zip(zip(sent, completions), rows).map { pair, row in
            settlementPolicy.settlement(
                of: pair.0, pair.1.result, row, latencyMicroseconds: pair.1.latencyMicroseconds, now: at.wall,
                lag: lag)
        }
        latencies.record(completions)
        control.decision.count(afterStop: completions)
        control.judge(
            environment, topic: campaign.deviceTopic,
            rows.indices.map { (rows[$0], sent[$0].device, completions[$0].result) })
        // Record the halt before these settlements: after the last one, another sender may end the run.
        if control.decision.reason?.waitsForPerson == true { await noteHalt() }
        let isRecorded = await write(settlements, decidedAt: at)
        return (isRecorded, rows.indices.map { CircuitBreaker.Observation(rows[$0], completions[$0].result) })
    }

    /// Records the halt immediately. The last response may arrive seconds later, and this process may be killed before.
    private func noteHalt() async {
        guard let reason = control.decision.takeHaltToNote() else { return }
        do {
            try await control.storeBackoff.insisting(clock) {
                try await store.halt(id, by: owner, .breaker, reason: reason, now: clock.now())
            }
            control.decision.haltIsOnRecord()
        } catch {
            control.fail(error)
        }
    }

    /// Records these deliveries as suppressed, because their payload is over Apple's limit.
    func suppressTooLarge(_ deliveries: [SettlementPolicy.Sent]) async {
        guard !deliveries.isEmpty else { return }
        let settlements = deliveries.map {
            Settlement(
                lease: $0.lease, device: $0.device, generation: $0.generation, leaseNumber: $0.leaseNumber,
                attempt: $0.attempt - 1, verdict: .suppressed(.payloadTooLarge), isRequest: false,
                mayHaveReachedAPNs: false, localeIndex: $0.localeIndex, stage: $0.stage)
        }
        _ = await write(settlements, decidedAt: clock.reading())
    }

    /// Makes deliveries pending again whose request was not started.
    ///
    /// Returns whether this could be recorded.
    @discardableResult
    func release(_ deliveries: [SettlementPolicy.Sent]) async -> Bool {
        guard !deliveries.isEmpty else { return true }
        let (at, lag) = await settlementClock.now()
        let result = PushResult.notSent(.stopped)
        let row = OutcomePolicy.row(for: result)
        let settlements = deliveries.map { settlementPolicy.settlement(of: $0, result, row, now: at.wall, lag: lag) }
        return await write(settlements, decidedAt: at)
    }

    /// Makes the deliveries of a lease pending again. None of them was handed to a lane.
    func release(_ lease: Lease) async {
        await release(
            lease.deliveries.map {
                SettlementPolicy.Sent(
                    lease: lease.id, device: $0.device, generation: $0.generation, leaseNumber: $0.leaseNumber,
                    attempt: $0.attempt, excused: $0.excused, wave: $0.wave, stage: $0.stage, sentAt: clock.now())
            })
    }

    /// Records settlements, and waits while the store is unavailable. If they cannot be recorded at all, stops only
    /// this run. The journal keeps the outcomes for the next claim.
    ///
    /// - Parameter reading: the clocks when the verdicts were decided. The wall clock may have been set since.
    private func write(_ settlements: [Settlement], decidedAt reading: ClockReading) async -> Bool {
        do {
            let counts = try await control.storeBackoff.insisting(clock) {
                // Reading the clock records a step since then, before the step changes the waits.
                let now = await settlementClock.now().reading
                let step = ClockStep(from: reading, to: now)
                let waiting = step.map { step in settlements.map { $0.waiting(after: step) } } ?? settlements
                return try await store.settle(run: id, waiting, now: now.wall)
            }
            control.share.settled(settlements)
            control.progress.recorded(counts, settled: settlements.count)
            if !record.isTest { ServiceMetrics.recorded(settlements, of: campaign.name) }
            return true
        } catch {
            control.fail(error)
            control.progress.recorded(nil, settled: settlements.count)
            return false
        }
    }
}

extension Settlement {
    /// Returns the settlement with its wait moved by the step of the wall clock, so that the wait keeps its length.
    fileprivate func waiting(after step: ClockStep) -> Settlement {
        guard case .retry(let moment) = verdict else { return self }
        var settlement = self
        settlement.verdict = .retry(notBefore: moment + step.by)
        return settlement
    }
}
