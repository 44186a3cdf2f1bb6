import APNs
import Logging
import Model
import Store

/// Runs one lane for whichever runs have something to send: one task renders leases and hands them over, another records
/// what came of them. The lane's bound on outstanding pushes, and that on leased ones, hold the first back until the second
/// has caught up.
struct LaneWorker: Sendable {
    let name: String
    let scheduler: FairScheduler
    /// A lane that had no work for so long is closed; nil: never.
    let idleMax: Duration?
    /// Deliveries per lease.
    let leaseMax: Int
    let clock: WallClock
    let logger: Logger

    /// Opens a lane with the first lease, so that an environment without devices opens none, and another one whenever
    /// there is something to send again. Ends when the scheduler is closed, or the task is cancelled.
    func run(opening open: @Sendable (String) -> any Lane) async {
        while let first = await scheduler.next(atMost: leaseMax, waitingAtMost: nil) {
            let lane = open(name)
            // Whatever is leased is in doubt after a crash: two leases, one on the wire and one to follow it.
            let inFlight = InFlightPushes(leasedMax: 2 * leaseMax)
            inFlight.took(first.lease.deliveries.count)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await settleCompletions(of: lane, inFlight) }
                group.addTask { await feedWhileRunning(lane, first, inFlight) }
                await group.waitForAll()
            }
        }
    }

    /// A lane that has ended takes nothing more: its feeder need not wait for the next lease.
    private func feedWhileRunning(_ lane: any Lane, _ first: FairScheduler.RunLease, _ inFlight: InFlightPushes) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await feed(lane, first, inFlight) }
            await runLane(lane, inFlight)
            group.cancelAll()
            await group.waitForAll()
        }
    }

    /// Runs the lane to the end of its work, or until a run of which it holds something is to stop: then no request
    /// starts any more, those on the wire may be answered within the lane's drain limit, and the others come back unsent.
    private func runLane(_ lane: any Lane, _ inFlight: InFlightPushes) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await drive(lane) }
            group.addTask { await halted(inFlight) }
            await group.next()
            group.cancelAll()
        }
    }

    private func halted(_ inFlight: InFlightPushes) async {
        while !Task.isCancelled {
            let seen = scheduler.stopped.version
            if inFlight.hasHalted(in: scheduler.environment) { return }
            await scheduler.stopped.wait(after: seen)
        }
    }

    private func drive(_ lane: any Lane) async {
        do {
            try await lane.run()
        } catch {
            logger.error("lane failed", metadata: .facts([.lane: "\(name)", .error: "\(error)"]))
            switch error {
            case .unreachable, .untrusted: scheduler.stopAll(.unreachable(error.description))
            case .credentialUnusable(let reason): scheduler.refuseAll(reason)
            }
        }
    }

    private func feed(_ lane: any Lane, _ first: FairScheduler.RunLease, _ inFlight: InFlightPushes) async {
        defer { lane.finish() }
        var composers: [Int64: PushComposer] = [:]
        var next = first
        while true {
            let run = next.run
            var composer = composers[run.id] ?? run.composer()
            let composed = composer.compose(next.lease, now: clock.now()) { inFlight.open($0, of: run) }
            composers[run.id] = composer
            await run.suppressTooLarge(composed.tooLarge)
            inFlight.settled(composed.tooLarge.count)
            for (index, chunk) in composed.chunks.enumerated() {
                // The chunk is open already: whoever stops the run after this look finds it there.
                guard run.control.halt(in: scheduler.environment) == nil, await lane.send(chunk.batch) else {
                    for chunk in composed.chunks[index...] { inFlight.drop(base: chunk.base) }
                    let unsent = composed.chunks[index...].flatMap(\.sent)
                    await run.giveBack(unsent)
                    inFlight.settled(unsent.count)
                    if run.control.halt(in: scheduler.environment) == nil { return }
                    break
                }
            }
            // Half a lease is worth a transaction; a whole one would leave the connection idle meanwhile.
            let room = await inFlight.room(atLeast: max(1, leaseMax / 2))
            guard let lease = await scheduler.next(atMost: room, waitingAtMost: idleMax) else { return }
            inFlight.took(lease.lease.deliveries.count)
            next = lease
        }
    }

    private func settleCompletions(of lane: any Lane, _ inFlight: InFlightPushes) async {
        var meters = LaneMeters(lane: name)
        defer { meters.end() }
        while let completions = await lane.completions() {
            for completed in inFlight.take(completions) {
                let run = completed.run
                meters.record(completed.completions, lane.status, of: run.campaign)
                scheduler.observe(
                    await run.settle(completed.sent, completed.completions, in: scheduler.environment))
                inFlight.settled(completed.sent.count)
            }
        }
    }
}
