import HTTPTypes
import Hummingbird
import Model

/// Rejects requests that another site makes a browser send. A cookie proves its owner, but not that the owner intended
/// the request.
///
/// The check uses `Sec-Fetch-Site`, which browsers send to `https` addresses and to the local machine. If the header is
/// missing, `Origin` must name the requested host. Every browser sends one of the two with a form or a script's
/// request.
enum CrossSite {
    static func check(_ request: Request) throws {
        guard !request.isSafe else { return }
        if let site = request.header("Sec-Fetch-Site") {
            // `none`: the person started the request, not a site.
            guard site == "same-origin" || site == "none" else { throw refusal }
            return
        }
        guard let origin = request.headers[.origin], let host = request.head.authority,
            origin.place(of: "://").map({ origin[$0.upperBound...] == host }) ?? false
        else { throw refusal }
    }

    private static let refusal = Problem.forbidden(
        "this request came from another site, or not from a browser; programs must use /api/v1 with an access token")
}

extension Request {
    /// Whether the method changes nothing (RFC 9110, section 9.2.1).
    var isSafe: Bool { method == .get || method == .head || method == .options }

    /// Returns a header whose name the library does not define, or `nil` if the header is missing.
    func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }

    /// Returns a header that identifies the caller, or `nil` if the header is missing. Throws 400 if it appears twice,
    /// because the client may have added one of the two.
    func single(_ name: String) throws -> String? {
        guard let field = HTTPField.Name(name) else { return nil }
        let values = headers[values: field]
        guard values.count < 2 else {
            throw Problem(
                400, "bad_request", "Bad request",
                "\(name) is given \(values.count) times; configure the proxy to remove this header from client requests"
            )
        }
        return values.first
    }
}

extension Response {
    /// Returns the response with a header whose name the library does not define.
    func with(_ name: String, _ value: String) -> Response {
        var response = self
        if let name = HTTPField.Name(name) { response.headers[name] = value }
        return response
    }
}
