/// The three parties' view of a lane; the work itself is done on the lane's own thread, by the transport.
final class ThreadLane: Lane {
    /// Works until the lane has ended, with every push taken answered in the mailbox.
    typealias Work = @Sendable (LanePlan, LaneMailbox, Doorbell) -> Result<Void, TransportError>

    private let plan: LanePlan
    private let work: Work
    private let doorbell: Doorbell
    private let mailbox: LaneMailbox

    init(plan: LanePlan, work: @escaping Work) {
        self.plan = plan
        self.work = work
        doorbell = Doorbell()
        mailbox = LaneMailbox(outstandingMax: plan.limits.outstandingMax, doorbell: doorbell)
    }

    var status: LaneStatus { mailbox.status }

    func send(_ batch: PushBatch) async -> Bool { await mailbox.send(batch) }

    func responses() async -> [PushResponse]? { await mailbox.responses() }

    func finish() { mailbox.finish() }

    func run() async throws(TransportError) {
        guard mailbox.start() else { return }
        let result = await withTaskCancellationHandler {
            await workOnThread()
        } onCancel: {
            mailbox.cancel()
        }
        if case .failure(let error) = result {
            mailbox.end(error.faultOfUnsent)
            throw error
        }
        mailbox.end(.stopped)
    }

    private func workOnThread() async -> Result<Void, TransportError> {
        guard doorbell.file >= 0 else {
            return .failure(.unreachable(plan.endpoint, reason: "this process has no file descriptor left"))
        }
        let (plan, work, mailbox, doorbell) = (plan, work, mailbox, doorbell)
        let result = await LaneThread.run(named: plan.name) { work(plan, mailbox, doorbell) }
        return result ?? .failure(.unreachable(plan.endpoint, reason: "the system gives no further thread"))
    }
}

extension TransportError {
    /// Of the pushes that were never written when a lane ended with this error.
    var faultOfUnsent: TransportFault {
        switch self {
        case .unreachable(_, let reason), .untrusted(_, let reason): .unreachable(reason)
        case .credentialUnusable: .stopped
        }
    }
}
