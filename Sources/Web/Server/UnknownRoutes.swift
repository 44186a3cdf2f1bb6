import HTTPTypes
import Hummingbird

/// Returns 405 with the allowed methods if the path has other methods, and 404 if the path does not exist.
struct UnknownRoutes: RouterMiddleware {
    /// All routes, with `{name}` for parameters.
    let routes: [(method: HTTPRequest.Method, path: String)]

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
                var response =
                    isAPI
                    ? try Problem(405, "method_not_allowed", "Method not allowed", "this address allows \(allowed)")
                        .response()
                    : .text("\(allowed) only\n", .methodNotAllowed)
                response.headers[.allow] = allowed
                return response
            }
            guard isAPI else { return .text("\(request.uri.path) does not exist\n", .notFound) }
            return try Problem(error).response()
        }
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
