/// The first line of a request; nothing else of it is needed.
struct OperationsRequest: Hashable, Sendable {
    var method: String
    /// Without the query.
    var path: String

    /// Nil for what is no HTTP/1 request.
    init?(head: some StringProtocol) {
        let line = head.prefix { $0 != "\r\n" && $0 != "\r" && $0 != "\n" }
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, words[2].hasPrefix("HTTP/1."), words[1].hasPrefix("/") else { return nil }
        method = String(words[0])
        path = String(words[1].prefix { $0 != "?" })
    }
}

struct OperationsResponse: Hashable, Sendable {
    var status: Int
    var type = "text/plain; charset=utf-8"
    var body: String

    static let tooLarge = OperationsResponse(status: 431, body: "the request's head is too large\n")
    static let malformed = OperationsResponse(status: 400, body: "not an HTTP/1 request\n")
    static let busy = OperationsResponse(status: 503, body: "too many requests at once\n")

    func bytes(isHead: Bool) -> [UInt8] {
        let reasons = [
            200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
            431: "Request Header Fields Too Large", 503: "Service Unavailable",
        ]
        let head =
            "HTTP/1.1 \(status) \(reasons[status] ?? "Status")\r\nContent-Type: \(type)\r\n"
            + "Content-Length: \(body.utf8.count)\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        return Array(head.utf8) + (isHead ? [] : Array(body.utf8))
    }
}
