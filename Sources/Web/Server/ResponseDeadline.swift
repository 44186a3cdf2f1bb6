import Hummingbird
import NIOCore

/// Ends a connection whose answer is not made, or not read by the client, in time. Streams say themselves when they end.
struct ResponseDeadline: RouterMiddleware {
    private static let limit: TimeAmount = .seconds(30)

    func handle(
        _ request: Request, context: WebContext, next: (Request, WebContext) async throws -> Response
    ) async throws -> Response {
        let channel = context.channel
        let closing = channel.eventLoop.scheduleTask(in: Self.limit) { channel.close(promise: nil) }
        do {
            var response = try await next(request, context)
            let body = response.body
            guard request.method != .head, !response.isStream else {
                // The body of a HEAD is not written.
                closing.cancel()
                return response
            }
            response.body = ResponseBody(contentLength: body.contentLength) { writer in
                defer { closing.cancel() }
                try await body.write(writer)
            }
            return response
        } catch {
            closing.cancel()
            throw error
        }
    }
}

extension Response {
    /// Of no length that is known: it lasts for as long as somebody reads it, or has lines to send.
    var isStream: Bool { body.contentLength == nil }
}
