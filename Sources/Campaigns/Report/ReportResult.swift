package import Model

/// The stable shape of `report --format json` and `run --json`; keys are written in snake_case.
package struct ReportResult: Codable, Hashable, Sendable {
    package struct Reason: Codable, Hashable, Sendable {
        /// The HTTP status; absent where there was no answer.
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
    /// ISO 8601, UTC.
    package var createdAt: String
    package var startedAt: String?
    package var finishedAt: String?
    package var attempts: Int
    package var counts: CountsResult
    package var rejected: [Reason]
    package var unknown: [Reason]
    package var suppressed: [Reason]
    package var byEnvironment: [Slice]
    package var byLocale: [Slice]
    /// Empty in a campaign without variants; the holdout is none of them.
    package var byVariant: [Slice]
    /// Sent to one device by hand.
    package var test: Bool
    /// Accepted after an attempt that stayed without an answer: APNs may have had them twice.
    package var possibleDuplicates: Int
    package var devicesGone: Int
    package var devicesSuspended: Int

    package init(_ report: Report) {
        run = report.run.id
        campaign = report.run.campaign
        occurrence = report.run.occurrence
        state = report.run.state.rawValue
        stateReason = report.run.stateReason
        createdAt = report.run.createdAt.iso8601
        startedAt = report.run.startedAt?.iso8601
        finishedAt = report.run.finishedAt?.iso8601
        attempts = report.attempts
        counts = CountsResult(report.counts)
        rejected = report.rejected.map(Reason.init)
        unknown = report.unknown.map(Reason.init)
        suppressed = report.suppressed.map(Reason.init)
        byEnvironment = report.byEnvironment.map(Slice.init)
        byLocale = report.byLocale.map(Slice.init)
        byVariant = report.byVariant.map(Slice.init)
        test = report.run.isTest
        possibleDuplicates = report.possibleDuplicates
        devicesGone = report.devicesGone
        devicesSuspended = report.devicesSuspended
    }
}
