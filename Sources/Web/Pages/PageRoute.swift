import Foundation
import HTTPTypes
import Hummingbird
import Model
import Synchronization

/// A page or a form: its method, its path, its permission and its handler.
struct PageRoute: Sendable {
    var method: HTTPRequest.Method
    /// The path, with `{name}` for parameters.
    var path: String
    /// The permission that the page needs. `nil` if visitors may use it without signing in.
    var permission: AccessRole.Permission?
    /// Whether the route reads the texts of campaign files or template files, or segments. Such a route runs on
    /// ``TextThreads``.
    var readsTexts = false
    var handle: @Sendable (PageRequest) async throws -> Response

    /// Whether the route may change stored data, according to its method and its permission.
    var isChange: Bool { method != .get && permission != .plan && permission != .read }

    /// Whether the route is a whole page. A script requests the other routes repeatedly for a part of a page.
    var isWhole: Bool { !["/live", "/state"].contains { path.hasSuffix($0) } }

    static func get(
        _ path: String, _ permission: AccessRole.Permission? = .read,
        _ handle: @escaping @Sendable (PageRequest) async throws -> Response
    ) -> PageRoute {
        PageRoute(method: .get, path: path, permission: permission, handle: handle)
    }

    /// Returns the route of a form, which only this server's own pages send.
    static func post(
        _ path: String, _ permission: AccessRole.Permission?,
        _ handle: @escaping @Sendable (PageRequest) async throws -> Response
    ) -> PageRoute {
        PageRoute(method: .post, path: path, permission: permission, handle: handle)
    }
}

extension PageRoute {
    /// The same route, marked as one that reads texts.
    var readingTexts: PageRoute {
        var page = self
        page.readsTexts = true
        return page
    }

    static func readingTexts(_ pages: [PageRoute]) -> [PageRoute] { pages.map(\.readingTexts) }
}

/// A request from a person's browser.
struct PageRequest: Sendable {
    /// The maximum size of a form, in bytes.
    static let formBytesMax = 1 << 20
    /// The maximum size of the address of the next page, in bytes.
    static let addressBytesMax = 8192

    /// The name of a button in a form without a required field.
    static let button = "do"

    let request: Request
    let context: WebContext
    let frame: PageFrame
    /// Returns whether the visitor has the same rights as at the start of the request.
    var isStill: @Sendable () async throws -> Bool = { true }
    private let reading = FormReading()

    /// The visitor. `nil` if no person is signed in, which only pages without a permission allow.
    var visitor: Caller? { frame.visitor }

    /// The signed-in visitor. Throws if no person is signed in.
    var caller: Caller { get throws { try visitor.orThrow(Problem.unauthorized("sign in first")) } }

    func path(_ name: String) -> String {
        let text = context.parameters.get(name) ?? ""
        return text.removingPercentEncoding ?? text
    }

    func number(_ name: String, of what: String) throws -> Int64 {
        guard let number = Int64(path(name)) else { throw Problem.notFound("no \(what) \(path(name))") }
        return number
    }

    /// Returns a query parameter, or `nil` if it is empty or absent. Forms send an empty field as an empty parameter.
    func query(_ name: String) -> String? {
        let value = Self.pairs(request.uri.query ?? "").first { $0.name == name }?.value ?? ""
        return value.isEmpty ? nil : value
    }

    /// Returns all query parameters. Of several with one name, the last counts.
    var queryFields: [String: String] {
        Dictionary(Self.pairs(request.uri.query ?? "").map { ($0.name, $0.value) }) { _, last in last }
    }

    /// Returns the fields of a form, also when they are asked for again. Throws 413 if the form is too large.
    func form() async throws -> [String: String] {
        if let fields = reading.fields { return fields }
        let buffer: ByteBuffer
        do {
            buffer = try await request.body.collect(upTo: Self.formBytesMax)
        } catch let error as any HTTPResponseError where error.status == .contentTooLarge {
            throw Problem.tooLarge("the form is larger than \(Self.formBytesMax) bytes")
        }
        try await requireStill()
        let fields = Dictionary(Self.pairs(String(buffer: buffer)).map { ($0.name, $0.value) }) { _, last in last }
        reading.fields = fields
        return fields
    }

    /// Throws unless the visitor has the same rights as at the start of the request, see ``Caller/requireStill(_:)``.
    func requireStill() async throws { try await visitor?.requireStill(isStill) }

    /// Throws for a form without any value. Every form of the pages has a required field, or its button has a name, so
    /// only another program sends such a form. A form with a file is checked when the file is read.
    func requireField() async throws {
        if request.headers[.contentType]?.lowercased().hasPrefix("multipart/") ?? false { return }
        let isBlank = try await form().values.allSatisfy { $0.allSatisfy(\.isWhitespace) }
        guard isBlank else { return }
        throw Problem.invalid([
            .init(
                parameter: Self.button,
                detail: "the form is empty: the field `\(Self.button)` of its button is missing; reload the page, and "
                    + "press the button again")
        ])
    }

    /// Returns the query of an address with these fields.
    static func query(_ fields: [(name: String, value: String)]) -> String {
        fields.map { "\($0.name.inAddress)=\($0.value.inAddress)" }.joined(separator: "&")
    }

    /// Returns the decoded names and values of an address's query or of a form. A name without `=` has an empty value.
    static func pairs(_ text: String) -> [(name: String, value: String)] {
        text.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(decoded)
            return (parts[0], parts.count > 1 ? parts[1] : "")
        }
    }

    /// Returns the address if every browser reads it as an address of this server, or `nil` if not. Such an address is
    /// a path of visible ASCII that begins with exactly one slash and contains no `\`. Browsers drop tabs and line
    /// ends, and read `\` as `/`, before they look for a host.
    static func ownAddress(_ address: String) -> String? {
        let bytes = Array(address.utf8.prefix(addressBytesMax + 1))
        guard bytes.first == UInt8(ascii: "/"), bytes.count <= addressBytesMax,
            bytes.count == 1 || bytes[1] != UInt8(ascii: "/"),
            bytes.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") })
        else { return nil }
        return address
    }

    /// Decodes the encoding of forms, in which a plus sign stands for a space.
    private static func decoded(_ text: some StringProtocol) -> String {
        let text = text.replacingOccurrences(of: "+", with: " ")
        return text.removingPercentEncoding ?? text
    }

    /// Returns a whole page.
    func page(
        _ template: PageTemplate, title: String, _ content: some Sendable, status: HTTPResponse.Status = .ok,
        headers: HTTPFields = [:]
    ) throws -> Response {
        try PageRenderer.response(
            template, title: title, content, in: frame, path: request.uri.path, status: status, headers: headers)
    }

    /// The page of this server that sent the form. `nil` if the browser does not say.
    var referringPage: String? {
        guard let page = request.headers[.referer], let host = request.head.authority,
            let place = page.place(of: "://\(host)/")
        else { return nil }
        return Self.ownAddress(String(page[page.index(before: place.upperBound)...]))
    }

    /// Redirects a browser to a page of this server, usually after a form. All redirects use this method. An address
    /// that may lead to another server is replaced by the first page.
    static func seeOther(_ address: String, cookie: Cookie? = nil) -> Response {
        redirect(.seeOther, address, cookie)
    }

    /// Makes a browser send the same form to another page of this server.
    static func seeAgain(_ address: String, cookie: Cookie) -> Response {
        redirect(.temporaryRedirect, address, cookie)
    }

    /// Redirects a browser to a page of this server. All redirects use this method. An address that may lead elsewhere
    /// becomes the first page.
    private static func redirect(_ status: HTTPResponse.Status, _ address: String, _ cookie: Cookie?) -> Response {
        let address = ownAddress(address) ?? "/"
        var response = Response(status: status, headers: [.location: address, .cacheControl: "no-store"])
        if let cookie { response.setCookie(cookie) }
        return response
    }
}

extension Optional {
    /// Returns the value, or throws the error that explains its absence.
    func orThrow(_ error: @autoclosure () -> any Error) throws -> Wrapped {
        guard let self else { throw error() }
        return self
    }
}

/// The fields of a request's form once they are read. The body of a request can be read only once: a second reader
/// would end the process.
private final class FormReading: Sendable {
    private let kept = Mutex<[String: String]?>(nil)

    var fields: [String: String]? {
        get { kept.withLock { $0 } }
        set { kept.withLock { $0 = newValue } }
    }
}
