import Campaigns
import Hummingbird
import Model

/// The operation by which apps and their backends report what became of pushes.
struct FeedbackOperations: Sendable {
    /// The most reports of an installation in one request. A device that was offline for days has fewer.
    private static let installationReportsMax = 100

    let cases: UseCases
    private let limiter: RateLimiter

    init(cases: UseCases) {
        self.cases = cases
        limiter = RateLimiter(atOnce: 30, secondsEach: 10) { cases.uptime }
    }

    var all: [Operation] { [report] }

    private var report: Operation {
        Operation(
            method: .post, path: "/events", id: "reportEvents", subject: "Feedback",
            about:
                "Records what became of pushes and what people did: at most \(RecordFeedback.reportsMax) reports and "
                + "\(RecordFeedback.bytesMax / 1000) KB, as a JSON array or as JSON Lines, with or without gzip. A report "
                + "about a push has its `ref`, from `fanfare.r` in the payload; the others have `installation_id` and "
                + "`topic`. Name the device by these if a campaign has a holdout: a device that is held out has no `ref`, so "
                + "conversions by `ref` show no effect of the push. A report that is sent twice is counted once. A bad report does not stop the others. Responds when "
                + "the reports are stored. The bearer is a token, or the secret of an installation. An installation "
                + "reports only for itself, and its values of conversions are not kept: at most \(Self.installationReportsMax) reports per request, and 30 requests at once, "
                + "then one every 10 s.",
            permission: .report, body: .json([FeedbackReportBody].self),
            answers: [.init(.ok, "The counts, and each rejected report.", .json(FeedbackResult.self))],
            problems: [
                .badRequest, .contentTooLarge, .unsupportedMediaType, .unprocessableContent, .serviceUnavailable,
            ],
            handle: report)
    }

    @Sendable private func report(_ request: APIRequest) async throws -> Response {
        let reports = try await body(request)
        let result: FeedbackResult
        if case .installation(let installation) = request.caller.proof {
            try limit(installation)
            result = try await cases.feedback.record(
                reports, from: .installation(installation), max: Self.installationReportsMax)
        } else {
            let sees = request.caller.sees
            result = try await cases.feedback.record(reports, from: .backend(sees: { sees($0) }))
        }
        return try .json(result)
    }

    /// Counts a request of an installation. Throws if it sends too many.
    private func limit(_ installation: ReportingInstallation) throws {
        let caller = String(installation.device)
        if let wait = limiter.wait(caller) {
            throw Problem(
                429, "too_many_requests", "Too many requests",
                "this installation sends reports too often; wait \(wait) s, and send several reports per request",
                retryAfter: wait)
        }
        limiter.use(caller)
    }

    private func body(_ request: APIRequest) async throws -> [UInt8] {
        let buffer = try await request.collected(bytesMax: RecordFeedback.bytesMax)
        let bytes = Array(buffer.readableBytesView)
        switch request.request.headers[.contentEncoding]?.lowercased() {
        case nil, "", "identity": return bytes
        case "gzip", "x-gzip":
            switch Gunzip.bytes(bytes, max: RecordFeedback.bytesMax) {
            case .whole(let inflated): return inflated
            case .tooLarge:
                throw Problem.tooLarge("the body is larger than \(RecordFeedback.bytesMax) bytes when it is unpacked")
            case .broken:
                throw Problem(
                    400, "bad_request", "Bad Request", "the body is not gzip, although Content-Encoding says so")
            }
        case let other?:
            throw Problem(
                415, "unsupported_media_type", "Unsupported media type",
                "the Content-Encoding is \(other.shownShort); send gzip or none")
        }
    }
}

/// One report. This type only documents the API, because the rules for files read the body.
struct FeedbackReportBody: Codable, Sendable {
    /// A UUID that the device makes.
    var id: String
    /// `arrived`, `opened`, `action`, `dismissed`, `converted`, `alerts_on`, `alerts_off` or `app_started`.
    var type: String
    /// The reference of the push, from `fanfare.r`. A goal that is compared with a holdout needs `installation_id` and
    /// `topic` in its place.
    var ref: String?
    var installationId: String?
    var topic: String?
    /// The name of an action or a conversion.
    var name: String?
    /// The value of a conversion. Only a token may give one; the value of an installation's report is not kept.
    var value: Double?
    /// When it happened, by the device's clock.
    var at: String?
    /// When the device sends the report, by its clock.
    var sentAt: String?
}
