import HTTP2
import Synchronization

/// What all connections share: registry, fault script, log, counts.
///
/// `@unchecked Sendable`: everything is touched under `lock` only, by the methods below and by the checks they run.
final class SimulatorState: @unchecked Sendable {
    private let lock = Mutex(())
    private let policy: SimulatorPolicy
    private let keepsLog: Bool
    private let logsPayloads: Bool

    private(set) var registry: SimulatorRegistry
    private(set) var topics: TopicTable
    private var faults: FaultScript
    private var counts = SimulatorCounts()
    private var entries: [SimulatorLogEntry] = []
    private var file: LogFile?
    private var ids: SplitMix64

    init(_ options: SimulatorOptions, policy: SimulatorPolicy) throws(SimulatorError) {
        self.policy = policy
        registry = options.registry
        topics = TopicTable(options.topics)
        for topic in options.registry.topics { topics.add(String(decoding: topic, as: UTF8.self)) }
        faults = FaultScript(options.faults, seed: options.seed)
        ids = SplitMix64(seed: UInt64.random(in: .min ... .max))
        keepsLog = options.keepsLog
        logsPayloads = options.logsPayloads
        if let path = options.logPath { file = try LogFile(path: path) }
    }

    /// Judges a request and writes it down. On the connection's loop.
    func decide(_ request: IncomingRequest, on connection: PushConnection) -> Decision {
        let nowMs = policy.nowMs()
        return lock.withLock { _ in
            counts.requests += 1
            var decision = judge(request, on: connection, nowMs: nowMs)
            if request[.id] == nil || decision.verdict.reason == SimulatorReason.badMessageID.rawValue {
                decision.madeID = MessageID(using: &ids)
            }
            count(decision)
            if keepsLog || file != nil { record(decision, request, connection, nowMs) }
            return decision
        }
    }

    private func judge(_ request: IncomingRequest, on connection: PushConnection, nowMs: Int64) -> Decision {
        var decision = Decision(verdict: .accepted, delayMs: policy.answerDelayMs)
        if !faults.isEmpty {
            let environment = connection.environment
            let before = faults.action(at: .beforeChecks, token: connection.token, environment: environment)
            decision.take(before)
            if case .some(.silence) = before { return decision.unprocessed() }
            if case .some(.reset) = before { return decision.unprocessed() }
            if case .some(.close) = before { return decision.unprocessed() }
            if case .some(.answer) = before { return decision }
        }
        if !policy.acceptsAll {
            var inspection = Inspection(of: request, on: connection, policy: policy, state: self, nowMs: nowMs)
            decision.verdict = inspection.verdict()
            decision.delayMs += inspection.device?.delayMs ?? 0
        }
        if !faults.isEmpty, decision.fault == nil {
            decision.take(
                faults.action(at: .afterChecks, token: connection.token, environment: connection.environment))
        }
        return decision
    }

    private func count(_ decision: Decision) {
        if decision.fault != nil { counts.faults += 1 }
        if decision.verdict.isAccepted {
            counts.accepted += 1
        } else if decision.verdict.status != 0 {
            counts.rejected[decision.verdict.reason ?? String(decision.verdict.status), default: 0] += 1
        }
    }

    private func record(
        _ decision: Decision, _ request: IncomingRequest, _ connection: PushConnection, _ nowMs: Int64
    ) {
        let made = decision.madeID?.text
        let entry = SimulatorLogEntry(
            sequence: counts.requests, timeMs: nowMs, connection: connection.number,
            environment: connection.environment, stream: Int(request.stream), token: connection.tokenText(request),
            apnsID: made ?? request.text(.id) ?? "", topic: request.text(.topic), pushType: request.text(.pushType),
            priority: request.text(.priority), expiration: request.text(.expiration),
            collapseID: request.text(.collapseID), payloadBytes: request.bodySize,
            payload: logsPayloads ? Array(request.body) : nil, status: decision.verdict.status,
            reason: decision.verdict.reason, fault: decision.fault?.name, openStreams: connection.openStreams,
            hadAcceptance: connection.hasAccepted, hasAuthorization: request[.authorization] != nil)
        file?.append(line: entry.line)
        if keepsLog { entries.append(entry) }
    }
}

/// What others ask for, on any thread.
extension SimulatorState {
    func connectionOpened() {
        lock.withLock { _ in
            counts.connections += 1
            counts.openConnections += 1
        }
    }

    func connectionClosed() { lock.withLock { _ in counts.openConnections -= 1 } }
    func streamRefused() { lock.withLock { _ in counts.refusedStreams += 1 } }
    func log() -> [SimulatorLogEntry] { lock.withLock { _ in entries } }
    func currentCounts() -> SimulatorCounts { lock.withLock { _ in counts } }

    /// Ends the log file; later requests are not written any more.
    func closeLog() { lock.withLock { _ in file = nil } }

    func change(_ body: (inout SimulatorRegistry) -> Void) {
        lock.withLock { _ in
            body(&registry)
            for topic in registry.topics { topics.add(String(decoding: topic, as: UTF8.self)) }
        }
    }

    func setFaults(_ rules: [FaultRule], seed: UInt64) {
        lock.withLock { _ in faults = FaultScript(rules, seed: seed) }
    }
}

extension Decision {
    fileprivate mutating func take(_ action: FaultAction?) {
        guard let action else { return }
        fault = action
        switch action {
        case .answer(let status, let reason): verdict = Verdict(status: status, reason: status == 200 ? nil : reason)
        case .delay(let milliseconds): delayMs += milliseconds
        case .silence, .reset, .goAway, .close: break
        }
    }

    fileprivate func unprocessed() -> Decision {
        var decision = self
        decision.verdict = Verdict(status: 0, reason: nil)
        return decision
    }
}
