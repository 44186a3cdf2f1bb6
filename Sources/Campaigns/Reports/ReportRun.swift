package import Model
import Rendering
package import Store

/// Reads the outcome of a run.
package struct ReportRun: Sendable {
    fileprivate let store: any RunLog & AuditLog & OutcomeReader & DeliveryQueue & FeedbackLog

    package init(store: any RunLog & AuditLog & OutcomeReader & DeliveryQueue & FeedbackLog) {
        self.store = store
    }

    package func report(_ run: Run) async throws -> Report { try await completed(store.report(run.id)) }

    /// Adds the stages, the corrections and the emergency override, which are not recorded with the deliveries.
    private func completed(_ report: Report) async throws -> Report {
        var report = report
        if report.run.definition.campaign.stages != nil { report.stages = try await store.stages(of: report.run.id) }
        let corrections = try await CorrectRun.corrections(of: report.run, in: store)
        report.correctedBy = corrections.map(\.id)
        report.recalledBy = corrections.filter { $0.definition.correction?.kind == .recall }.map(\.id)
        report.emergencyOverride = try await EmergencyOverride.of(report.run, in: store)
        return report
    }

    /// Returns the report with what people did. Reads all deliveries of a run with a goal or a holdout.
    package func result(of run: Run, now: Timestamp) async throws -> ReportResult {
        var result = try await counted(run)
        result.feedback = try await feedback(of: run, in: result, now: now)
        return result
    }

    /// - Parameter report: the run's report, which has been counted already.
    package func feedback(of run: Run, in report: ReportResult, now: Timestamp) async throws -> FeedbackReport? {
        let decided = report.stages?.lazy.compactMap(\.variants?.summary).first
        let mayBePruned = run.state.isFinal && run.definition.campaign.hasFeedback
        return try await ReadFeedback(store: store).report(
            of: run, accepted: AcceptedPushes(report), decided: decided,
            prunedAt: mayBePruned ? try await prunedAt(run) : nil, now: now)
    }

    /// Returns the opens of runs, by run, of the pushes that APNs accepted. Runs without opens are left out.
    func opens(of runs: [Run]) async throws -> [Int64: FeedbackReport.Share] {
        try await ReadFeedback(store: store).opens(of: runs)
    }

    /// Returns how many devices reached the goal of the campaign, as ``ReadFeedback`` counts them.
    func goal(of run: Run, now: Timestamp) async throws -> RunGoal? {
        try await ReadFeedback(store: store).goal(of: run, now: now) { try await prunedAt(run) }
    }

    /// Returns the report without what people did.
    func counted(_ run: Run) async throws -> ReportResult { ReportResult(try await report(run)) }

    /// Returns the stored report; `nil` if there is none, so that the run's deliveries would have to be counted.
    func keptResult(of run: Run) async throws -> ReportResult? {
        guard let kept = try await store.keptReport(run.id) else { return nil }
        return ReportResult(try await completed(kept))
    }

    package func timeline(of run: Run) async throws -> TimelineResult {
        try await ReadTimeline(store: store).timeline(of: run)
    }

    /// Returns the same waves as ``ReadTimeline/waves(of:)``.
    package func waves(of run: Run) async throws -> [PlannedWave] {
        try await ReadTimeline(store: store).waves(of: run)
    }

    /// Counts every delivery again.
    package func check(_ run: Run) async throws -> SumCheck { try await store.check(run.id) }

    /// Returns when the run's outcomes by device were pruned, or `nil` while they are kept.
    package func prunedAt(_ run: Run) async throws -> Timestamp? { try await Self.prunedAt(run, in: store) }

    static func prunedAt(_ run: Run, in store: any OutcomeReader) async throws -> Timestamp? {
        // The first batch is enough, so the others are not read.
        struct Enough: Error {}
        do {
            _ = try await store.outcomes(run: run.id) { _ in throw Enough() }
        } catch StoreError.outcomesPruned(_, let moment) {
            return moment
        } catch is Enough {
            return nil
        }
        return nil
    }

    /// Passes one CSV line per delivery to `batch`, in batches, the heading first. Tokens appear as their last 8
    /// characters.
    package func outcomes(of run: Run, batch: @escaping @Sendable (String) throws -> Void) async throws {
        // If the run's outcomes are pruned, this throws before anything is written.
        if try await prunedAt(run) != nil { _ = try await store.outcomes(run: run.id) { _ in } }
        try batch(CSVLine.text(OutcomeLine.columns) + "\n")
        let ids = OutcomeLine(run: run, namespace: store.namespace)
        _ = try await store.outcomes(run: run.id) { rows in
            try batch(rows.map(ids.line).joined())
        }
    }
}

extension ReportRun {
    /// Returns some of the lines that ``outcomes(of:batch:)`` writes, for callers that read at their own pace. No
    /// snapshot stays open between two calls.
    ///
    /// - Parameters:
    ///   - filter: the deliveries to write.
    ///   - device: the last device of the previous lines; `nil` to start with the heading.
    package func lines(
        of run: Run, _ filter: DeliveryFilter = DeliveryFilter(), after device: Int64?, limit: Int
    ) async throws -> (text: String, next: Int64?) {
        let page = try await store.deliveries(of: run.id, filter, after: device ?? 0, limit: limit)
        let ids = OutcomeLine(run: run, namespace: store.namespace)
        let heading = device == nil ? CSVLine.text(OutcomeLine.columns) + "\n" : ""
        return (heading + page.entries.map { ids.line($0.outcome) }.joined(), page.next)
    }
}

/// The recounted counts of a run: the stable shape of `report --check --format json`.
package struct SumCheckResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var closes: Bool
    package var counts: CountsResult
    /// Whether the audience is stored completely. Otherwise the counts are of a part of it.
    package var frozen: Bool
    package var problems: [String]
    /// What the stored counts were compared with: `deliveries`, each counted, or `summary` if these were pruned.
    package var compared: String
    /// ISO 8601, UTC; absent if nothing was pruned.
    package var prunedAt: String?

    package init(_ run: Run, _ check: SumCheck) {
        self.run = run.id
        closes = check.closes
        counts = CountsResult(check.recounted)
        frozen = run.isFrozen
        problems = check.problems
        compared = check.prunedAt == nil ? "deliveries" : "summary"
        prunedAt = check.prunedAt?.iso8601
    }
}

extension SumCheck {
    /// Whether there are no problems, the counts balance, and the stored counts equal the recounted ones.
    package var closes: Bool { problems.isEmpty && recounted.closes && stored == recounted }
}

/// A delivery of a run as a line of CSV, for analysts. The values are unchanged, except for the character that
/// ``CSVLine`` puts before a formula.
package struct OutcomeLine: Sendable {
    package static let columns = [
        "device", "installation_id", "token", "environment", "locale", "state", "status", "reason", "attempts",
        "settled_at", "apns_id", "text_locale", "app_version", "variant", "doubts",
    ]

    private let run: Run
    private let namespace: (high: UInt64, low: UInt64)

    package init(run: Run, namespace: (high: UInt64, low: UInt64)) {
        self.run = run
        self.namespace = namespace
    }

    private func textLocale(_ row: OutcomeRow) -> String {
        let locales = run.definition.template(ofVariant: row.variant).locales
        guard let index = row.localeIndex, locales.indices.contains(index) else { return "" }
        return locales[index].description
    }

    private func variant(_ row: OutcomeRow) -> String {
        let variants = run.definition.campaign.variants
        guard let index = row.variant, variants.indices.contains(index) else { return "" }
        return variants[index].name
    }

    package func line(_ row: OutcomeRow) -> String {
        let wasSent = row.attempts > 0
        return CSVLine.text([
            "\(row.device)", row.installationID ?? "", row.tokenEnd ?? "", row.environment.rawValue, row.locale ?? "",
            row.state.name, row.status > 0 ? "\(row.status)" : "", row.reason ?? "", "\(row.attempts)",
            row.settledAt?.iso8601 ?? "",
            wasSent
                ? DeliveryID.text(namespace: namespace, run: run.id, device: row.device, generation: row.generation)
                : "",
            textLocale(row), row.appVersion ?? "", variant(row), "\(row.doubts)",
        ]) + "\n"
    }
}

/// The stable shape of `report --format json` and `run --json`; keys are written in snake_case.
package struct ReportResult: Codable, Hashable, Sendable {
    package struct Reason: Codable, Hashable, Sendable {
        /// The HTTP status; absent if there was no response.
        package var status: Int?
        package var reason: String
        package var count: Int

        package init(_ reason: Report.Reason) {
            status = reason.status > 0 ? reason.status : nil
            self.reason = reason.reason
            count = reason.count
        }
    }

    package struct Slice: Codable, Hashable, Sendable {
        package var name: String
        package var counts: CountsResult

        package init(_ slice: Report.Slice) {
            name = slice.name
            counts = CountsResult(slice.counts)
        }
    }

    package var run: Int64
    package var campaign: String
    package var occurrence: String
    package var state: String
    package var stateReason: String?
    /// As in ``RunResult``.
    package var halt: String?
    /// ISO 8601, UTC.
    package var createdAt: String
    package var startedAt: String?
    package var finishedAt: String?
    /// Whether the audience is stored completely. Otherwise the counts are of a part of it.
    package var frozen: Bool
    package var attempts: Int
    package var counts: CountsResult
    package var rejected: [Reason]
    package var unknown: [Reason]
    package var suppressed: [Reason]
    package var byEnvironment: [Slice]
    /// By the locale of the rendered text. The row `not rendered` has the other deliveries.
    package var byLocale: [Slice]
    /// By the app version of the devices when the audience was frozen. Empty if an earlier version summarized the run.
    package var byAppVersion: [Slice]
    package var byZone: [Slice]
    package var byCountry: [Slice]
    /// By the start of each wave, ISO 8601 and UTC; empty in a run that does not follow each device's clock.
    package var byWave: [Slice]
    /// By stage, from 1; empty in a run without stages.
    package var byStage: [Slice]
    /// Empty in a campaign without variants. The holdout is no variant.
    package var byVariant: [Slice]
    /// Absent in a run without stages.
    package var stages: [StageResult]?
    /// The run that this run corrects; absent if it corrects none.
    package var corrects: CorrectionResult?
    /// The runs that correct this run; absent if there are none.
    package var correctedBy: [Int64]?
    /// Those of `corrected_by` that remove the notification instead of replacing it; absent if there are none.
    package var recalledBy: [Int64]?
    /// Absent if the run had the approvals that it needed, or needed none.
    package var brokenGlass: EmergencyOverrideResult?
    /// Whether the run was sent to one device by hand.
    package var test: Bool
    /// Deliveries accepted after an attempt without a response: APNs may have accepted them twice.
    package var possibleDuplicates: Int
    /// Deliveries that ended rejected or suppressed after an attempt without a response: APNs may have accepted that
    /// attempt. Absent if an earlier version summarized the run.
    package var mayHaveArrived: Int?
    package var devicesGone: Int
    package var devicesSuspended: Int
    /// Present if the run has just ended and nothing was sent. Absent otherwise, and in `report`.
    package var nobodyReached: EmptyReach?
    /// What people did. Absent for a campaign without `feedback` and `conversion`.
    package var feedback: FeedbackReport?

    package init(_ report: Report, nobodyReached: EmptyReach? = nil) {
        self.nobodyReached = nobodyReached
        run = report.run.id
        campaign = report.run.campaign
        occurrence = report.run.occurrence
        state = report.run.state.rawValue
        stateReason = report.run.stateReason
        halt = report.run.halt?.rawValue
        createdAt = report.run.createdAt.iso8601
        startedAt = report.run.startedAt?.iso8601
        finishedAt = report.run.finishedAt?.iso8601
        frozen = report.run.isFrozen
        attempts = report.attempts
        counts = CountsResult(report.counts)
        rejected = report.rejected.map(Reason.init)
        unknown = report.unknown.map(Reason.init)
        suppressed = report.suppressed.map(Reason.init)
        byEnvironment = report.byEnvironment.map(Slice.init)
        byLocale = report.byLocale.map(Slice.init)
        byAppVersion = report.byAppVersion.map(Slice.init)
        byZone = report.byZone.map(Slice.init)
        byCountry = report.byCountry.map(Slice.init)
        byWave = report.byWave.map(Slice.init)
        byStage = report.byStage.map(Slice.init)
        byVariant = report.byVariant.map(Slice.init)
        stages = StageResult.all(report.run, report.stages)
        corrects = CorrectionResult(report.run)
        correctedBy = report.correctedBy.isEmpty ? nil : report.correctedBy
        recalledBy = report.recalledBy.isEmpty ? nil : report.recalledBy
        brokenGlass = report.emergencyOverride.map(EmergencyOverrideResult.init)
        test = report.run.isTest
        possibleDuplicates = report.possibleDuplicates
        mayHaveArrived = report.mayHaveArrived
        devicesGone = report.devicesGone
        devicesSuspended = report.devicesSuspended
    }
}
