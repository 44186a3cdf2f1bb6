import HTTP2

/// A lane as its three parties see it; its loop runs on a thread of its own, so that it never holds one of the threads
/// that Swift's tasks share.
final class ThreadLane: Lane {
    /// Returns when the lane has ended, with every push taken answered in the mailbox. Blocks its thread.
    typealias Loop = @Sendable (LanePlan, LaneMailbox, Doorbell) -> Result<Void, TransportError>

    private let plan: LanePlan
    private let loop: Loop
    private let doorbell: Doorbell
    private let mailbox: LaneMailbox

    init(plan: LanePlan, loop: @escaping Loop) {
        self.plan = plan
        self.loop = loop
        doorbell = Doorbell()
        mailbox = LaneMailbox(outstandingMax: plan.limits.outstandingMax, doorbell: doorbell)
    }

    var status: LaneStatus { mailbox.status }

    func send(_ batch: PushBatch) async -> Bool { await mailbox.send(batch) }

    func completions() async -> [PushCompletion]? { await mailbox.completions() }

    func finish() { mailbox.finish() }

    func run() async throws(TransportError) {
        guard mailbox.start() else { return }
        let result = await withTaskCancellationHandler {
            await runOnThread()
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
        guard doorbell.file >= 0 else {
            return .failure(.unreachable(plan.endpoint, reason: "this process has no file descriptor left"))
        }
        let (plan, loop, mailbox, doorbell) = (plan, loop, mailbox, doorbell)
        return await withCheckedContinuation { continuation in
            let isStarted = LoopThread.runDetached(named: plan.name) {
                continuation.resume(returning: loop(plan, mailbox, doorbell))
            }
            guard !isStarted else { return }
            continuation.resume(
                returning: .failure(.unreachable(plan.endpoint, reason: "the system gives no further thread")))
        }
    }
}
