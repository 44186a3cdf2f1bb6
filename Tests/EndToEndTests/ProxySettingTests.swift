import Testing

@testable import fanfare

struct ProxySettingTests {
    static let rows: [(host: String, environment: [String: String], variable: String?)] = [
        ("api.push.apple.com", [:], nil),
        ("api.push.apple.com", ["https_proxy": "http://proxy:3128"], "https_proxy"),
        ("api.push.apple.com", ["HTTPS_PROXY": "http://proxy:3128"], "HTTPS_PROXY"),
        ("api.push.apple.com", ["ALL_PROXY": "socks5://proxy"], "ALL_PROXY"),
        ("api.push.apple.com", ["https_proxy": ""], nil),
        ("api.push.apple.com", ["http_proxy": "http://proxy:3128"], nil),
        ("api.push.apple.com", ["https_proxy": "p", "no_proxy": "example.com, push.apple.com"], nil),
        ("api.push.apple.com", ["https_proxy": "p", "NO_PROXY": ".apple.com"], nil),
        ("api.push.apple.com", ["https_proxy": "p", "no_proxy": "*"], nil),
        ("api.push.apple.com", ["https_proxy": "p", "no_proxy": "notpush.apple.com,apple.co"], "https_proxy"),
        ("127.0.0.1", ["https_proxy": "p"], nil),
        ("localhost", ["https_proxy": "p"], nil),
    ]

    @Test(arguments: rows)
    func `the proxy in the way is found as curl finds it`(
        row: (host: String, environment: [String: String], variable: String?)
    ) {
        #expect(ProxySetting.variable(for: row.host, in: row.environment) == row.variable)
    }
}
