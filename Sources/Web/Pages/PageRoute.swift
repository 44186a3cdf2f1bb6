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
    var handle: @Sendable (PageRequest) async throws -> Response

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

/// A request of somebody at a browser.
struct PageRequest: Sendable {
    /// Of a form.
    static let formBytesMax = 1 << 20

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
        for pair in (request.uri.query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard Self.decoded(parts[0]) == name else { continue }
            return parts.count > 1 && !parts[1].isEmpty ? Self.decoded(parts[1]) : nil
        }
        return nil
    }

    /// The fields of a form, as browsers encode them.
    func form() async throws -> [String: String] {
        let buffer: ByteBuffer
        do {
            buffer = try await request.body.collect(upTo: Self.formBytesMax)
        } catch let error as any HTTPResponseError where error.status == .contentTooLarge {
            throw Problem.tooLarge("the form is larger than \(Self.formBytesMax) bytes")
        }
        var fields: [String: String] = [:]
        for pair in String(buffer: buffer).split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let decoded = parts.map(Self.decoded)
            fields[decoded[0]] = decoded.count > 1 ? decoded[1] : ""
        }
        return fields
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

    /// To a page of ours, after a form was obeyed.
    static func seeOther(_ path: String, cookie: Cookie? = nil) -> Response {
        var response = Response(status: .seeOther, headers: [.location: path, .cacheControl: "no-store"])
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
