import Campaigns
import HTTPTypes
import Hummingbird
import Model

/// One thing that can be asked of the API: where, by whom, what goes in and what comes out. The routes, the table of roles
/// and the OpenAPI document are made of these, so that none can say what another does not.
struct Operation: Sendable {
    struct Parameter: Hashable, Sendable {
        enum Place: String, Hashable, Sendable {
            case path, query, header
        }

        var name: String
        var place = Place.query
        var isRequired = false
        var shape = Shape.string
        /// The words it may be; none: any.
        var words: [String] = []
        var about: String

        static func path(_ name: String, _ about: String, _ shape: Shape = .string) -> Parameter {
            Parameter(name: name, place: .path, isRequired: true, shape: shape, about: about)
        }

        static func query(_ name: String, _ about: String, _ shape: Shape = .string, words: [String] = []) -> Parameter
        {
            Parameter(name: name, shape: shape, words: words, about: about)
        }

        static func required(_ name: String, _ about: String, _ shape: Shape = .string) -> Parameter {
            Parameter(name: name, isRequired: true, shape: shape, about: about)
        }

        static func header(_ name: String, _ about: String, words: [String] = []) -> Parameter {
            Parameter(name: name, place: .header, words: words, about: about)
        }

        /// Of a list.
        static let limit = query("limit", "How many at most, 1 to 500; 50 if not given.", .integer)
        static let cursor = query("cursor", "Where the last page ended: its `next`.")
    }

    /// What a body is: one JSON value, or many lines of one each.
    enum Content: Sendable {
        case json(any (Decodable & Sendable).Type)
        case jsonLines(any (Decodable & Sendable).Type)
        case text(String)
    }

    struct Answer: Sendable {
        var status: HTTPResponse.Status
        var about: String
        var content: Content?
        /// As CSV, too, for who asks for it.
        var isTable: Bool

        init(_ status: HTTPResponse.Status, _ about: String, _ content: Content? = nil, orTable isTable: Bool = false) {
            self.status = status
            self.about = about
            self.content = content
            self.isTable = isTable
        }
    }

    var method: HTTPRequest.Method
    /// Under `/api/v1`, with `{name}` for parameters.
    var path: String
    /// `listRuns`: its name in the document.
    var id: String
    /// The part of the document it stands in.
    var subject: String
    var about: String
    var permission: AccessRole.Permission
    var parameters: [Parameter] = []
    var body: Content?
    /// False: it may be left out.
    var needsBody = true
    var answers: [Answer]
    /// Statuses of problems it may answer with, besides those that every operation may.
    var problems: [HTTPResponse.Status] = []
    /// Whether it reads texts of campaign or template files, or segments: it runs on ``TextThreads``.
    var readsTexts = false
    var handle: @Sendable (APIRequest) async throws -> Response

    static let prefix = "/api/v1"

    /// Whether it may alter anything, by what its callers must be allowed to do.
    var isChange: Bool { ![.read, .plan].contains(permission) }

    /// As the router wants it: parameters by their places, since it knows one name for each place, whatever follows.
    var routerPath: RouterPath {
        let parts = path.split(separator: "/").enumerated().map { index, part in
            part.hasPrefix("{") ? "{\(Self.place(index))}" : String(part)
        }
        return RouterPath(([Self.prefix] + parts).joined(separator: "/"))
    }

    /// What the router calls the parameter of this name.
    func place(of parameter: String) -> String {
        Self.place(path.split(separator: "/").firstIndex { $0 == "{\(parameter)}" } ?? -1)
    }

    private static func place(_ index: Int) -> String { "at\(index)" }
}

extension Operation {
    /// The same operation, which reads texts.
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
    /// A result as `--json` has it.
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

/// One page of a list, and where the next one begins.
struct ListPage<Item: Codable & Sendable>: Codable, Sendable {
    var items: [Item]
    /// For `cursor`; absent: this was the last page.
    var next: String?
}
