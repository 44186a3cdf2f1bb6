import Foundation
import HTTPTypes
import Hummingbird
import Model

/// One page, or one form of a page: where, for whom, and what it shows.
struct PageRoute: Sendable {
    var method: HTTPRequest.Method
    /// With `{name}` for parameters.
    var path: String
    /// Nil: anybody, who is signed in or not.
    var permission: AccessRole.Permission?
    /// Whether it reads texts of campaign or template files, or segments: it runs on ``TextThreads``.
    var readsTexts = false
    var handle: @Sendable (PageRequest) async throws -> Response

    /// Whether it may alter anything.
    var isChange: Bool { method != .get && permission != .plan && permission != .read }

    /// Not a part that a script asks for again and again.
    var isWhole: Bool { !["/live", "/state", "/charts"].contains { path.hasSuffix($0) } }

    static func get(
        _ path: String, _ permission: AccessRole.Permission? = .read,
        _ handle: @escaping @Sendable (PageRequest) async throws -> Response
    ) -> PageRoute {
        PageRoute(method: .get, path: path, permission: permission, handle: handle)
    }

    /// A form, which comes from one of our own pages alone.
    static func post(
        _ path: String, _ permission: AccessRole.Permission?,
        _ handle: @escaping @Sendable (PageRequest) async throws -> Response
    ) -> PageRoute {
        PageRoute(method: .post, path: path, permission: permission, handle: handle)
    }
}

extension PageRoute {
    /// The same page, which reads texts.
    var readingTexts: PageRoute {
        var page = self
        page.readsTexts = true
        return page
    }

    static func readingTexts(_ pages: [PageRoute]) -> [PageRoute] { pages.map(\.readingTexts) }
}

/// A request of somebody at a browser.
struct PageRequest: Sendable {
    /// Of a form.
    static let formBytesMax = 1 << 20
    /// Of a page to go on with.
    private static let addressBytesMax = 8192

    let request: Request
    let context: WebContext
    /// Nil: nobody is signed in; then the page is for anybody.
    let visitor: Caller?
    /// Those in force.
    let stops: [StopBanner]

    /// Who is signed in, where the page asks for somebody.
    var caller: Caller { get throws { try visitor.orThrow(Problem.unauthorized("sign in first")) } }

    func path(_ name: String) -> String {
        let text = context.parameters.get(name) ?? ""
        return text.removingPercentEncoding ?? text
    }

    func number(_ name: String, of what: String) throws -> Int64 {
        guard let number = Int64(path(name)) else { throw Problem.notFound("no \(what) \(path(name))") }
        return number
    }

    /// Of the address; empty and absent are the same, as forms send them.
    func query(_ name: String) -> String? {
        let value = Self.pairs(request.uri.query ?? "").first { $0.name == name }?.value ?? ""
        return value.isEmpty ? nil : value
    }

    /// The fields of a form, as browsers encode them.
    func form() async throws -> [String: String] {
        let buffer: ByteBuffer
        do {
            buffer = try await request.body.collect(upTo: Self.formBytesMax)
        } catch let error as any HTTPResponseError where error.status == .contentTooLarge {
            throw Problem.tooLarge("the form is larger than \(Self.formBytesMax) bytes")
        }
        return Dictionary(Self.pairs(String(buffer: buffer)).map { ($0.name, $0.value) }) { _, last in last }
    }

    /// Names and values as addresses and forms encode them; a name without a value has an empty one.
    static func pairs(_ text: String) -> [(name: String, value: String)] {
        text.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(decoded)
            return (parts[0], parts.count > 1 ? parts[1] : "")
        }
    }

    /// Returns the address if every browser reads it as one of this server: a path of visible ASCII, as percent-encoded
    /// addresses are, without `\`, and with one slash in front. Browsers leave out tabs and line ends, and take `\` for
    /// `/`, before they look for a host.
    static func ownAddress(_ address: String) -> String? {
        let bytes = Array(address.utf8.prefix(addressBytesMax + 1))
        guard bytes.first == UInt8(ascii: "/"), bytes.count <= addressBytesMax,
            bytes.count == 1 || bytes[1] != UInt8(ascii: "/"),
            bytes.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") })
        else { return nil }
        return address
    }

    /// As forms encode: a blank is a plus sign.
    private static func decoded(_ text: some StringProtocol) -> String {
        let text = text.replacingOccurrences(of: "+", with: " ")
        return text.removingPercentEncoding ?? text
    }

    /// A whole page.
    func page(
        _ template: PageTemplate, title: String, _ content: some Sendable, status: HTTPResponse.Status = .ok,
        headers: HTTPFields = [:]
    ) throws -> Response {
        try PageRenderer.response(
            template, title: title, content, visitor: visitor, stops: stops, path: request.uri.path,
            status: status, headers: headers)
    }

    /// Sends a browser to a page of this server after a form was obeyed. All redirects are made here: an address that may
    /// lead elsewhere becomes the first page.
    static func seeOther(_ address: String, cookie: Cookie? = nil) -> Response {
        let address = ownAddress(address) ?? "/"
        var response = Response(status: .seeOther, headers: [.location: address, .cacheControl: "no-store"])
        if let cookie { response.setCookie(cookie) }
        return response
    }
}

extension Optional {
    /// The value, or the error that says what its absence means.
    func orThrow(_ error: @autoclosure () -> any Error) throws -> Wrapped {
        guard let self else { throw error() }
        return self
    }
}
