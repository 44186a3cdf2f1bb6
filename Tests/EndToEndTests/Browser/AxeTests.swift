import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    /// The pages besides those that have data.
    private static let framePages = [
        "/approvals", "/plans", "/changes", "/stops", "/runs/month", "/runs/compare?a=1&b=2", "/guide",
        "/guide/Operate", "/nowhere", "/runs/999", "/sign-in",
    ]

    @Test func `axe finds nothing serious on any page, light and dark, wide and narrow`() async throws {
        let axe = try AxeCore()
        let demo = try DemoWithPages(devices: 500)
        var cookie: String?
        for (width, isDark) in Nightly.rows([(1280, false), (390, true)], atNight: [(1280, true), (390, false)]) {
            try await Browser.with(width: width, isDark: isDark) { browser in
                if let cookie {
                    try await browser.open(demo.address + "/sign-in")
                    try await browser.protocolCommand(
                        "Network.setCookie", ["name": "fanfare", "value": cookie, "url": demo.address])
                } else {
                    try await browser.open(demo.link)
                    cookie = try await browser.sessionCookie()
                    try await keepPlan(demo, browser)
                }
                for page in Self.pages + Self.framePages {
                    try await browser.open(demo.address + page)
                    let faults = try await axe.faults(browser)
                    #expect(faults == [], "\(page) \(width) \(isDark ? "dark" : "light")")
                }
            }
        }
    }

    private func keepPlan(_ demo: DemoWithPages, _ browser: Browser) async throws {
        try await browser.open(demo.address + "/campaigns/new-podcast")
        try await browser.type("The Quiet Reef", into: "#v-title")
        try await browser.type("https://example.com/118", into: "#v-link_url")
        try await browser.follow(browser.named("Plan"))
    }
}

/// axe-core, the accessibility checks of Deque, run in a page of the browser.
struct AxeCore {
    private let script: String

    init() throws {
        let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL
        let result = try Program.run(
            [], in: try TemporaryDirectory(), program: root.appending(path: ".ci/axe"))
        try #require(result.status == 0, "\(result.errors)")
        let path = result.output.trimmingCharacters(in: .whitespacesAndNewlines)
        script = try String(contentsOfFile: path, encoding: .utf8)
    }

    /// The serious and the critical findings on the open page. The protocol evaluates the script, so that the policy
    /// of the page needs no exception.
    func faults(_ browser: Browser) async throws -> [String] {
        _ = try await browser.protocolCommand("Runtime.evaluate", ["expression": script])
        let run = """
            axe.run(document, { resultTypes: ["violations"] }).then((result) => JSON.stringify(result.violations
              .filter((found) => ["serious", "critical"].includes(found.impact))
              .flatMap((found) => found.nodes.map((node) => found.id + ": " + node.html.slice(0, 120)))))
            """
        let answer = try await browser.protocolCommand(
            "Runtime.evaluate", ["expression": run, "awaitPromise": true, "returnByValue": true])
        let text = (answer?["result"] as? [String: Any])?["value"] as? String
        let json = try #require(text, "axe has no result: \(answer ?? [:])")
        return try JSONDecoder().decode([String].self, from: Data(json.utf8))
    }
}
