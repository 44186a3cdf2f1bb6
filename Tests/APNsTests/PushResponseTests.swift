import Testing

@testable import APNs

struct PushResponseTests {
    @Test(arguments: PushReason.known.map(\.name))
    func `every documented reason is read and written as spelled`(name: String) {
        let reason = PushReason(name)
        if case .other = reason { Issue.record("\(name) is not known") }
        #expect(reason.description == name)
    }

    @Test(arguments: [
        ("BadEnvironmentKeyInToken", PushReason.badEnvironmentKeyIdInToken),
        ("Service Unavailable", .serviceUnavailable), ("SomethingNew", .other("SomethingNew")),
    ])
    func `other spellings are understood and unknown reasons keep their text`(name: String, reason: PushReason) {
        #expect(PushReason(name) == reason)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var status: Int
        var body: String
        var reason: PushReason?
        var timestamp: Int64?
        var testDescription: String { "\(status) \(body)" }
    }

    static let rows = [
        Row(status: 200, body: ""),
        Row(status: 200, body: #"{"reason":"BadTopic"}"#),
        Row(status: 400, body: #"{"reason":"BadDeviceToken"}"#, reason: .badDeviceToken),
        Row(
            status: 410, body: #"{"timestamp":1780000000123,"reason":"Unregistered"}"#, reason: .unregistered,
            timestamp: 1_780_000_000_123),
        Row(status: 410, body: #"{"reason":"ExpiredToken"}"#, reason: .expiredToken),
        Row(status: 410, body: #"{"reason":"Unregistered","timestamp":"17"}"#, reason: .unregistered, timestamp: 17),
        Row(status: 410, body: #"{"reason":"Unregistered","timestamp":1.5}"#, reason: .unregistered, timestamp: 1),
        Row(status: 410, body: #"{"reason":"Unregistered","timestamp":null}"#, reason: .unregistered),
        Row(status: 400, body: #"{"reason":"BadTopic","timestamp":5}"#, reason: .badTopic),
        Row(status: 503, body: " {\n \"reason\" : \"Shutdown\" } ", reason: .shutdown),
        Row(status: 400, body: #"{"a":{"b":["}",1,{"c":"\""}]},"reason":"BadTopic","z":false}"#, reason: .badTopic),
        Row(status: 400, body: #"{"reason":"Br\u00e4nd\tNew"}"#, reason: .other("Bränd\tNew")),
        Row(status: 400, body: #"{"reason":7}"#),
        Row(status: 400, body: #"{"reason":"Cut"#),
        Row(status: 400, body: #"{"reason":"BadTopic","cut":["#, reason: .other("BadTopic…")),
        Row(status: 410, body: #"{"reason":"Unregistered","timestamp":17"#, reason: .other("Unregistered…")),
        Row(status: 502, body: "<html><body>Bad Gateway</body></html>"),
        Row(status: 500, body: ""), Row(status: 500, body: "[]"), Row(status: 500, body: "{"),
        Row(status: 500, body: #"{"\ud800":1,"reason":"InternalServerError"}"#, reason: .other("InternalServerError…")),
    ]

    @Test(arguments: rows)
    func `an answer is read from whatever body comes with it`(row: Row) {
        let answer = PushResponse(status: row.status, body: Array(row.body.utf8), retryAfter: [])
        #expect(answer == PushResponse(status: row.status, reason: row.reason, timestamp: row.timestamp))
    }

    @Test(arguments: [(200, false), (400, false), (410, false), (429, true), (500, true), (503, true)])
    func `a time to come again is read of 429 and 5xx`(status: Int, isRead: Bool) {
        let answer = PushResponse(status: status, body: [], retryAfter: Array("7".utf8))
        #expect(answer.retryAfter == (isRead ? .seconds(7) : nil))
    }

    /// 2026-11-22T00:00:00Z.
    private static let now: Int64 = 1_795_305_600_000

    @Test(
        arguments: [
            ("0", .zero), ("120", .seconds(120)), ("3600", .seconds(3600)), ("3601", .seconds(3600)),
            ("99999999999999999999999", .seconds(3600)),
            ("Sun, 22 Nov 2026 00:02:00 GMT", .seconds(120)), ("Sunday, 22-Nov-26 00:02:00 GMT", .seconds(120)),
            ("Sun Nov 22 00:02:00 2026", .seconds(120)), ("Sat, 21 Nov 2026 23:59:00 GMT", .zero),
            ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(3600)),
            ("", nil), ("-1", nil), ("1.5", nil), ("soon", nil), ("120 s", nil), (" 120", nil),
            ("Sun, 22 Nov 2026 00:02:00 GMT!", nil), ("Sun, 22 Nov 2026", nil), ("\u{0}", nil), ("5\u{0}", nil),
            (String(repeating: "1", count: 41), nil), ("\u{662}", nil),
        ] as [(String, Duration?)])
    func `Retry-After is seconds or a date, and never more than an hour`(text: String, wait: Duration?) {
        #expect(RetryAfter(parsing: Array(text.utf8))?.wait(from: Self.now) == wait)
    }
}
