/// A push as a client sends it. Built right, then broken by a test.
struct TestRequest: Sendable {
    var fields: [(String, String)]
    /// Nil: HEADERS end the stream.
    var body: [UInt8]?

    init(token: String, authorization: String?, topic: String? = "com.example.wendercast") {
        fields = [
            (":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/3/device/\(token)"),
            ("content-type", "application/json"), ("apns-push-type", "alert"),
        ]
        body = Array(#"{"aps":{"alert":"New on WenderCast"}}"#.utf8)
        self["apns-topic"] = topic
        self["authorization"] = authorization.map { "bearer \($0)" }
    }

    /// Nil takes the field away.
    subscript(_ name: String) -> String? {
        get { fields.first { $0.0 == name }?.1 }
        set {
            guard let index = fields.firstIndex(where: { $0.0 == name }) else {
                if let newValue { fields.append((name, newValue)) }
                return
            }
            if let newValue { fields[index].1 = newValue } else { fields.remove(at: index) }
        }
    }

    func with(_ name: String, _ value: String?) -> TestRequest {
        var request = self
        request[name] = value
        return request
    }
}
