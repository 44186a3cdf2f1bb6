import Foundation
import Synchronization
import WebClient

/// A page of a local server, read by a test that has a thread of its own and blocks it.
enum LocalPage {
    /// Throws ``WebError``. Responses with an error status are returned too.
    static func text(_ url: String, within time: Duration = .seconds(30)) throws -> String {
        try answer(WebRequest(.get, url), within: time)
    }

    /// Sends JSON with an access token.
    static func post(_ url: String, _ body: String, token: String) throws -> String {
        let headers = ["Authorization": "Bearer \(token)", "Content-Type": "application/json"]
        return try answer(WebRequest(.post(body: Array(body.utf8)), url, headers: headers), within: .seconds(30))
    }

    private static func answer(_ request: WebRequest, within time: Duration) throws -> String {
        let outcome = Mutex<Result<WebResponse, any Error>?>(nil)
        let ended = DispatchSemaphore(value: 0)
        var limits = WebLimits()
        limits.totalTime = time
        Task { [limits] in
            defer { ended.signal() }
            do {
                let response = try await HTTPClient(addresses: .any, limits: limits).send(request)
                outcome.withLock { $0 = .success(response) }
            } catch {
                outcome.withLock { $0 = .failure(error) }
            }
        }
        ended.wait()
        guard let result = outcome.withLock({ $0 }) else { return "" }
        return String(decoding: try result.get().body, as: UTF8.self)
    }
}
