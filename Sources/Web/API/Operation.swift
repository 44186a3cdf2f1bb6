import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// One operation of the API: its route, its permission, its input and its responses. The routes and the OpenAPI
/// document are built from the operations, so that they never contradict each other.
struct Operation: Sendable {
    struct Parameter: Hashable, Sendable {
        enum Place: String, Hashable, Sendable {
            case path, query, header
        }

        var name: String
        var place = Place.query
        var isRequired = false
        var shape = Shape.string
        /// The allowed words. Empty if every text is allowed.
        var allowed: [String] = []
        var about: String

        static func path(_ name: String, _ about: String, _ shape: Shape = .string) -> Parameter {
            Parameter(name: name, place: .path, isRequired: true, shape: shape, about: about)
        }

        static func query(_ name: String, _ about: String, _ shape: Shape = .string, allowed: [String] = [])
            -> Parameter
        {
            Parameter(name: name, shape: shape, allowed: allowed, about: about)
        }

        static func required(_ name: String, _ about: String, _ shape: Shape = .string) -> Parameter {
            Parameter(name: name, isRequired: true, shape: shape, about: about)
        }

        static func header(_ name: String, _ about: String, allowed: [String] = []) -> Parameter {
            Parameter(name: name, place: .header, allowed: allowed, about: about)
        }

        /// The page size of a list.
        static let limit = query("limit", "The maximum number of entries, 1 to 500 (default: 50).", .integer)
        static let cursor = query("cursor", "The `next` of the previous page.")
    }

    /// The content of a body: one JSON value, one JSON value on each line, or text of a media type.
    enum Content: Sendable {
        case json(any (Decodable & Sendable).Type)
        case jsonLines(any (Decodable & Sendable).Type)
        case text(String)
    }

    struct Answer: Sendable {
        var status: HTTPResponse.Status
        var about: String
        var content: Content?
        /// Whether the client may request CSV instead.
        var isTable: Bool

        init(_ status: HTTPResponse.Status, _ about: String, _ content: Content? = nil, orTable isTable: Bool = false) {
            self.status = status
            self.about = about
            self.content = content
            self.isTable = isTable
        }
    }

    var method: HTTPRequest.Method
    /// The path under `/api/v1`, with `{name}` for parameters.
    var path: String
    /// The `operationId` in the document, such as `listRuns`.
    var id: String
    /// The section of the document (`tags`).
    var subject: String
    var about: String
    var permission: AccessRole.Permission
    var parameters: [Parameter] = []
    var body: Content?
    /// Whether the body is required.
    var needsBody = true
    var answers: [Answer]
    /// The statuses of problems, besides those that every operation may return.
    var problems: [HTTPResponse.Status] = []
    /// Whether the operation reads the texts of campaign files or template files, or segments. Such an operation runs
    /// on ``TextThreads``.
    var readsTexts = false
    var handle: @Sendable (APIRequest) async throws -> Response

    static let prefix = "/api/v1"

    /// Whether the operation may change stored data, according to its permission.
    var isChange: Bool { ![.read, .plan].contains(permission) }

    /// The path for the router. The router allows one parameter name for each position, so parameters are named by
    /// their position.
    var routerPath: RouterPath {
        let parts = path.split(separator: "/").enumerated().map { index, part in
            part.hasPrefix("{") ? "{\(Self.place(index))}" : String(part)
        }
        return RouterPath(([Self.prefix] + parts).joined(separator: "/"))
    }

    /// Returns the router's name for a parameter.
    func place(of parameter: String) -> String {
        Self.place(path.split(separator: "/").firstIndex { $0 == "{\(parameter)}" } ?? -1)
    }

    private static func place(_ index: Int) -> String { "at\(index)" }
}

extension Operation {
    /// The same operation, marked as one that reads texts.
    var readingTexts: Operation {
        var operation = self
        operation.readsTexts = true
        return operation
    }
}

extension [Operation] {
    var readingTexts: [Operation] { map(\.readingTexts) }
}

extension Response {
    /// Returns a response with the same JSON as `--json` prints.
    static func json(
        _ value: some Encodable, _ status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]
    ) throws -> Response {
        var headers = headers
        headers[.contentType] = "application/json"
        headers[.cacheControl] = "no-store"
        return Response(
            status: status, headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: try ResultJSON.text(value) + "\n")))
    }
}

/// One page of a list, and the cursor of the next page.
struct ListPage<Item: Codable & Sendable>: Codable, Sendable {
    var items: [Item]
    /// The value for `cursor`. Absent on the last page.
    var next: String?
}
