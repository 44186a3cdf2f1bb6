import APNs
import Logging
import Model
import Storage

/// Works one lane from its first lease to its last outcome: leases are rendered and handed over on one side, answers
/// are judged and recorded on the other. The lane's bound on outstanding pushes holds back the first until the
/// second has caught up.
struct LaneWorker: Sendable {
    let name: String
    let store: Store
    let run: Run
    let renderers: VariantRenderers
    let ids: PushIDSpace
    let desk: LeaseDesk
    let control: RunControl
    let rule: SettlementRule
    let latencies: LatencyRecorder
    let clock: EngineClock
    let logger: Logger

    /// Opens the lane with the first lease, so that an environment without devices opens none.
    func work(open: @Sendable (String) -> any Lane) async throws {
        guard let first = try await desk.next(atMost: desk.leaseMax) else { return }
        let lane = open(name)
        // Whatever is leased is in doubt after a crash: two leases, one on the wire and one to follow it.
        let chunks = OpenChunks(inHandMax: 2 * desk.leaseMax)
        chunks.took(first.deliveries.count)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await runLane(lane) }
            group.addTask { try await feed(lane, first, chunks) }
            group.addTask { try await settleAnswers(of: lane, chunks) }
            try await group.waitForAll()
        }
    }

    /// Runs the lane to the end of its work, or until the run is to stop: then no request starts any more, those on the
    /// wire may be answered within the lane's drain limit, and the others come back unsent.
    private func runLane(_ lane: any Lane) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await drive(lane) }
            group.addTask { await control.halted() }
            await group.next()
            group.cancelAll()
        }
    }

    private func drive(_ lane: any Lane) async {
        do {
            try await lane.run()
        } catch {
            logger.error("lane failed", metadata: ["lane": "\(name)", "error": "\(error)"])
            switch error {
            case .unreachable, .untrusted: control.stop(.unreachable(error.description))
            case .credentialUnusable(let reason): control.stop(.credential(reason))
            }
        }
    }

    private func feed(_ lane: any Lane, _ first: Lease, _ chunks: OpenChunks) async throws {
        defer { lane.finish() }
        var composer = Composer(run: run, renderers: renderers, ids: ids)
        var lease = first
        while true {
            let composed = composer.compose(lease, chunks: chunks, now: clock.now())
            try await suppressTooLarge(composed.tooLarge)
            chunks.settled(composed.tooLarge.count)
            for (index, chunk) in composed.chunks.enumerated() {
                guard await lane.send(chunk.batch) else {
                    return try await giveBack(composed.chunks[index...].flatMap(\.sent))
                }
            }
            // Half a lease is worth a transaction; a whole one would leave the connection idle meanwhile.
            let room = await chunks.room(atLeast: max(1, desk.leaseMax / 2))
            guard let next = try await desk.next(atMost: room) else { return }
            chunks.took(next.deliveries.count)
            lease = next
        }
    }

    private func settleAnswers(of lane: any Lane, _ chunks: OpenChunks) async throws {
        var meter = SendMeter(run.definition.campaign, lane: name)
        defer { meter.end() }
        while let responses = await lane.responses() {
            meter.record(responses, lane.status)
            let now = clock.now()
            let sent = chunks.take(responses)
            let rows = responses.map { OutcomePolicy.row(for: $0.result) }
            let settlements = zip(zip(sent, responses), rows).map { pair, row in
                rule.settlement(of: pair.0, pair.1.result, row, now: now)
            }
            try await record(settlements, now: now)
            chunks.settled(sent.count)
            latencies.record(responses)
            desk.saw(rows.indices.lazy.map { EndpointBrake.Sign(rows[$0], responses[$0].result) }, at: now)
            control.judge(
                desk.environment, topic: run.definition.campaign.deviceTopic,
                rows.indices.map { (rows[$0], sent[$0].device, responses[$0].result) })
        }
    }

    private func suppressTooLarge(_ deliveries: [SettlementRule.Sent]) async throws {
        guard !deliveries.isEmpty else { return }
        let settlements = deliveries.map {
            Settlement(
                lease: $0.lease, device: $0.device, generation: $0.generation, attempt: $0.attempt,
                verdict: .suppressed(.payloadTooLarge), mayHaveReachedAPNs: false, localeIndex: $0.localeIndex)
        }
        try await record(settlements, now: clock.now())
    }

    /// The lane ended before it took the batch: nothing of it was written, all of it is pending again.
    private func giveBack(_ deliveries: [SettlementRule.Sent]) async throws {
        let now = clock.now()
        let result = PushResult.notSent(.stopped)
        let row = OutcomePolicy.row(for: result)
        try await record(deliveries.map { rule.settlement(of: $0, result, row, now: now) }, now: now)
    }

    private func record(_ settlements: [Settlement], now: Timestamp) async throws {
        control.recorded(try await store.settle(run: run.id, settlements, now: now))
    }
}
