import HTTPTypes
import Hummingbird

/// Refuses what another site makes a browser send: a cookie proves who it belongs to, not that they meant it.
///
/// By `Sec-Fetch-Site`, which browsers send to https and to this machine; without it `Origin` has to name the host that
/// was asked. Every browser sends one of the two with a form or a script's request.
enum CrossSite {
    static func check(_ request: Request) throws {
        guard !request.isSafe else { return }
        if let site = request.header("Sec-Fetch-Site") {
            // `none`: the person at the browser did it.
            guard site == "same-origin" || site == "none" else { throw refusal }
            return
        }
        guard let origin = request.headers[.origin], let host = request.head.authority,
            origin.firstRange(of: "://").map({ origin[$0.upperBound...] == host }) ?? false
        else { throw refusal }
    }

    private static let refusal = Problem.forbidden(
        "this came from another site, or from no browser; programs ask /api/v1 with an access token")
}

extension Request {
    /// Changes nothing, by its method (RFC 9110, section 9.2.1).
    var isSafe: Bool { method == .get || method == .head || method == .options }

    /// Of a name that the library has no word for; nil: it is not there.
    func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }

    /// The same for a field that says who the caller is. Throws 400 for one that stands there twice: one of the two may be
    /// the client's own.
    func single(_ name: String) throws -> String? {
        guard let field = HTTPField.Name(name) else { return nil }
        let values = headers[values: field]
        guard values.count < 2 else {
            throw Problem(
                400, "bad_request", "Bad request",
                "\(name) stands there \(values.count) times; the proxy is to remove what its clients send of it")
        }
        return values.first
    }
}

extension Response {
    /// A field of a name that the library has no word for.
    func with(_ name: String, _ value: String) -> Response {
        var response = self
        if let name = HTTPField.Name(name) { response.headers[name] = value }
        return response
    }
}
