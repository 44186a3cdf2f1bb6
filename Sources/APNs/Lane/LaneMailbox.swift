import HTTP2
import Platform
import Synchronization

/// The exchange between the three parties of a lane. Batches go in and completions come out. At `outstandingMax`
/// outstanding pushes the sender waits.
///
/// The sender and the receiver are tasks and suspend here. The lane's thread never waits here, but is woken by an
/// ``EventFD``. One `Mutex` guards all state, and is held only while whole batches are moved.
final class LaneMailbox: Sendable {
    private struct State {
        /// Batches that were sent and that the lane's thread has not yet taken.
        var batches: [PushBatch] = []
        var queued = 0
        /// The number of pushes that were sent and whose completions the receiver has not yet taken.
        var outstanding = 0
        var completions: [PushCompletion] = []
        var receivers: [CheckedContinuation<Void, Never>] = []
        var senders: [CheckedContinuation<Void, Never>] = []
        var isFinished = false
        var isCancelled = false
        var isStarted = false
        var hasEnded = false
        var status = LaneStatus()
    }

    /// The batches and commands for the lane's thread.
    struct Commands {
        var batches: [PushBatch]
        var isFinished: Bool
        var isCancelled: Bool
    }

    private let state = Mutex(State())
    private let outstandingMax: Int
    private let wakeup: EventFD

    init(outstandingMax: Int, wakeup: EventFD) {
        self.outstandingMax = max(1, outstandingMax)
        self.wakeup = wakeup
    }

    var status: LaneStatus {
        state.withLock { state in
            var status = state.status
            status.queued += state.queued
            return status
        }
    }
}

// The sender's side.
extension LaneMailbox {
    private enum Offer { case taken, full, closed }

    func send(_ batch: PushBatch) async -> Bool {
        while true {
            switch offer(batch) {
            case .taken:
                wakeup.signal()
                return true
            case .closed: return false
            case .full: await roomOrEnd()
            }
        }
    }

    func finish() {
        state.withLock { $0.isFinished = true }
        wakeup.signal()
    }

    private func offer(_ batch: PushBatch) -> Offer {
        state.withLock { state in
            if state.hasEnded || state.isCancelled || state.isFinished { return .closed }
            if state.outstanding >= outstandingMax { return .full }
            guard !batch.pushes.isEmpty else { return .taken }
            state.batches.append(batch)
            state.queued += batch.pushes.count
            state.outstanding += batch.pushes.count
            return .taken
        }
    }

    private func roomOrEnd() async {
        await withCheckedContinuation { continuation in
            let mayGoOn = state.withLock { state in
                let isOpen = !(state.hasEnded || state.isCancelled || state.isFinished)
                if isOpen, state.outstanding >= outstandingMax {
                    state.senders.append(continuation)
                    return false
                }
                return true
            }
            if mayGoOn { continuation.resume() }
        }
    }
}

// The receiver's side.
extension LaneMailbox {
    private enum Delivery {
        case completions([PushCompletion], waking: [CheckedContinuation<Void, Never>])
        case nothingYet
        case ended
    }

    func completions() async -> [PushCompletion]? {
        while true {
            switch takeDelivery() {
            case .completions(let completions, let senders):
                for sender in senders { sender.resume() }
                return completions
            case .ended: return nil
            case .nothingYet: await completionsOrEnd()
            }
        }
    }

    private func takeDelivery() -> Delivery {
        state.withLock { state in
            if state.completions.isEmpty { return state.hasEnded ? .ended : .nothingYet }
            var completions: [PushCompletion] = []
            swap(&completions, &state.completions)
            state.outstanding -= completions.count
            var senders: [CheckedContinuation<Void, Never>] = []
            if state.outstanding < outstandingMax { swap(&senders, &state.senders) }
            return .completions(completions, waking: senders)
        }
    }

    private func completionsOrEnd() async {
        await withCheckedContinuation { continuation in
            let mayGoOn = state.withLock { state in
                if state.completions.isEmpty, !state.hasEnded {
                    state.receivers.append(continuation)
                    return false
                }
                return true
            }
            if mayGoOn { continuation.resume() }
        }
    }
}

// The lane's side.
extension LaneMailbox {
    /// Marks the lane as started. Returns false if it runs or has ended already.
    func start() -> Bool {
        state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
    }

    func cancel() {
        let senders = state.withLock { state in
            state.isCancelled = true
            var senders: [CheckedContinuation<Void, Never>] = []
            swap(&senders, &state.senders)
            return senders
        }
        for sender in senders { sender.resume() }
        wakeup.signal()
    }

    func takeCommands() -> Commands {
        state.withLock { state in
            var batches: [PushBatch] = []
            swap(&batches, &state.batches)
            state.queued = 0
            return Commands(batches: batches, isFinished: state.isFinished, isCancelled: state.isCancelled)
        }
    }

    /// Hands completions to the receiver, wakes the receiver once, and empties `completions`.
    func publish(_ completions: inout [PushCompletion], status: LaneStatus) {
        let receivers = state.withLock { state in
            state.status = status
            var receivers: [CheckedContinuation<Void, Never>] = []
            guard !completions.isEmpty else { return receivers }
            if state.completions.isEmpty {
                swap(&state.completions, &completions)
            } else {
                state.completions.append(contentsOf: completions)
            }
            swap(&receivers, &state.receivers)
            return receivers
        }
        completions.removeAll(keepingCapacity: true)
        for receiver in receivers { receiver.resume() }
    }

    /// Ends the lane. Pushes that the lane's thread had not taken are reported as `notSent`.
    func end(_ fault: TransportFault) {
        let waiting = state.withLock { state in
            state.hasEnded = true
            for batch in state.batches {
                state.completions += batch.pushes.map { PushCompletion(tag: $0.tag, result: .notSent(fault)) }
            }
            state.batches = []
            state.queued = 0
            let waiting = state.receivers + state.senders
            state.receivers = []
            state.senders = []
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

/// A lane whose loop runs on a separate thread, so that the loop never blocks one of the threads that Swift's tasks
/// share.
final class ThreadLane: Lane {
    /// Runs a lane, and blocks its thread until the lane has ended.
    typealias Loop = @Sendable (LanePlan, LaneMailbox, EventFD) -> Result<Void, TransportError>

    private let plan: LanePlan
    private let loop: Loop
    private let wakeup: EventFD
    private let mailbox: LaneMailbox

    init(plan: LanePlan, loop: @escaping Loop) {
        self.plan = plan
        self.loop = loop
        wakeup = EventFD()
        mailbox = LaneMailbox(outstandingMax: plan.limits.outstandingMax, wakeup: wakeup)
    }

    var status: LaneStatus { mailbox.status }

    func send(_ batch: PushBatch) async -> Bool { await mailbox.send(batch) }

    func completions() async -> [PushCompletion]? { await mailbox.completions() }

    func finish() { mailbox.finish() }

    func run() async throws(TransportError) {
        guard mailbox.start() else { return }
        let result = await withTaskCancellationHandler {
            // The thread reads provider tokens from memory. A task fetches them.
            await plan.credential.keepFresh { await runOnThread() }
        } onCancel: {
            mailbox.cancel()
        }
        if case .failure(let error) = result {
            mailbox.end(error.faultOfUnsent)
            throw error
        }
        mailbox.end(.stopped)
    }

    private func runOnThread() async -> Result<Void, TransportError> {
        guard wakeup.file >= 0 else {
            return .failure(.unreachable(plan.endpoint, reason: "this process has no free file descriptor"))
        }
        let (plan, loop, mailbox, wakeup) = (plan, loop, mailbox, wakeup)
        return await withCheckedContinuation { continuation in
            let isStarted = LoopThread.runDetached(named: plan.name) {
                continuation.resume(returning: loop(plan, mailbox, wakeup))
            }
            guard !isStarted else { return }
            continuation.resume(
                returning: .failure(
                    .unreachable(
                        plan.endpoint, reason: "the system cannot start another thread; raise the limit of threads")))
        }
    }
}

/// The completions that the receiver has not got yet. They are due when many are ready, or when the first has waited
/// too long.
struct CompletionBuffer {
    static let countMax = 1000
    static let waitMaxNanoseconds: UInt64 = 20_000_000

    var completions: [PushCompletion] = []
    private var since: UInt64 = 0

    mutating func add(_ completion: PushCompletion, at now: UInt64) {
        if completions.isEmpty { since = now }
        completions.append(completion)
    }

    var due: UInt64? { completions.isEmpty ? nil : since + Self.waitMaxNanoseconds }

    func isDue(at now: UInt64) -> Bool {
        completions.count >= Self.countMax || due.map { now >= $0 } ?? false
    }
}
