package import CampaignFiles
package import Model
import Platform
import Sending
import Store
import Synchronization

/// Records what apps report about pushes and about what people do.
package struct RecordFeedback: Sendable {
    /// The maximum number of reports, and of bytes, in one request.
    package static let reportsMax = 1_000
    package static let bytesMax = 500_000
    /// The age from which a report is refused.
    private static let ageMax: Duration = .seconds(7 * 86_400)
    /// How far in the future a report may be, since clocks of devices are not exact.
    private static let aheadMax: Duration = .seconds(600)
    private static let fileBatch = 1_000

    private let store: any FeedbackLog & RunLog & AuditLog
    private let key: PushReferenceKey
    private let queue: CommitQueue<[FeedbackEvent], [FeedbackVerdict]>
    private let topics: RunTopics
    private let clock: WallClock

    init(
        store: any FeedbackLog & RunLog & AuditLog & DeliveryQueue,
        queue: CommitQueue<[FeedbackEvent], [FeedbackVerdict]>, topics: RunTopics, clock: WallClock
    ) {
        self.store = store
        let (high, low) = store.namespace
        key = PushReferenceKey(namespace: PushID(high: high, low: low))
        self.queue = queue
        self.topics = topics
        self.clock = clock
    }

    /// Records the reports of one request: a JSON array, or JSON Lines. A bad report does not stop the others. The good
    /// ones are durable on return.
    ///
    /// - Parameters:
    ///   - reporter: the caller.
    ///   - max: the maximum number of reports.
    package func record(
        _ body: [UInt8], from reporter: FeedbackReporter, max: Int = reportsMax
    ) async throws -> FeedbackResult {
        let lines: [NumberedLine<FeedbackLine>]?
        do throws(LineFault) {
            lines = try FeedbackBody.lines(body, max: max)
        } catch {
            throw Failure(.invalidData, error.reason)
        }
        guard let lines else {
            throw Failure(.invalidData, "more than \(max) reports; send them in several requests")
        }
        var result = FeedbackResult()
        _ = try await record(lines, into: &result, from: reporter) { try await queue.submit($0, weight: $0.count) }
        ServiceMetrics.reported(result.tally)
        return result
    }

    /// Records the events of several requests in one transaction, and returns the verdicts of each request.
    ///
    /// - Parameter isSending: whether the events are set aside, because this process sends a run.
    static func recorded(
        _ requests: [[FeedbackEvent]], in store: any FeedbackLog, isSending: Bool
    ) async throws -> [[FeedbackVerdict]] {
        let events = requests.flatMap(\.self)
        var verdicts = try await isSending ? store.setFeedbackAside(events)[...] : store.recordFeedback(events)[...]
        return requests.map { request in
            defer { verdicts = verdicts.dropFirst(request.count) }
            return Array(verdicts.prefix(request.count))
        }
    }

    /// Records the reports of a file. The result counts every line, also the unusable ones.
    ///
    /// - Parameter rejectsPath: the file for the rejected lines.
    package func importFile(
        _ path: String, rejectsPath: String?, by actor: Actor
    ) async throws -> (result: FeedbackResult, counts: ReadCounts) {
        var result = FeedbackResult()
        var age: Duration?
        let counts = try await FeedbackFileReader(path: path, rejectsPath: rejectsPath).forEachBatch(
            size: Self.fileBatch
        ) { lines in
            // The reports waited in the file. Most clocks are right, so the usual wait is that of the file.
            age = age ?? Self.wait(lines.compactMap { try? $0.value.get() }, until: clock.now())
            let sent = clock.now() - (age ?? .zero)
            return try await record(lines, sent: sent, into: &result, from: .backend { _ in true }) {
                try await store.recordFeedback($0)
            }
        }
        try await store.recordEvent(
            kind: .feedbackImported, run: nil, actor: actor,
            detail: "\(counts.read.counted("report")): \(result.recorded) recorded, \(result.repeated) repeated, "
                + "\(result.rejectedCount) rejected", now: clock.now())
        return (result, counts)
    }

    /// Returns the median of the times since reports were sent, by the devices' clocks; `nil` if none of them tells.
    private static func wait(_ reports: [FeedbackLine], until now: Timestamp) -> Duration? {
        let waits = reports.compactMap { report in report.sentAt.map { now - $0 } }.sorted()
        return waits.isEmpty ? nil : max(.zero, waits[waits.count / 2])
    }

    /// Records the usable lines. Returns the reasons for the rejected ones, by number.
    ///
    /// - Parameter sent: when the reports were sent, by this machine's clock; `nil` for the time of receipt.
    private func record(
        _ lines: [NumberedLine<FeedbackLine>], sent: Timestamp? = nil, into result: inout FeedbackResult,
        from reporter: FeedbackReporter, write: ([FeedbackEvent]) async throws -> [FeedbackVerdict]
    ) async throws -> [Int: String] {
        let received = clock.now()
        var rejected: [(line: Int, reason: String, kind: FeedbackKind?)] = []
        var reports: [(number: Int, report: FeedbackLine)] = []
        for line in lines {
            switch line.value {
            case .success(let report): reports.append((line.number, report))
            case .failure(let fault): rejected.append((line.number, Redaction.withoutTokens(fault.reason), nil))
            }
        }
        var numbers: [Int] = []
        var events: [FeedbackEvent] = []
        var pushes = key.references(
            reports.compactMap { if case .reference(let text) = $0.report.source { text } else { nil } })[...]
        for (number, report) in reports {
            switch try await event(report, received, sent ?? received, reporter, push: { pushes.popFirst() ?? nil }) {
            case .success(var event):
                numbers.append(number)
                if event.valueMicros != nil, !reporter.mayGiveValues {
                    event.valueMicros = nil
                    result.ignoreValue()
                }
                events.append(event)
            case .failure(let fault): rejected.append((number, fault.reason, report.kind))
            }
        }
        let verdicts = events.isEmpty ? [] : try await write(events)
        for ((number, event), verdict) in zip(zip(numbers, events), verdicts) {
            switch verdict {
            case .recorded, .repeated, .waiting: result.count(event.kind, verdict)
            case .unknownDevice: rejected.append((number, "the device is not registered; register it", event.kind))
            case .unknownPush:
                let reason = "the run of this push is not in the store; do not send the report again"
                rejected.append((number, reason, event.kind))
            }
        }
        rejected.sort { $0.line < $1.line }
        for line in rejected { result.reject(line.line, line.reason, of: line.kind) }
        return Dictionary(rejected.map { ($0.line, $0.reason) }) { first, _ in first }
    }

    /// Returns an event with its time by this machine's clock.
    ///
    /// - Parameter push: returns what the report's reference stands for. Called once if the report has one.
    private func event(
        _ report: FeedbackLine, _ received: Timestamp, _ sent: Timestamp, _ reporter: FeedbackReporter,
        push: () -> PushReference?
    ) async throws -> Result<FeedbackEvent, LineFault> {
        let source: FeedbackEvent.Source
        switch report.source {
        case .reference:
            guard let push = push(), let topic = try await topics.topic(of: push.run, in: store),
                reporter.mayReport(push, of: topic)
            else {
                return .failure(
                    LineFault(
                        reason:
                            "ref is not the reference of a push \(reporter.scope); send fanfare.r from the payload unchanged"
                    )
                )
            }
            source = .push(run: push.run, device: push.device)
        case .installation(let id, let topic):
            guard reporter.mayReport(installation: id, of: topic) else {
                return .failure(LineFault(reason: reporter.refusal(of: topic)))
            }
            source = .installation(id, topic: topic)
        }
        // A device that says when it sent the report shows by how much its clock is wrong.
        let at = report.at.map { at in report.sentAt.map { at + (sent - $0) } ?? at } ?? received
        guard at >= received - Self.ageMax else {
            return .failure(LineFault(reason: "the report is older than 7 days, so it is not counted"))
        }
        guard at <= received + Self.aheadMax else {
            return .failure(
                LineFault(
                    reason: "the report is more than 10 minutes in the future; check the fields `at` and `sent_at`"))
        }
        return .success(
            FeedbackEvent(
                source: source, kind: report.kind, name: report.name, id: report.id, valueMicros: report.valueMicros,
                at: at, receivedAt: received))
    }
}

/// The apps of the latest runs that reports named, so that a report needs no query.
final class RunTopics: Sendable {
    private static let countMax = 10_000

    private let known = Mutex<[Int64: String]>([:])

    /// Returns the topic of a run's campaign, or `nil` if there is no such run.
    func topic(of run: Int64, in store: any RunLog) async throws -> String? {
        if let topic = known.withLock({ $0[run] }) { return topic }
        guard let topic = try await store.run(run)?.definition.campaign.deviceTopic else { return nil }
        known.withLock { known in
            if known.count >= Self.countMax { known = [:] }
            known[run] = topic
        }
        return topic
    }
}

/// What became of the reports of a request or a file.
package struct FeedbackResult: Codable, Hashable, Sendable {
    package struct Rejection: Codable, Hashable, Sendable {
        /// The line of the body or of the file, or the position in the array, from 1.
        package var line: Int
        package var reason: String
    }

    /// The maximum number of rejections that are named.
    private static let namedMax = 1_000

    /// The number of reports of each kind that had the same result, for metrics. It is no part of the response. It
    /// lacks the reports that wait.
    private(set) var tally: [FeedbackTally: Int] = [:]
    package var recorded = 0
    /// Reports that were recorded before.
    package var repeated = 0
    package var rejectedCount = 0
    /// The first rejections.
    package var rejected: [Rejection] = []
    /// The reports whose value was not kept, because only a backend may give values. Absent if there are none.
    package var valuesIgnored: Int?

    private enum CodingKeys: String, CodingKey {
        case recorded = "recorded", repeated = "repeated", rejectedCount = "rejectedCount", rejected = "rejected"
        case valuesIgnored = "valuesIgnored"
    }

    package init() {}

    /// Counts a report that the store has.
    fileprivate mutating func count(_ kind: FeedbackKind, _ verdict: FeedbackVerdict) {
        if let result = FeedbackTally(kind, verdict) { tally[result, default: 0] += 1 }
        if verdict == .repeated { repeated += 1 } else { recorded += 1 }
    }

    fileprivate mutating func ignoreValue() { valuesIgnored = (valuesIgnored ?? 0) + 1 }

    /// - Parameter kind: `nil` if the report cannot be read.
    mutating func reject(_ line: Int, _ reason: String, of kind: FeedbackKind? = nil) {
        tally[FeedbackTally(kind: kind, result: .rejected), default: 0] += 1
        rejectedCount += 1
        if rejected.count < Self.namedMax { rejected.append(Rejection(line: line, reason: reason)) }
    }
}
