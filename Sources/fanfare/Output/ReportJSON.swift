import Model

/// The stable shape of `report --format json` and `run --json`; keys are written in snake_case.
struct ReportJSON: Encodable {
    struct Account: Encodable {
        var audience, pending, leased, accepted, rejected, unknown, suppressed: Int

        init(_ counts: DeliveryCounts) {
            audience = counts.audience
            pending = counts.pending
            leased = counts.leased
            accepted = counts.accepted
            rejected = counts.rejected
            unknown = counts.unknown
            suppressed = counts.suppressed
        }
    }

    struct Reason: Encodable {
        /// The HTTP status; absent where there was no answer.
        var status: Int?
        var reason: String
        var count: Int

        init(_ reason: Report.Reason) {
            status = reason.status > 0 ? reason.status : nil
            self.reason = reason.reason
            count = reason.count
        }
    }

    struct Slice: Encodable {
        var name: String
        var counts: Account

        init(_ slice: Report.Slice) {
            name = slice.name
            counts = Account(slice.counts)
        }
    }

    var run: Int64
    var campaign: String
    var occurrence: String
    var state: String
    var stateReason: String?
    /// ISO 8601, UTC.
    var createdAt: String
    var startedAt: String?
    var finishedAt: String?
    var attempts: Int
    var counts: Account
    var rejected: [Reason]
    var unknown: [Reason]
    var suppressed: [Reason]
    var byEnvironment: [Slice]
    var byLocale: [Slice]
    /// Empty in a campaign without variants; the holdout is none of them.
    var byVariant: [Slice]
    /// Sent to one device by hand.
    var test: Bool
    /// Accepted after an attempt that stayed without an answer: APNs may have had them twice.
    var possibleDuplicates: Int
    var devicesGone: Int
    var devicesSuspended: Int

    init(_ report: Report) {
        run = report.run.id
        campaign = report.run.campaign
        occurrence = report.run.occurrence
        state = report.run.state.rawValue
        stateReason = report.run.stateReason
        createdAt = report.run.createdAt.iso8601
        startedAt = report.run.startedAt?.iso8601
        finishedAt = report.run.finishedAt?.iso8601
        attempts = report.attempts
        counts = Account(report.counts)
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
