import HTTP2
import Synchronization

/// The state that all connections share: registry, fault script, log, counts.
///
/// `@unchecked Sendable`: all state is used only under `lock`, by the methods below and by the checks that they run.
final class SimulatorState: @unchecked Sendable {
    private let lock = Mutex(())
    private let policy: SimulatorPolicy
    private let logsPayloads: Bool
    /// Whether the log file needs to know when a request is over.
    let followsRequests: Bool

    private(set) var registry: SimulatorRegistry
    private(set) var topics: TopicTable
    private var faults: FaultScript
    private var answerDelayMs: Int
    private var log: RequestLog
    /// `nil` if screens are not kept.
    private var devices: SimulatedDevices?
    private var ids: SplitMix64
    private var authorizations = AuthorizationHashes()

    init(_ options: SimulatorOptions, policy: SimulatorPolicy) throws(SimulatorError) {
        self.policy = policy
        registry = options.registry
        topics = TopicTable(options.topics)
        for topic in options.registry.topics { topics.add(String(decoding: topic, as: UTF8.self)) }
        faults = FaultScript(options.faults, seed: options.seed, nowMs: policy.nowMs())
        answerDelayMs = options.answerDelayMs
        ids = SplitMix64(seed: UInt64.random(in: .min ... .max))
        logsPayloads = options.logsPayloads || options.simulatesDevices
        devices = options.simulatesDevices ? SimulatedDevices() : nil
        followsRequests = options.logPath != nil
        log = try RequestLog(keepsLog: options.keepsLog, path: options.logPath)
    }

    /// Checks a request and records it. Call it on the connection's loop.
    func decide(_ request: IncomingRequest, on connection: PushConnection) -> Decision {
        let nowMs = policy.nowMs()
        return lock.withLock { _ in
            var decision = judge(request, on: connection, nowMs: nowMs)
            if request[.id] == nil || decision.verdict.reason == SimulatorReason.badMessageID.rawValue {
                decision.madeID = MessageID(using: &ids)
            }
            write(&decision, request, connection, nowMs)
            return decision
        }
    }

    /// Records a request that is not examined because of an earlier GOAWAY.
    func passOver(_ request: IncomingRequest, on connection: PushConnection) {
        let nowMs = policy.nowMs()
        lock.withLock { _ in
            var decision = Decision(verdict: .accepted)
            decision.fault = .goAway(lastStream: .none, reason: nil)
            decision.leaveUntouched()
            write(&decision, request, connection, nowMs)
        }
    }

    /// Returns the fault of a new connection. `nil` if the script has none for it.
    func actionAtConnect(to environment: SimulatorEnvironment) -> FaultAction? {
        let nowMs = policy.nowMs()
        return lock.withLock { _ in
            guard !faults.isEmpty else { return nil }
            let event = FaultScript.Event(isConnect: true, token: nil, environment: environment, nowMs: nowMs)
            let rule = faults.rule(for: event)
            if rule != nil { log.counts.faults += 1 }
            return rule?.action
        }
    }

    private func judge(_ request: IncomingRequest, on connection: PushConnection, nowMs: Int64) -> Decision {
        var decision = Decision(verdict: .accepted, delayMs: answerDelayMs)
        let rule = faults.isEmpty ? nil : faults.rule(for: event(connection, nowMs))
        if let rule, rule.moment == .beforeChecks {
            decision.take(rule.action)
            if decision.isSettledByFault(connection, request) { return decision }
        }
        if !policy.acceptsAll {
            var inspection = Inspection(of: request, on: connection, policy: policy, state: self, nowMs: nowMs)
            decision.verdict = inspection.verdict()
            decision.delayMs += inspection.device?.delayMs ?? 0
        }
        if let rule, rule.moment == .afterChecks { decision.take(rule.action) }
        return decision
    }

    private func event(_ connection: PushConnection, _ nowMs: Int64) -> FaultScript.Event {
        FaultScript.Event(
            isConnect: false, token: connection.token, environment: connection.environment, nowMs: nowMs)
    }

    private func write(
        _ decision: inout Decision, _ request: IncomingRequest, _ connection: PushConnection, _ nowMs: Int64
    ) {
        log.counts.requests += 1
        decision.sequence = log.counts.requests
        if decision.fault != nil { log.counts.faults += 1 }
        if decision.verdict.isAccepted {
            log.counts.accepted += 1
        } else if decision.verdict.status != 0 {
            log.counts.rejected[decision.verdict.reason ?? String(decision.verdict.status), default: 0] += 1
        }
        if log.wantsEntries || devices != nil {
            let entry = entry(decision, request, connection, nowMs)
            devices?.see(entry)
            if log.wantsEntries { log.add(entry) }
        }
        if decision.losesAnswer { log.loseAnswer(decision.sequence) }
    }

    private func entry(
        _ decision: Decision, _ request: IncomingRequest, _ connection: PushConnection, _ nowMs: Int64
    ) -> SimulatorLogEntry {
        let authorization = request[.authorization]
        return SimulatorLogEntry(
            sequence: decision.sequence, timeMs: nowMs, connection: connection.number,
            environment: connection.environment, stream: Int(request.stream), token: connection.tokenText(request),
            apnsID: decision.madeID?.text ?? request.text(.id) ?? "", topic: request.text(.topic),
            pushType: request.text(.pushType), priority: request.text(.priority), expiration: request.text(.expiration),
            collapseID: request.text(.collapseID), payloadBytes: request.bodySize,
            payload: logsPayloads ? Array(request.body) : nil, status: decision.verdict.status,
            reason: decision.verdict.reason, fault: decision.fault?.name, openStreams: connection.openStreams,
            hadAcceptance: connection.hasAccepted, hasAuthorization: authorization != nil,
            authorizationHash: authorization.map { authorizations.hash(of: $0) })
    }
}

/// Later events of requests. Call these methods on the connection's loop.
extension SimulatorState {
    func answerLost(_ sequence: Int) { lock.withLock { _ in log.loseAnswer(sequence) } }
    func finished(_ sequence: Int) { lock.withLock { _ in log.finish(sequence) } }

    func withdraw(_ sequence: Int, isAnswerLost: Bool) {
        lock.withLock { _ in log.withdraw(sequence, isAnswerLost: isAnswerLost) }
    }

    func connectionOpened() {
        lock.withLock { _ in
            log.counts.connections += 1
            log.counts.openConnections += 1
        }
    }

    func connectionClosed() { lock.withLock { _ in log.counts.openConnections -= 1 } }
    func streamRefused() { lock.withLock { _ in log.counts.refusedStreams += 1 } }
}

/// Methods for other threads.
extension SimulatorState {
    func logEntries() -> [SimulatorLogEntry] { lock.withLock { _ in log.entries } }
    func currentCounts() -> SimulatorCounts { lock.withLock { _ in log.counts } }
    func currentDevices() -> SimulatedDevices? { lock.withLock { _ in devices } }

    func changeDevices(_ body: (inout SimulatedDevices) -> Void) {
        lock.withLock { _ in
            guard var changed = devices else { return }
            // Keep only one reference to the value, so that the change copies nothing.
            devices = nil
            body(&changed)
            devices = changed
        }
    }

    func closeLog() { lock.withLock { _ in log.closeFile() } }

    func change(_ body: (inout SimulatorRegistry) -> Void) {
        lock.withLock { _ in
            body(&registry)
            for topic in registry.topics { topics.add(String(decoding: topic, as: UTF8.self)) }
        }
    }

    func setFaults(_ rules: [FaultRule], seed: UInt64) {
        let nowMs = policy.nowMs()
        lock.withLock { _ in faults = FaultScript(rules, seed: seed, nowMs: nowMs) }
    }

    func setAnswerDelay(milliseconds: Int) { lock.withLock { _ in answerDelayMs = milliseconds } }
}
