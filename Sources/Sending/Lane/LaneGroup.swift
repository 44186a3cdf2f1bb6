import APNs
package import Logging
import Model
import Platform
import Senders
package import Store

/// The lanes of one app, shared by all of its runs in progress in this process.
///
/// Any free lane leases deliveries of a run that has joined. The run is removed when none of its deliveries is in
/// flight. A lane's failure stops the runs of its environment if no other lane works there. Any other error stops only
/// the run in which it occurred.
package final class LaneGroup: Sendable {
    package let sender: SendingSetup
    private let schedulers: [PushEnvironment: FairScheduler]
    private let changed = Signal()
    private let stopped = Signal()
    private let idleMax: Duration?
    private let clock: WallClock
    private let logger: Logger

    /// - Parameter idleMax: the idle time after which a lane is closed until there is work again. `nil` keeps it open.
    package init(
        sender: SendingSetup, idleMax: Duration? = nil, clock: WallClock,
        jitter: @escaping @Sendable () -> Double, logger: Logger
    ) {
        self.sender = sender
        self.idleMax = idleMax
        self.clock = clock
        self.logger = logger
        let (changed, stopped) = (changed, stopped)
        schedulers = Dictionary(
            uniqueKeysWithValues: sender.endpoints.map { environment, endpoint in
                let breaker = EndpointBreaker(
                    endpoint: endpoint.description, credential: sender.credentials[environment], jitter: jitter)
                return (
                    environment,
                    FairScheduler(environment, breaker: breaker, clock: clock, changed: changed, stopped: stopped)
                )
            })
    }

    /// Runs the lanes until ``close()`` and the last response. After a cancellation, returns when the requests on the
    /// wire have their responses.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            for (environment, endpoint) in sender.endpoints {
                guard let scheduler = schedulers[environment], let transport = sender.transports[environment] else {
                    continue
                }
                for number in 1...sender.lanesPerEnvironment {
                    let worker = LaneWorker(
                        name: "\(environment)-\(number)", scheduler: scheduler, idleMax: idleMax,
                        leaseMax: sender.leaseMax, journal: sender.journals.own, clock: clock, logger: logger)
                    group.addTask { await worker.run { transport.lane(to: endpoint, named: $0) } }
                }
            }
            await group.waitForAll()
        }
    }

    /// Closes the lanes: they finish the pushes that they have and accept no more.
    package func close() {
        for scheduler in schedulers.values { scheduler.close() }
    }

    /// The endpoints that give this process no responses.
    package var outages: [EndpointOutage] { schedulers.values.compactMap(\.outage) }

    private static func tell(_ change: EndpointReach.Change?, _ scheduler: FairScheduler, _ logger: Logger) {
        let endpoint: Logger.MetadataValue = "\(scheduler.breaker.endpoint)"
        switch change {
        case nil: break
        case .lost(let since):
            logger.warning(
                "APNs cannot be reached; retrying", metadata: .facts([.endpoint: endpoint, .since: "\(since.iso8601)"]))
        case .found: logger.notice("APNs responds again", metadata: .facts([.endpoint: endpoint]))
        }
    }

    /// Checks the endpoints, reports what has changed, and returns those in trouble.
    func lookAtEndpoints() -> [EndpointHold] {
        for scheduler in schedulers.values { Self.tell(scheduler.look(), scheduler, logger) }
        return schedulers.values.compactMap(\.hold)
    }

    /// Takes over the pauses of endpoints that the last sender of a run recorded.
    func takeOver(_ holds: [EndpointHold]) {
        for hold in holds { schedulers[hold.environment]?.takeOver(hold) }
    }

    /// Lets only one request per endpoint start first, for a run that paused itself. Skips endpoints from which this
    /// process has had results.
    func probeFirst() {
        for scheduler in schedulers.values { scheduler.probeFirst() }
    }

    /// Sends the run until its end or a stop, and returns when none of its deliveries is in flight. Cancelling the task
    /// stops the run.
    ///
    /// - Parameters:
    ///   - request: returns the template of the leases for an environment.
    ///   - idleLimit: if nothing is due for longer than this, the run is stopped. `nil` means that the call waits.
    func send(
        _ run: RunInProgress, idleLimit: Duration?, request: @Sendable (PushEnvironment) -> LeaseRequest
    ) async {
        // In a store that several senders share, the store enforces the pace.
        let pacer = run.store.isShared ? nil : run.campaign.pace.map(Pacer.init)
        let control = run.control
        control.progress.changed.pass(on: changed)
        control.decision.stopped.pass(on: stopped)
        for (environment, scheduler) in schedulers {
            let source = LeaseSource(
                store: run.store, template: request(environment), control: control, pacer: pacer,
                breaker: scheduler.breaker, clock: clock)
            scheduler.join(run, source)
        }
        for environment in PushEnvironment.allCases where schedulers[environment] == nil {
            control.refuse(environment, "the app has no key for it; add keys.\(environment) in the configuration")
        }
        await withTaskCancellationHandler {
            await waitForEnd(of: run, idleLimit)
        } onCancel: {
            control.stop(.stopRequested)
        }
        for scheduler in schedulers.values {
            scheduler.remove(run)
            Self.tell(scheduler.takeFound(), scheduler, logger)
        }
        control.progress.changed.pass(on: nil)
        control.decision.stopped.pass(on: nil)
    }

    private func waitForEnd(of run: RunInProgress, _ idleLimit: Duration?) async {
        let control = run.control
        let environments = Set(schedulers.keys)
        var known: Set<PushEnvironment> = []
        while true {
            let seen = control.progress.ending.version
            if control.isOver { return }
            log(control.decision.refused.filter { known.insert($0.key).inserted }, of: run)
            if control.isLeftToRefused(of: environments) {
                control.stop(.credential(summary(control.decision.refused, left: control.progress.counts.pending)))
                continue
            }
            let due = control.idleUntil(environments: environments)
            if let idleLimit, let due, due > clock.now() + idleLimit {
                control.stop(.nothingDue(until: due))
                continue
            }
            await control.progress.ending.waitUncancelled(after: seen)
        }
    }

    /// Logs refused credentials immediately, because the other environments may continue for hours.
    private func log(_ refused: [PushEnvironment: String], of run: RunInProgress) {
        for (environment, reason) in refused where schedulers[environment] != nil {
            logger.error(
                "credential refused, environment stopped",
                metadata: .facts([
                    .run: "\(run.id)", .environment: "\(environment)",
                    .credential: "\(sender.credentials[environment] ?? "")", .reason: "\(reason)",
                ]))
        }
    }

    /// `sandbox, key ABC123DEFG of team DEF123GHIJ: InvalidProviderToken: …`
    private func summary(_ refused: [PushEnvironment: String], left: Int) -> String {
        let reasons = refused.sorted { $0.key.rawValue < $1.key.rawValue }.map { environment, reason in
            let name = [environment.rawValue, sender.credentials[environment]].compactMap(\.self)
            return "\(name.joined(separator: ", ")): \(reason)"
        }
        let waiting = left.counted("delivery there waits", "deliveries there wait")
        return reasons.joined(separator: "; and ")
            + ". \(waiting): a daemon retries them automatically once the credential is right"
    }
}
