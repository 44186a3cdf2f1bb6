import Foundation
import TestSupport
import Testing

/// A proxy that the environment names would reach what a feed or a link may not.
@Suite(.ownThread, .timeLimit(.minutes(5)))
struct FeedProxyTests {
    @Test(arguments: [false, true])
    func `a proxy of the environment fetches nothing in place of the program, unless that is configured`(
        isConfigured: Bool
    ) throws {
        // It is at an address that is allowed, and the link is not.
        let proxy = try LocalServer { _ in .init(200) }
        let target = try LocalServer { _ in .init(200) }
        let place = try Installation(devices: 1)
        if isConfigured {
            let text = try place.folder.read("fanfare.yaml")
            try place.folder.write(
                text.replacing("feeds: {allow: [\"127.0.0.1\"]}", with: "feeds: {allow: [\"127.0.0.1\"], proxy: true}"),
                to: "fanfare.yaml")
        }
        let link = "http://127.0.0.2:\(target.port)/latest/meta-data/"
        try place.folder.write(
            "template: slip\nalert: {en: {title: News, body: Hello}}\ncustom: {a: \"\(link)\"}\n",
            to: "templates/slip.yaml")
        try place.folder.write(
            "campaign: slip\ntopic: \(Installation.topic)\npush_type: alert\ntemplate: slip\naudience: everyone\n"
                + "expires_after: 1h\n", to: "campaigns/slip.yaml")
        let checked = try place.fanfare(
            "validate", "campaigns/slip.yaml", "--links",
            environment: ["http_proxy": proxy.url, "all_proxy": proxy.url, "no_proxy": "", "NO_PROXY": ""])
        #expect(target.requests.isEmpty)
        if isConfigured {
            #expect(proxy.requests.map(\.path) == [link], "\(checked.output)\(checked.errors)")
            #expect(!checked.output.contains("not a public address"))
        } else {
            #expect(proxy.requests.isEmpty)
            #expect(
                checked.output.contains("resolves to 127.0.0.2, which is not a public address"), "\(checked.output)")
        }
    }
}
