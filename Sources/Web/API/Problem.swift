import Campaigns
import Hummingbird
import Model

/// The reason why a request failed (RFC 9457), with the messages of the command line.
struct Problem: Error, Codable, Sendable {
    /// A part of the request that is wrong, and the reason.
    struct Place: Codable, Hashable, Sendable {
        /// A JSON pointer into the body (RFC 6901).
        var pointer: String?
        /// The name of a parameter in the address, or of a header.
        var parameter: String?
        var detail: String
    }

    var type: String
    var title: String
    var status: Int
    var detail: String
    var errors: [Place]?
    /// The number of seconds after which the client may retry. The header `Retry-After` contains it, too.
    var retryAfter: Int?

    /// - Parameter name: the last part of the type, for programs.
    init(
        _ status: Int, _ name: String, _ title: String, _ detail: String, errors: [Place]? = nil, retryAfter: Int? = nil
    ) {
        type = "urn:fanfare:problem:\(name)"
        self.title = title
        self.status = status
        self.detail = detail
        self.errors = errors
        self.retryAfter = retryAfter
    }

    /// Creates the problem for any error of a use case. For an internal error, it does not reveal the cause.
    init(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let error as HTTPError: self.init(http: error)
        case let refusal as FileRefusal: self.init(refusal)
        case let changed as RunChanged:
            self.init(412, "changed_meanwhile", "Changed meanwhile", changed.description)
        case SegmentRefusal.changedMeanwhile, SegmentRefusal.gone:
            self.init(412, "changed_meanwhile", "Changed meanwhile", "\(error)")
        case let limit as TooManyTests:
            self.init(
                429, "too_many_tests", "Too many tests", limit.description, retryAfter: limit.seconds)
        default:
            self =
                Failure(error).map { Problem($0) }
                ?? Problem(500, "internal", "Internal error", "see the log")
        }
    }

    /// Creates the problem for one caller. If the caller is confined to one app, the problem suggests no segment, which
    /// may be another app's. Only an administrator of all apps gets the database's message.
    init(_ error: any Error, for caller: Caller?) {
        self.init(caller?.topic == nil ? error : ManageSegments.withoutSuggestion(error))
        // A person has buttons and pages where a program has commands.
        if let caller, caller.proof != .token { detail = detail.onPage }
        guard caller?.role != .admin || caller?.topic != nil, UseCases.quotesDatabase(error) else { return }
        detail = Self.ofDatabase
    }

    /// Returns the problem of a refusal, which the page shows beside its form. Throws any other error.
    static func refusal(_ error: any Error, for caller: Caller?) throws -> Problem {
        let problem = Problem(error, for: caller)
        guard problem.status < 500 || problem.status == 503 else { throw error }
        return problem
    }

    /// Returns the problem of an error that has a message for a person. Throws any other error.
    static func explained(_ error: any Error, for caller: Caller?) throws -> Problem {
        let problem = Problem(error, for: caller)
        guard problem.status < 500 || Failure(error) != nil else { throw error }
        return problem
    }

    static let ofDatabase = "the store cannot do this now; ask an admin to check the log for the reason"

    init(_ failure: Failure) {
        let (status, name, title) = Self.kind(failure.kind)
        self.init(
            status, name, title, failure.messages.joined(separator: "\n"),
            retryAfter: failure.kind == .tryAgain ? 5 : nil)
    }

    /// Creates the problem for a file that was not saved.
    init(_ refusal: FileRefusal) {
        let summary = refusal.description
        switch refusal {
        case .editingIsOff: self = .forbidden(summary)
        case .unconditional: self.init(428, "precondition_required", "Missing If-Match or If-None-Match", summary)
        case .changedMeanwhile: self.init(412, "changed_meanwhile", "Changed meanwhile", summary)
        case .wrong(let diagnostics):
            self.init(
                422, "invalid", "Invalid file or data", summary,
                errors: ProblemList(diagnostics.lazy.map { Place(detail: $0.description) }).places)
        case .tooLarge: self = .tooLarge(summary)
        case .used: self.init(409, "refused", "Refused by a guard", summary)
        case .taken, .noText, .unsuitable: self = .invalid([Place(detail: summary)])
        }
    }

    private init(http error: HTTPError) {
        let summary = error.body ?? "the server cannot handle this request"
        switch error.status {
        case .notFound: self = .notFound("this address does not exist; /api/v1/openapi.json lists all addresses")
        case .contentTooLarge: self = .tooLarge(summary)
        default: self.init(error.status.code, "bad_request", error.status.reasonPhrase, summary)
        }
    }

    private static func kind(_ kind: Failure.Kind) -> (Int, String, String) {
        switch kind {
        case .refused: (409, "refused", "Refused by a guard")
        case .invalidData: (422, "invalid", "Invalid file or data")
        case .unusableStore: (500, "store", "The store cannot be used")
        case .notFound: (404, "not_found", "Not found")
        case .unavailable: (503, "unreachable", "APNs cannot be reached")
        case .halted: (409, "halted", "A person must decide")
        case .tryAgain: (503, "busy", "Busy, or stopped early")
        case .runNotOver: (409, "refused", "Refused by a guard")
        case .credentialRefused: (503, "credential", "APNs refuses the credential")
        case .cannotMake: (500, "cannot_make", "A file cannot be created")
        case .inputOutput: (500, "input_output", "A disk or file system failed")
        case .configuration: (500, "configuration", "The configuration is wrong")
        case .internalError: (500, "internal", "Internal error")
        }
    }

    static func notFound(_ detail: String) -> Problem { Problem(404, "not_found", "Not found", detail) }

    static func tooLarge(_ detail: String) -> Problem { Problem(413, "too_large", "Too large", detail) }

    static func invalid(_ errors: [Place]) -> Problem { invalid(ProblemList(errors)) }

    static func invalid(_ list: ProblemList) -> Problem {
        let errors = list.places
        return Problem(
            422, "invalid", "Invalid file or data", errors.map(\.detail).joined(separator: "\n"), errors: errors)
    }

    static func invalid(parameter: String, _ detail: String) -> Problem {
        .invalid([Place(parameter: parameter, detail: detail)])
    }

    static func unauthorized(_ detail: String) -> Problem {
        Problem(401, "unauthorized", "Not signed in", detail)
    }

    static func forbidden(_ detail: String) -> Problem { Problem(403, "forbidden", "Not allowed", detail) }

    static func busy(_ detail: String) -> Problem {
        Problem(503, "busy", "Busy, or stopped early", detail, retryAfter: 2)
    }

    func response() throws -> Response {
        var headers: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
        if let retryAfter { headers[.retryAfter] = "\(retryAfter)" }
        if status == 401 { headers[.wwwAuthenticate] = "Bearer realm=\"fanfare\"" }
        return Response(
            status: .init(code: status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: try ResultJSON.text(self) + "\n")))
    }
}
