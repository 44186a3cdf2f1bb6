import APNs
import Foundation
import Logging
import Model
import Store

/// Once a second: notes that the owner is there, hears what others want of the run, and opens its ``StartGate`` for a
/// while. Whose the run is it does not decide: that is the post's.
struct Heartbeat: Sendable {
    static let interval = SenderTrust.beatEvery

    let store: any SendingStore
    let run: Int64
    let campaign: String
    let owner: String
    let control: RunControl
    let clock: WallClock
    let logger: Logger
    /// Nil: nobody asks whether this process is alive.
    var post: SenderPost?
    /// Nil: another sender leads the run, and this one takes part in it.
    var lead: RunLead?
    /// Recovers leases under this sender's name that it does not know.
    var recoverForgotten: @Sendable (_ leases: Set<Int64>) async throws -> Void = { _ in }

    /// Beats until `operation` returns. A state other than running, as somebody set it meanwhile, stops the run.
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

    /// Once a second, beside the heartbeats, which wait for nothing of this: a takeover may wait for locks.
    private func lookAround() async throws {
        while !Task.isCancelled {
            await clock.sleep(Self.interval)
            guard !Task.isCancelled else { return }
            do {
                try await lookAtOthers()
            } catch is CancellationError {
                return
            } catch let error as StoreError where error.isPassing {
                logger.debug("others not looked at", metadata: .facts([.run: "\(run)", .error: "\(error)"]))
            }
        }
    }

    /// The lead takes over what others left that are gone; the others go when there is no lead.
    private func lookAtOthers() async throws {
        let company = try await store.company(of: run, apartFrom: owner)
        let look = control.share.look(
            company, held: control.inFlight, pending: control.counts.pending, at: clock.uptime())
        if !look.forgotten.isEmpty { try await recoverForgotten(look.forgotten) }
        if look.isRecall {
            logger.info("others are idle: what is not started is given back", metadata: .facts([.run: "\(run)"]))
            control.gate.recall()
        }
        if let lead {
            if company.gone > 0 { try await lead.takeOver() }
        } else if !company.hasOtherLead {
            control.stop(.leadGone)
        }
    }

    /// Once for each time that the store takes nothing, and when it does again.
    private func tell(of reason: StoreWait.Reason?, after told: inout StoreWait.Reason?) {
        guard reason != told else { return }
        told = reason
        guard let reason else {
            return logger.notice("the store takes outcomes again", metadata: .facts([.run: "\(run)"]))
        }
        logger.warning(
            "the store takes nothing: answers are kept, nothing new is sent",
            metadata: .facts([.run: "\(run)", .reason: "\(reason.rawValue)"]))
    }

    private func tell(of change: ShutGate.Change?) {
        switch change {
        case nil: return
        case .shut:
            logger.warning(
                "the store answers too slowly: nothing new is sent",
                metadata: .facts([.run: "\(run)", .reason: "heartbeats take longer than \(SenderTrust.window)"]))
        case .opened: logger.notice("the store answers in time again", metadata: .facts([.run: "\(run)"]))
        }
    }

    /// Judges by the duration of a heartbeat whether this sender is fast enough to send.
    private func judge(beatOf duration: Duration) {
        guard store.isShared else { return }
        let (uptime, mayLease) = (clock.uptime(), control.share.mayLease)
        if let isTooSlow = control.share.note(beat: duration, at: uptime), !isTooSlow {
            logger.notice("heartbeats are fast enough again", metadata: .facts([.run: "\(run)"]))
        }
        if control.share.mayLease != mayLease { control.changed.raise() }
        guard control.share.isToLeave(at: uptime) else { return }
        let reason =
            "the store is too slow from here: a heartbeat takes \(duration.wholeMilliseconds) ms, and this sender may send "
            + "only if it takes at most about 1 s; faster senders continue the run. Check the network between this machine "
            + "and the server"
        logger.warning("run left to other senders", metadata: .facts([.run: "\(run)", .reason: "\(reason)"]))
        control.stop(.storeTooSlow(reason))
    }

    /// Returns when the next heartbeat is due; the first one of a shared store is due immediately.
    private func pause(_ last: Duration?) async {
        guard store.isShared else { return await clock.sleep(Self.interval) }
        guard let last else { return }
        await clock.sleep(SenderTrust.pause(since: last, now: clock.uptime()))
    }

    private func beat() async throws {
        var watch = ClockWatch(store: store, clock: clock, actor: Actor(owner), logger: logger)
        var holds = ToldHolds()
        var storeWait: StoreWait.Reason?
        var shut = ShutGate()
        var last: Duration?
        while !Task.isCancelled {
            if await watch.look() { control.changed.raise() }
            await pause(last)
            let (sentAt, isFirst) = (clock.uptime(), last == nil)
            last = sentAt
            guard !Task.isCancelled else { return }
            tell(of: control.storeWait?.reason, after: &storeWait)
            do {
                try post?.requireIntact()
                try store.requireInPlace()
            } catch {
                // Whoever looks now takes the run for left behind.
                return control.fail(error)
            }
            let began = BootMoment.now()
            do {
                async let asked = store.stops()
                let state = try await store.heartbeat(run, owner: owner, now: clock.now())
                // First the stops: what is leased already must not go on for another trust window.
                let order = try await asked.order(run: run, campaign: campaign)
                judge(beatOf: clock.uptime() - sentAt)
                if let order {
                    control.stop(.stopped(order))
                } else if state == .running {
                    let isOpen = control.renewTrust(from: began)
                    tell(of: shut.isTold(isOpen: isOpen, at: clock.uptime()))
                } else {
                    control.stop(.stateChanged(state))
                }
                // At the first heartbeat of a shared store the lanes may not know yet what the last sender was told.
                if !(isFirst && store.isShared), holds.isNew(control.holds) {
                    try await store.setHolds(control.holds, run: run, owner: owner)
                }
            } catch is CancellationError {
                return
            } catch let error as StoreError where error.isPassing {
                // The run is ours all the same.
                control.storeRefused(error, at: clock.now())
            }
        }
    }
}

/// What the lead of a run does for all who send of it.
struct RunLead: Sendable {
    /// Recovers what senders left that are gone.
    let takeOver: @Sendable () async throws -> Void
}

/// Notices that heartbeats are answered, but so late that the trust window is over each time: the run stands still.
struct ShutGate {
    enum Change: Hashable {
        case shut
        case opened
    }

    /// Told after this long.
    private static let patience: Duration = .seconds(10)

    private var since: Duration?
    private var isTold = false

    /// What is to be told, once.
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

/// What the store knows of endpoints in trouble, so that it is told once.
private struct ToldHolds {
    private var told: [EndpointHold]?

    /// A next try that is a second off is none: the wall clock is steered.
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
