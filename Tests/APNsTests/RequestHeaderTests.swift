import Testing

@testable import APNs

struct RequestHeaderTests {
    private func lines(_ headers: PushHeaders, authorization: String? = nil) -> [String] {
        headers.sharedHeaders(authorization: authorization.map { Array($0.utf8) }).map { header in
            header.name + ": " + String(decoding: header.value, as: UTF8.self)
        }
    }

    @Test func `all headers go out in one fixed order, each once`() {
        let headers = PushHeaders(
            topic: "com.example.wendercast", pushType: "alert", priority: 10, expiration: 1_780_000_000,
            collapseID: "run-7")
        #expect(
            lines(headers, authorization: "bearer abc") == [
                "authorization: bearer abc", "apns-push-type: alert", "apns-topic: com.example.wendercast",
                "apns-priority: 10", "apns-expiration: 1780000000", "apns-collapse-id: run-7",
                "content-type: application/json",
            ])
    }

    @Test func `what a push does not say is left out, and 0 is said`() {
        let headers = PushHeaders(topic: "t", pushType: "background", priority: 5)
        #expect(
            lines(headers) == [
                "apns-push-type: background", "apns-topic: t", "apns-priority: 5", "content-type: application/json",
            ])
        var once = headers
        once.expiration = 0
        #expect(lines(once).contains("apns-expiration: 0"))
    }

    @Test func `a value cannot begin a header of its own`() {
        let headers = PushHeaders(topic: "t\r\nx: y", pushType: "alert", priority: 10, collapseID: "a\u{0}b")
        #expect(lines(headers).contains("apns-topic: t??x: y"))
        #expect(lines(headers).contains("apns-collapse-id: a?b"))
    }

    @Test(arguments: [([0x00, 0xab, 0x7f], "/3/device/00ab7f"), ([], "/3/device/")])
    func `the path is the token in lower-case hex`(token: [UInt8], path: String) {
        let count = RequestPath.byteCount(tokenBytes: token.count)
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { RequestPath.write(token: token, to: $0) }
        #expect(String(decoding: bytes, as: UTF8.self) == path)
    }
}
