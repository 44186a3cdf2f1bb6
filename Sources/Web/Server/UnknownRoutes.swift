import HTTPTypes
import Hummingbird

/// Returns 405 with the allowed methods if the path has other methods, and 404 if the path does not exist. A browser
/// that opens the address of a form gets the nearest page above it.
struct UnknownRoutes: RouterMiddleware {
    /// All routes, with `{name}` for parameters.
    let routes: [(method: HTTPRequest.Method, path: String)]
    /// Returns the page that browsers show instead. `nil` if the server has no pages.
    let page: (@Sendable (Request, WebContext) async throws -> Response)?

    func handle(
        _ request: Request, context: WebContext, next: (Request, WebContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as HTTPError where error.status == .notFound {
            let methods = methods(for: request.uri.path)
            let isAPI = request.uri.path.hasPrefix(Operation.prefix)
            guard methods.isEmpty else {
                let allowed = methods.joined(separator: ", ")
                var response: Response
                if isAPI {
                    response = try Problem(
                        405, "method_not_allowed", "Method not allowed", "this address allows \(allowed)"
                    ).response()
                } else if let page, Self.isBrowser(request) {
                    // The answer to a form stands under the form's address, which has no page of its own.
                    if request.method == .get { return PageRequest.seeOther(pageAbove(request.uri.path)) }
                    response = try await page(request, context)
                } else {
                    response = .text("\(allowed) only\n", .methodNotAllowed)
                }
                response.status = .methodNotAllowed
                response.headers[.allow] = allowed
                return response
            }
            if isAPI { return try Problem(error).response() }
            if let page, Self.isBrowser(request) { return try await page(request, context) }
            return .text("\(request.uri.path) does not exist\n", .notFound)
        }
    }

    /// Returns whether the client asks for a page that a person reads.
    private static func isBrowser(_ request: Request) -> Bool {
        request.headers[.accept]?.contains("text/html") ?? false
    }

    /// Returns the path of the nearest page above a path.
    private func pageAbove(_ path: String) -> String {
        var parts = path.split(separator: "/").dropLast()
        while !parts.isEmpty, !methods(for: parts.joined(separator: "/")).contains("GET") { parts.removeLast() }
        return "/" + parts.joined(separator: "/")
    }

    private func methods(for path: String) -> [String] {
        let parts = path.split(separator: "/")
        let found = routes.filter { route in
            let pattern = route.path.split(separator: "/")
            return pattern.count == parts.count
                && zip(pattern, parts).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }.map(\.method.rawValue)
        let all = found.contains("GET") ? found + ["HEAD"] : found
        return Set(all).sorted()
    }
}

extension Response {
    static func text(
        _ text: String, _ status: HTTPResponse.Status = .ok, type: String = "text/plain; charset=utf-8"
    ) -> Response {
        Response(
            status: status, headers: [.contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}
