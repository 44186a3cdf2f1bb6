import APNs
import Logging
import Model
import Platform
import Store
import Synchronization

/// Runs one lane for all runs that have something to send. One task renders leases and passes them to the lane, and
/// another task records the results. The limits on outstanding and leased pushes make the first task wait for the
/// second.
struct LaneWorker: Sendable {
    let name: String
    let scheduler: FairScheduler
    /// The idle time after which the lane is closed. `nil` means never.
    let idleMax: Duration?
    /// The maximum number of deliveries per lease.
    let leaseMax: Int
    let journal: PushJournal?
    let clock: WallClock
    let logger: Logger

    private static let restAfterFailure: Duration = .seconds(10)
    private static let restsMax = 6

    /// Opens the lane with the first lease, so that an environment without devices opens none. When the lane has ended,
    /// the next lease opens a new one. Ends when the scheduler is closed or the task is cancelled.
    func run(opening open: @Sendable (String) -> any Lane) async {
        var failures = 0
        while let first = await scheduler.next(atMost: leaseMax, waitingAtMost: nil) {
            // Limit the leased deliveries, because each is in doubt if the journal is lost. Two leases are enough: one
            // on the wire, and the next one.
            let leasedMax = 2 * leaseMax
            let segment: JournalSegment?
            do {
                segment = try await newSegment(leasedMax, for: first.run)
            } catch {
                await first.run.release(first.lease)
                continue
            }
            let lane = open(name)
            scheduler.opened(name, lane)
            let inFlight = InFlightPushes(leasedMax: leasedMax, journal: segment)
            inFlight.took(first.lease.deliveries.count)
            let isWorking = await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await settleCompletions(of: lane, inFlight)
                    return true
                }
                group.addTask { await feedWhileRunning(lane, first, inFlight) }
                return await group.reduce(true) { $0 && $1 }
            }
            if let segment { journal?.release(segment) }
            failures = isWorking ? 0 : failures + 1
            // Other lanes continue meanwhile. If none of them works, ``drive(_:)`` has stopped the runs.
            if !isWorking { await scheduler.rest(Self.restAfterFailure * min(failures, Self.restsMax)) }
        }
    }

    /// Returns a journal segment. If the disk is full, waits as for a full store until the run is to stop. On a store
    /// that machines share, the run stops instead, because other machines may continue it.
    private func newSegment(_ entries: Int, for run: RunInProgress) async throws -> JournalSegment? {
        let control = run.control
        do {
            return try await control.storeBackoff.insisting(
                clock, while: { !run.store.isShared && control.decision.reason == nil }
            ) { try newSegment(entries) }
        } catch let error as StoreError where error.isPassing {
            control.stop(.unreachable("\(error)"))
            throw error
        } catch {
            control.fail(error)
            throw error
        }
    }

    /// Throws a full disk as a store error.
    private func newSegment(_ entries: Int) throws -> JournalSegment? {
        do {
            return try journal?.segment(entries: entries)
        } catch  where error.isDiskFull {
            throw StoreError.journalFull(path: error.path)
        }
    }

    /// Feeds and runs the lane. When the lane has ended, the feeder stops waiting for the next lease.
    ///
    /// Returns `false` if the lane could not connect.
    private func feedWhileRunning(
        _ lane: any Lane, _ first: FairScheduler.RunLease, _ inFlight: InFlightPushes
    ) async -> Bool {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await feed(lane, first, inFlight) }
            let isWorking = await runLane(lane, inFlight)
            group.cancelAll()
            await group.waitForAll()
            return isWorking
        }
    }

    /// Runs the lane to the end of its work, or until every run in flight on it must stop. Then no more requests start.
    /// Requests on the wire may get a response within the lane's drain limit, and the others come back unsent. While
    /// the lane also has work of another run, the gate holds back the stopped run's requests.
    ///
    /// Returns `false` if the lane could not connect.
    private func runLane(_ lane: any Lane, _ inFlight: InFlightPushes) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await drive(lane) }
            group.addTask {
                await halted(inFlight)
                return true
            }
            let isWorking = await group.next() ?? true
            group.cancelAll()
            return isWorking
        }
    }

    private func halted(_ inFlight: InFlightPushes) async {
        while !Task.isCancelled {
            let seen = scheduler.stopped.version
            if inFlight.hasHalted(in: scheduler.environment) { return }
            await scheduler.stopped.wait(after: seen)
        }
    }

    /// Returns `false` if the lane could not connect. Stops the runs only if no other lane of the environment works.
    private func drive(_ lane: any Lane) async -> Bool {
        do {
            try await lane.run()
            return true
        } catch {
            logger.error("lane failed", metadata: .facts([.lane: "\(name)", .error: "\(error)"]))
            guard !scheduler.othersWork(than: name) else { return false }
            switch error {
            case .unreachable, .untrusted: scheduler.stopAll(.unreachable(error.description))
            case .credentialUnusable(let reason): scheduler.refuseAll(reason)
            }
            return false
        }
    }

    private func feed(_ lane: any Lane, _ first: FairScheduler.RunLease, _ inFlight: InFlightPushes) async {
        defer { lane.finish() }
        var composers: [Int64: PushComposer] = [:]
        var next = first
        while true {
            let run = next.run
            // A lane that always has work never ends: forget the runs that have left it.
            if composers[run.id] == nil { composers = composers.filter { scheduler.has($0.key) } }
            var composer = composers[run.id] ?? run.composer()
            // Read the boot clock first. If the process is suspended between the two reads, requests expire too early,
            // not too late.
            let bootTime = BootClock.now()
            let composed = composer.compose(next.lease, now: clock.now(), bootTime: bootTime, for: run, inFlight)
            composers[run.id] = composer
            await run.suppressTooLarge(composed.tooLarge)
            inFlight.settled(composed.tooLarge)
            for (index, chunk) in composed.chunks.enumerated() {
                // The chunk is already in `inFlight`, so a stop after this check finds it there.
                guard run.control.decision.reason(in: scheduler.environment) == nil, await lane.send(chunk.batch) else {
                    for chunk in composed.chunks[index...] { inFlight.drop(base: chunk.base) }
                    let unsent = composed.chunks[index...].flatMap(\.sent)
                    if await run.release(unsent) { inFlight.settled(unsent) } else { inFlight.abandoned(unsent) }
                    if run.control.decision.reason(in: scheduler.environment) == nil { return }
                    break
                }
            }
            // Lease again when there is room for half a lease. A wait for more room would leave the connection idle.
            let room = await inFlight.room(atLeast: max(1, leaseMax / 2))
            guard room > 0, let lease = await scheduler.next(atMost: room, waitingAtMost: idleMax) else { return }
            inFlight.took(lease.lease.deliveries.count)
            next = lease
        }
    }

    private func settleCompletions(of lane: any Lane, _ inFlight: InFlightPushes) async {
        var meters = LaneMeters(lane: name)
        defer {
            meters.end()
            scheduler.ended(name)
        }
        while let completions = await lane.completions() {
            for completed in inFlight.take(completions) {
                let run = completed.run
                ServiceMetrics.answered.add(completed.completions.count, ordering: .relaxed)
                meters.record(completed.completions, lane.status, of: run.campaign)
                let (isRecorded, observations) = await run.settle(
                    completed.sent, completed.completions, in: scheduler.environment)
                scheduler.observe(observations)
                if observations.contains(where: \.isResponse) { scheduler.works(name) }
                if isRecorded { inFlight.settled(completed.sent) } else { inFlight.abandoned(completed.sent) }
            }
        }
    }
}
