import APNs
import Foundation
import Logging
import Model
import Platform
import Senders
import Store

/// The heartbeat, once a second. It shows that the sender is alive, reads the run's state and the stops, and opens the
/// run's ``StartGate`` for a while. It does not decide which sender is alive: the lock of the ``SenderRegistration``
/// does.
struct Heartbeat: Sendable {
    static let interval = SenderTrust.beatEvery
    /// A gap between two heartbeats below which the run is not claimed again, whatever its `late_by_max`: slow
    /// heartbeats, and short outages of the store.
    private static let gapMin: Duration = .seconds(30)
    /// The number of heartbeats that a claim after a gap waits for responses from before the gap. A response that the
    /// store refused during the gap is offered again within 5 s.
    private static let patience = 10

    let store: any SendingStore
    let run: Int64
    let campaign: String
    /// The run's `late_by_max`.
    let lateByMax: Duration
    let owner: String
    let control: RunControl
    /// Checks the endpoints, and returns those in trouble.
    var endpointHolds: @Sendable () -> [EndpointHold] = { [] }
    let clock: WallClock
    let logger: Logger
    /// The registration of this process, which other processes check. `nil` in tests of a single process.
    var registration: SenderRegistration?
    /// `nil` if another sender leads the run and this sender takes part in it.
    var takeoverHook: TakeoverHook?
    /// Recovers leases under this sender's name that it does not know.
    var recoverForgotten: @Sendable (_ leases: Set<Int64>) async throws -> Void = { _ in }

    /// Sends heartbeats until `operation` returns. Stops the run if another process has set a state other than running.
    func beat(while operation: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await operation()
                return true
            }
            group.addTask {
                try await beat()
                return false
            }
            if store.isShared {
                group.addTask {
                    try await lookAround()
                    return false
                }
            }
            while let isOver = try await group.next() {
                if isOver { group.cancelAll() }
            }
        }
    }

    /// Checks the other senders once a second. This is a separate task, because a takeover may wait for locks, and
    /// heartbeats must not.
    private func lookAround() async throws {
        while !Task.isCancelled {
            await clock.sleep(Self.interval)
            guard !Task.isCancelled else { return }
            do {
                try await lookAtOthers()
            } catch is CancellationError {
                return
            } catch let error as StoreError where error.isPassing {
                logger.debug(
                    "other senders could not be checked", metadata: .facts([.run: "\(run)", .error: "\(error)"]))
            }
        }
    }

    /// Takes over from dead senders if this sender is the lead. Stops a participant if the run has no lead.
    private func lookAtOthers() async throws {
        let participants = try await store.participants(of: run, apartFrom: owner)
        let look = control.share.look(
            participants, held: control.progress.inFlight, pending: control.progress.counts.pending, at: clock.uptime())
        if !look.forgotten.isEmpty { try await recoverForgotten(look.forgotten) }
        if look.isRecall {
            logger.info("other senders are idle: leases not started are released", metadata: .facts([.run: "\(run)"]))
            control.trust.gate.recall()
        }
        if let takeoverHook {
            if participants.gone > 0 { try await takeoverHook.takeOver() }
        } else if !participants.hasOtherLead {
            control.stop(.leadGone)
        }
    }

    /// Logs once when the store becomes unavailable, and once when it takes outcomes again.
    private func tell(of reason: StoreWait.Reason?, after told: inout StoreWait.Reason?) {
        guard reason != told else { return }
        told = reason
        guard let reason else {
            return logger.notice("the store accepts outcomes again", metadata: .facts([.run: "\(run)"]))
        }
        logger.warning(
            "the store accepts no writes: responses are kept, nothing new is sent",
            metadata: .facts([.run: "\(run)", .reason: "\(reason.rawValue)"]))
    }

    private func tell(of change: ShutGate.Change?) {
        switch change {
        case nil: return
        case .shut:
            logger.warning(
                "the store responds too slowly: nothing new is sent",
                metadata: .facts([.run: "\(run)", .reason: "heartbeats take longer than \(SenderTrust.window)"]))
        case .opened: logger.notice("the store responds in time again", metadata: .facts([.run: "\(run)"]))
        }
    }

    /// Judges from the duration of a heartbeat whether this sender is fast enough to send.
    private func judge(beatOf duration: Duration) {
        guard store.isShared else { return }
        let (uptime, mayLease) = (clock.uptime(), control.share.mayLease)
        if let isTooSlow = control.share.note(beat: duration, at: uptime), !isTooSlow {
            logger.notice("heartbeats are fast enough again", metadata: .facts([.run: "\(run)"]))
        }
        if control.share.mayLease != mayLease { control.progress.changed.raise() }
        guard control.share.isToLeave(at: uptime) else { return }
        let reason =
            "the store is too slow from here: a heartbeat takes \(duration.wholeMilliseconds) ms, and this sender may send "
            + "only if it takes at most about 1 s; faster senders continue the run. Check the network between this machine "
            + "and the server"
        logger.warning("sending handed to the other senders", metadata: .facts([.run: "\(run)", .reason: "\(reason)"]))
        control.stop(.storeTooSlow(reason))
    }

    /// Waits until the next heartbeat is due. The first heartbeat of a shared store is due immediately.
    private func pause(_ last: Duration?) async {
        guard store.isShared else { return await clock.sleep(Self.interval) }
        guard let last else { return }
        await clock.sleep(SenderTrust.pause(since: last, now: clock.uptime()))
    }

    /// Decides after a long gap whether the run may go on: the process was suspended, or the store was unavailable. The
    /// lead claims the run again, so that ``LatePolicy`` decides, and the heartbeat then finds the state that the claim
    /// set. A participant leaves, and takes part again if the run still has a lead.
    ///
    /// - Parameter gap: the gap, and the number of heartbeats since it ended.
    /// - Returns: `false` if the claim is still to come. Nothing is sent until it is done.
    private func claimAgain(after gap: (length: Duration, beats: Int), confirmed: Timestamp) async throws -> Bool {
        guard takeoverHook != nil else {
            control.stop(.leadGone)
            return true
        }
        // Responses from before the gap are recorded first, since they may complete the run.
        if control.progress.inFlight > 0, gap.beats < Self.patience {
            control.trust.gate.recall()
            // Throws while the store is unavailable and takes no responses.
            _ = try await store.stops()
            return false
        }
        // The wall clock may lack the gap, as that of a paused virtual machine does until it is set.
        let now = max(clock.now(), confirmed + gap.length)
        do {
            if case .unconfirmed = try await store.claim(run, by: Actor(owner), now: now) { return false }
        } catch StoreError.runIsOver {
            // The run was cancelled meanwhile, as the heartbeat finds.
        }
        return true
    }

    private func beat() async throws {
        var watch = ClockWatch(store: store, clock: clock, actor: Actor(owner), logger: logger)
        var holds = ToldHolds()
        var storeWait: StoreWait.Reason?
        var shut = ShutGate()
        var last: Duration?
        // The run was claimed a moment ago.
        var confirmed = (at: clock.moment(), wall: clock.now())
        var beatsSinceGap = 0
        while !Task.isCancelled {
            if await watch.look() { control.progress.changed.raise() }
            await pause(last)
            let (sentAt, isFirst) = (clock.uptime(), last == nil)
            last = sentAt
            guard !Task.isCancelled else { return }
            tell(of: control.storeBackoff.wait?.reason, after: &storeWait)
            do {
                try registration?.requireIntact()
                try store.requireInPlace()
            } catch {
                // Other processes now treat the run as abandoned.
                return control.fail(error)
            }
            let began = (at: clock.moment(), wall: clock.now())
            do {
                let gap = began.at.time(since: confirmed.at)
                if gap > max(lateByMax, Self.gapMin) {
                    guard try await claimAgain(after: (gap, beatsSinceGap), confirmed: confirmed.wall) else {
                        beatsSinceGap += 1
                        continue
                    }
                    beatsSinceGap = 0
                }
                async let asked = store.stops()
                let state = try await store.heartbeat(run, owner: owner, now: clock.now())
                // Check the stops before the trust window is renewed, so that a stop also holds back deliveries that
                // are already leased.
                let order = try await asked.order(run: run, campaign: campaign)
                confirmed = began
                control.storeBackoff.taken(.heartbeat)
                judge(beatOf: clock.uptime() - sentAt)
                if let order {
                    control.stop(.stopped(order))
                } else if state == .running {
                    let isOpen = control.renewTrust(from: began.at)
                    tell(of: shut.isTold(isOpen: isOpen, at: clock.uptime()))
                } else {
                    control.stop(.stateChanged(state))
                }
                // Do not write at the first heartbeat of a shared store: the lanes may not have found the outages yet
                // that the last sender reported.
                let found = endpointHolds()
                if !(isFirst && store.isShared), holds.isNew(found) {
                    try await store.setHolds(found, run: run, owner: owner)
                }
            } catch is CancellationError {
                return
            } catch let error as StoreError where error.isPassing {
                beatsSinceGap = 0
                // The error does not end this sender's ownership of the run.
                control.storeBackoff.refused(.heartbeat, error, at: clock.now())
            }
        }
    }
}

/// The task of a run's lead on behalf of all participants.
struct TakeoverHook: Sendable {
    /// Recovers what dead senders left in flight.
    let takeOver: @Sendable () async throws -> Void
}

/// Notices that the store responds to each heartbeat only after the trust window, so that nothing is sent.
struct ShutGate {
    enum Change: Hashable {
        case shut
        case opened
    }

    /// The delay before the first report.
    private static let patience: Duration = .seconds(10)

    private var since: Duration?
    private var isTold = false

    /// Returns the change to report. Each change is returned once.
    mutating func isTold(isOpen: Bool, at uptime: Duration) -> Change? {
        guard !isOpen else {
            defer { (since, isTold) = (nil, false) }
            return isTold ? .opened : nil
        }
        since = since ?? uptime
        guard !isTold, uptime - (since ?? uptime) >= Self.patience else { return nil }
        isTold = true
        return .shut
    }
}

/// The endpoints in trouble that the store already knows, so that each change is written once.
private struct ToldHolds {
    private var told: [EndpointHold]?

    /// Returns whether the holds differ from those already written. A time of the next try that moves by less than 2 s
    /// is no difference, because the wall clock is continuously adjusted.
    mutating func isNew(_ holds: [EndpointHold]) -> Bool {
        let isNear = zip(told ?? [], holds).allSatisfy { told, hold in
            var hold = hold
            let apart = hold.nextTryAt - told.nextTryAt
            if apart > .seconds(-2), apart < .seconds(2) { hold.nextTryAt = told.nextTryAt }
            return hold == told
        }
        if isNear, told?.count == holds.count { return false }
        told = holds
        return true
    }
}
