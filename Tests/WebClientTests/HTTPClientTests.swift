import Foundation
import TestSupport
import Testing
import WebClient

@Suite(.timeLimit(.minutes(10))) struct `Requests to web servers` {
    private func client(_ change: (inout WebLimits) -> Void = { _ in }, trust: String? = nil) -> HTTPClient {
        var limits = WebLimits()
        change(&limits)
        return HTTPClient(addresses: .any, limits: limits, trust: trust, agent: "fanfare/test")
    }

    /// The error a request ends with; nil when it is answered.
    private func error(_ client: HTTPClient, _ request: WebRequest) async -> WebError? {
        do {
            _ = try await client.send(request)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a GET carries its headers and brings the answer's`() async throws {
        let server = try LocalServer { _ in
            .init(304, headers: ["ETag": "\"v2\"", "Last-Modified": "Sat, 21 Nov 2026 09:00:00 GMT"])
        }
        let answer = try await client().send(
            WebRequest(.get, server.url + "/feed.xml?a=b", headers: ["If-None-Match": "\"v1\""]))
        #expect(answer.status == 304)
        #expect(answer.headers["etag"] == "\"v2\"")
        #expect(answer.headers["last-modified"] == "Sat, 21 Nov 2026 09:00:00 GMT")
        #expect(answer.body.isEmpty)
        let request = try #require(server.requests.first)
        #expect(request.method == "GET" && request.path == "/feed.xml?a=b")
        #expect(request.headers["if-none-match"] == "\"v1\"")
        #expect(request.headers["user-agent"] == "fanfare/test")
    }

    @Test(arguments: [0, 1, 2000, 3_000_000]) func `a POST carries its body whole`(count: Int) async throws {
        let server = try LocalServer { .init(200, body: $0.body.reversed()) }
        let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let answer = try await client().send(
            WebRequest(.post(body: body), server.url + "/hook", headers: ["Content-Type": "application/json"]))
        #expect(answer.status == 200)
        #expect(answer.body == body.reversed())
        #expect(server.requests.map(\.method) == ["POST"])
        #expect(server.requests.first?.headers["expect"] == nil)
        #expect(server.requests.first?.headers["content-type"] == "application/json")
    }

    @Test(arguments: [200, 404, 500]) func `every status is an answer`(status: Int) async throws {
        let server = try LocalServer { _ in .init(status, body: "words".utf8) }
        let answer = try await client().send(WebRequest(.get, server.url))
        #expect(answer.status == status)
        #expect(answer.body == Array("words".utf8))
    }

    @Test(arguments: [
        (200, 200, true), (204, 500, true), (405, 200, true), (404, 404, false), (500, 503, false), (304, 304, true),
        (403, 301, true),
    ])
    func `a link answers if not to HEAD then to GET`(head: Int, get: Int, isThere: Bool) async throws {
        let server = try LocalServer { .init($0.method == "HEAD" ? head : get) }
        let fault = await client().fault(ofLink: server.url + "/page")
        #expect((fault == nil) == isThere, "\(fault ?? "")")
        #expect(isThere || fault == "status \(get)")
        #expect(server.requests.map(\.method) == ((200..<400).contains(head) ? ["HEAD"] : ["HEAD", "GET"]))
    }

    @Test func `a link follows redirects, may be to a large page, and not to nobody`() async throws {
        let server = try LocalServer { request in
            if request.path == "/" { return .init(302, headers: ["Location": "/large"]) }
            if request.method == "HEAD" { return .init(405) }
            return .init(200, body: [UInt8](repeating: 0x61, count: 9000))
        }
        let small = client { $0.bodyBytesMax = 1000 }
        #expect(await small.fault(ofLink: server.url) == nil)
        #expect(await client().fault(ofLink: "http://127.0.0.1:1/") != nil)
        #expect(await client().fault(ofLink: "ftp://127.0.0.1/") != nil)
    }

    @Test func `a GET follows redirects, so many and no more`() async throws {
        let server = try LocalServer { request in
            guard let left = Int(request.path.dropFirst()), left > 0 else { return .init("here") }
            return .init(302, headers: ["Location": "/\(left - 1)"], body: "elsewhere".utf8)
        }
        let client = client { $0.redirectsMax = 3 }
        let answer = try await client.send(WebRequest(.get, server.url + "/3"))
        #expect(answer == WebResponse(status: 200, headers: answer.headers, body: Array("here".utf8)))
        #expect(answer.headers["location"] == nil)
        let refused = await error(client, WebRequest(.get, server.url + "/4"))
        #expect(refused == .tooManyRedirects(url: server.url + "/4", max: 3))
        let posted = try await client.send(WebRequest(.post(body: [1]), server.url + "/1"))
        #expect(posted.status == 302)
    }

    @Test func `an answer over the limit is refused, said beforehand, found on the way or compressed`() async throws {
        let zeros = Data(repeating: 0, count: 200_000)
        let packed = try #require(Self.gzipped(zeros))
        #expect(packed.count < 10_000)
        var unsaid = LocalServer.Reply(200, body: zeros)
        unsaid.saysLength = false
        let server = try LocalServer { [unsaid] request in
            switch request.path {
            case "/said": .init(200, body: zeros)
            case "/unsaid": unsaid
            default: .init(200, headers: ["Content-Encoding": "gzip"], body: packed)
            }
        }
        let small = client { $0.bodyBytesMax = 100_000 }
        for path in ["/said", "/unsaid", "/packed"] {
            let refused = await error(small, WebRequest(.get, server.url + path))
            #expect(refused == .tooLarge(url: server.url + path, bytesMax: 100_000))
        }
        let answer = try await client().send(WebRequest(.get, server.url + "/packed"))
        #expect(answer.body.count == zeros.count)
    }

    @Test func `a server that does not answer costs the time limit and no more`() async throws {
        let server = try LocalServer { _ in .withheld }
        let impatient = client { $0.totalTime = .milliseconds(200) }
        let refused = await error(impatient, WebRequest(.get, server.url + "/?key=secret"))
        #expect(refused == .timedOut(url: server.url + "/", limit: .milliseconds(200)))
        // The caller has less time.
        await #expect(throws: WebError.timedOut(url: server.url + "/", limit: .milliseconds(100))) {
            try await client().send(WebRequest(.get, server.url + "/"), within: .milliseconds(100))
        }
    }

    @Test func `a cancelled task ends its request`() async throws {
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let server = try LocalServer { _ in
            ask.yield()
            return .withheld
        }
        let client = client { $0.totalTime = .seconds(600) }
        let request = Task { await error(client, WebRequest(.get, server.url)) }
        for await _ in asked { break }
        request.cancel()
        #expect(await request.value == .cancelled(url: server.url))
    }

    @Test func `a host that is away is an error with its reason`() async throws {
        let url = try { "\(try LocalServer { _ in .init("") }.url)/" }()
        let refused = await error(client(), WebRequest(.get, url))
        #expect(refused?.description.contains("\(url) cannot be reached") == true, "\(String(describing: refused))")
    }

    @Test(
        arguments: [
            "file:///etc/passwd", "ftp://example.com", "example.com", "", "https:/example.com", "http://a b",
            "HTTPSS://x",
        ])
    func `other addresses are refused before anything is sent`(url: String) async {
        guard case .unusable = await error(client(), WebRequest(.get, url)) else {
            Issue.record("\(url) was tried")
            return
        }
    }

    @Test func `a header with a line end is refused`() async throws {
        let server = try LocalServer { _ in .init("") }
        let refused = await error(client(), WebRequest(.get, server.url, headers: ["a": "b\r\nc: d"]))
        #expect(refused == .unusable(url: server.url, reason: "the header a contains a line break"))
        #expect(server.requests.isEmpty)
    }

    @Test(arguments: [
        ("https://user:pass@example.com/feed?key=1#x", "https://example.com/feed"),
        ("https://example.com", "https://example.com"), ("https://example.com/a@b", "https://example.com/a@b"),
        ("nonsense?secret", "nonsense"),
    ])
    func `what may be secret in an address is not shown`(url: String, shown: String) {
        #expect(ShownURL.text(url) == shown)
    }

    @Test func `https is trusted only with its certificate, and never left for http`() async throws {
        let open = try LocalServer { _ in .init("secret plans") }
        let certificate = try LocalCertificate()
        let server = try LocalServer(certificate: certificate) { request in
            switch request.path {
            case "/down": .init(302, headers: ["Location": "\(open.url)/"])
            case "/file": .init(302, headers: ["Location": "file:///etc/hostname"])
            case "/over": .init(302, headers: ["Location": "/feed"])
            default: .init("ok")
            }
        }
        guard case .untrusted = await error(client(), WebRequest(.get, server.url + "/feed")) else {
            Issue.record("a certificate of nobody's was trusted")
            return
        }
        let client = client(trust: certificate.path)
        for path in ["/feed", "/over"] {
            #expect(try await client.send(WebRequest(.get, server.url + path)).body == Array("ok".utf8))
        }
        for path in ["/down", "/file"] {
            let refused = await error(client, WebRequest(.get, server.url + path))
            #expect(refused == .downgraded(url: server.url + path))
        }
        #expect(open.requests.isEmpty)
    }

    /// The example of the specification.
    @Test func `a webhook's signature is that of Standard Webhooks`() throws {
        let secret = try #require(Data(base64Encoded: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let headers = WebhookSignature(secret: Array(secret)).headers(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", seconds: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
        #expect(
            headers == [
                "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
                "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ])
    }

    private static func gzipped(_ data: Data) -> Data? {
        let gzip = Process()
        gzip.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        gzip.arguments = ["gzip", "-c"]
        let (input, output) = (Pipe(), Pipe())
        gzip.standardInput = input
        gzip.standardOutput = output
        do {
            try gzip.run()
            try input.fileHandleForWriting.write(contentsOf: data)
            try input.fileHandleForWriting.close()
            return output.fileHandleForReading.readDataToEndOfFile()
        } catch {
            return nil
        }
    }
}
