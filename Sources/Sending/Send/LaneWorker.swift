import APNs
import Logging
import Model
import Store

/// Works one lane for whichever runs have something to send: leases are rendered and handed over on one side, answers
/// are judged and recorded on the other. The lane's bound on outstanding pushes holds back the first until the second has
/// caught up.
struct LaneWorker: Sendable {
    let name: String
    let desk: FairScheduler
    /// A lane that had no work for so long is closed; nil: never.
    let idleMax: Duration?
    /// Deliveries per lease.
    let leaseMax: Int
    let clock: WallClock
    let logger: Logger

    /// Opens a lane with the first lease, so that an environment without devices opens none, and another one whenever
    /// there is work again. Ends when the desk is closed, or the task is cancelled.
    func work(open: @Sendable (String) -> any Lane) async {
        while let first = await desk.next(atMost: leaseMax, waitingAtMost: nil) {
            let lane = open(name)
            // Whatever is leased is in doubt after a crash: two leases, one on the wire and one to follow it.
            let chunks = InFlightPushes(inHandMax: 2 * leaseMax)
            chunks.took(first.lease.deliveries.count)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await settleAnswers(of: lane, chunks) }
                group.addTask { await feedWhileRunning(lane, first, chunks) }
                await group.waitForAll()
            }
        }
    }

    /// A lane that has ended takes nothing more: its feeder need not wait for the next lease.
    private func feedWhileRunning(_ lane: any Lane, _ first: FairScheduler.Load, _ chunks: InFlightPushes) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await feed(lane, first, chunks) }
            await runLane(lane, chunks)
            group.cancelAll()
            await group.waitForAll()
        }
    }

    /// Runs the lane to the end of its work, or until a run of which it holds something is to stop: then no request
    /// starts any more, those on the wire may be answered within the lane's drain limit, and the others come back unsent.
    private func runLane(_ lane: any Lane, _ chunks: InFlightPushes) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await drive(lane) }
            group.addTask { await halted(chunks) }
            await group.next()
            group.cancelAll()
        }
    }

    private func halted(_ chunks: InFlightPushes) async {
        while !Task.isCancelled {
            let seen = desk.stopped.version
            if chunks.hasHalted { return }
            await desk.stopped.wait(after: seen)
        }
    }

    private func drive(_ lane: any Lane) async {
        do {
            try await lane.run()
        } catch {
            logger.error("lane failed", metadata: ["lane": "\(name)", "error": "\(error)"])
            switch error {
            case .unreachable, .untrusted: desk.stopAll(.unreachable(error.description))
            case .credentialUnusable(let reason): desk.stopAll(.credential(reason))
            }
        }
    }

    private func feed(_ lane: any Lane, _ first: FairScheduler.Load, _ chunks: InFlightPushes) async {
        defer { lane.finish() }
        var composers: [Int64: PushComposer] = [:]
        var load = first
        while true {
            let work = load.work
            var composer = composers[work.run.id] ?? work.composer()
            let composed = composer.compose(load.lease, now: clock.now()) { chunks.open($0, of: work) }
            composers[work.run.id] = composer
            await work.suppressTooLarge(composed.tooLarge)
            chunks.settled(composed.tooLarge.count)
            for (index, chunk) in composed.chunks.enumerated() {
                // Looked at only after the chunk was opened: whoever stops the run later finds it there.
                guard work.control.halt == nil, await lane.send(chunk.batch) else {
                    for chunk in composed.chunks[index...] { chunks.drop(base: chunk.base) }
                    let unsent = composed.chunks[index...].flatMap(\.sent)
                    await work.giveBack(unsent)
                    chunks.settled(unsent.count)
                    if work.control.halt == nil { return }
                    break
                }
            }
            // Half a lease is worth a transaction; a whole one would leave the connection idle meanwhile.
            let room = await chunks.room(atLeast: max(1, leaseMax / 2))
            guard let next = await desk.next(atMost: room, waitingAtMost: idleMax) else { return }
            chunks.took(next.lease.deliveries.count)
            load = next
        }
    }

    private func settleAnswers(of lane: any Lane, _ chunks: InFlightPushes) async {
        var meters = LaneMeters(lane: name)
        defer { meters.end() }
        while let responses = await lane.completions() {
            for answered in chunks.take(responses) {
                meters.record(answered.responses, lane.status, of: answered.work.run.definition.campaign)
                desk.saw(await answered.work.settle(answered.sent, answered.responses, in: desk.environment))
                chunks.settled(answered.sent.count)
            }
        }
    }
}
