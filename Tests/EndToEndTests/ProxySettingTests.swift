import Campaigns
import Model
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

    @Test func `the curl transport goes through it, which is named without its password`() {
        let environment = ["https_proxy": "http://anna:hunter2@proxy.example.com:3128", "no_proxy": "inside.example"]
        let hosts = ["api.push.apple.com", "api.sandbox.push.apple.com"]
        let used = ProxySetting.use(by: .curl, to: hosts, in: environment)
        #expect(used == .used(variable: "https_proxy", proxy: "the proxy proxy.example.com:3128"))
        #expect(ProxySetting.use(by: .curl, to: ["inside.example"], in: environment) == .direct)
        #expect(ProxySetting.use(by: .curl, to: hosts, in: [:]) == .direct)
        #expect(ProxySetting.use(by: .native, to: hosts, in: [:]) == .direct)
        guard case .inTheWay(let reason) = ProxySetting.use(by: .native, to: hosts, in: environment) else {
            Issue.record("the native transport supports no proxy")
            return
        }
        #expect(reason.contains("https_proxy is set") && !reason.contains("hunter2"))
    }
}
