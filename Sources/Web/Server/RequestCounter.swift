import CoreMetrics
import HTTPTypes
import Hummingbird

/// Counts requests by kind and by the status of the response.
struct RequestCounter: RouterMiddleware {
    private enum Kind: String, CaseIterable {
        case api, page, operations

        init(_ path: String) {
            self =
                path.hasPrefix(Operation.prefix) ? .api : OperationsSources.paths.contains(path) ? .operations : .page
        }
    }

    init() {
        for kind in Kind.allCases { Self.counter(kind, .ok).increment(by: 0) }
    }

    func handle(
        _ request: Request, context: WebContext, next: (Request, WebContext) async throws -> Response
    ) async throws -> Response {
        let kind = Kind(request.uri.path)
        do {
            let response = try await next(request, context)
            Self.counter(kind, response.status).increment()
            return response
        } catch {
            Self.counter(kind, (error as? any HTTPResponseError)?.status ?? .internalServerError).increment()
            throw error
        }
    }

    private static func counter(_ kind: Kind, _ status: HTTPResponse.Status) -> Counter {
        Counter(
            label: "fanfare_http_requests_total", dimensions: [("kind", kind.rawValue), ("status", "\(status.code)")])
    }
}
