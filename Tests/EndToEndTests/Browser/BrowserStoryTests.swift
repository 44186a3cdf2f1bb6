import Foundation
import TestSupport
import Testing

/// The pages as a person uses them, in a real browser, on the README's demo that stays.
@Suite(
    .serialized, .timeLimit(.minutes(10)),
    .enabled(if: Browser.isAsked, "no browser was installed; `.ci/run` does it: left out"))
struct `The pages in a browser` {
    /// The demo, and its address.
    private struct Demo {
        let folder: TemporaryDirectory
        let program: RunningProgram
        /// Good once.
        let link: String

        var address: String { String(link.prefix(while: { $0 != "?" }).dropLast("/sign-in".count)) }

        init() throws {
            folder = try TemporaryDirectory()
            let program = try RunningProgram(
                ["demo", "--stay", "--dir", "demo", "--devices", "20000"], in: folder)
            self.program = program
            try program.wait { program.errors.contains("/sign-in?link=") }
            let found = program.errors.firstMatch(of: /http:\/\/[^\s]+\/sign-in\?link=[\w-]+/)
            link = String(try #require(found).0)
        }
    }

    /// Of every page there is, light and dark, wide and narrow: written to the folder that `SCREENSHOTS` names.
    private static let pictures = ProcessInfo.processInfo.environment["SCREENSHOTS"]

    private static let pages = [
        "/", "/runs/1", "/runs/1/deliveries?state=rejected", "/campaigns", "/campaigns/new-podcast", "/calendar",
        "/segments", "/segments/podcast-fans", "/devices", "/devices?find=install-1", "/audit", "/health", "/tokens",
    ]

    @Test func `every page is fit for everybody, light and dark, wide and narrow`() async throws {
        let demo = try Demo()
        var cookie: String?
        for (width, isDark) in [(1280, false), (1280, true), (390, false), (390, true)] {
            try await Browser.with(width: width, isDark: isDark) { browser in
                if let cookie {
                    try await browser.open(demo.address + "/sign-in")
                    try await browser.protocolCommand(
                        "Network.setCookie", ["name": "fanfare", "value": cookie, "url": demo.address])
                } else {
                    try await browser.open(demo.link)
                    let found = try await browser.protocolCommand("Network.getCookies", [:])
                    cookie = (found?["cookies"] as? [[String: Any]])?.first?["value"] as? String
                    try #require(cookie != nil)
                }
                for page in Self.pages {
                    try await browser.open(demo.address + page)
                    let faults = try await PageCheck(browser).faults
                    #expect(faults == [], "\(page) \(width) \(isDark ? "dark" : "light")")
                    guard let folder = Self.pictures else { continue }
                    let name = page == "/" ? "runs" : page.dropFirst().replacing(/[^\w]+/, with: "-")
                    let file = "\(folder)/\(name)-\(width)-\(isDark ? "dark" : "light").png"
                    try await browser.picture().write(to: URL(fileURLWithPath: file))
                }
            }
        }
    }

    @Test func `a run's sum leads to its devices and their story, and its report is a file`() async throws {
        let demo = try Demo()
        try await Browser.with { browser in
            try await browser.open(demo.link)
            let first = try await browser.text("h1")
            #expect(first == "Runs")
            try await browser.click(browser.named("new-podcast"))
            let run = try await browser.text("h1")
            #expect(run == "new-podcast episode-42")
            try await browser.click(browser.named("rejected"))
            let rejected = try await browser.text("tbody tr")
            #expect(rejected.contains("rejected"))
            try await browser.click("tbody th a")
            let story = try await browser.text("main")
            #expect(story.contains("new-podcast"))
            let report = try await browser.script(
                """
                const request = new XMLHttpRequest();
                request.open("GET", "/runs/1/report.html", false);
                request.send();
                return request.responseText;
                """)
            #expect((report as? String)?.contains("new-podcast") ?? false)
            // The link was good once.
            try await browser.open(demo.link)
            let again = try await browser.text("main")
            #expect(again.contains("used already"))
        }
    }
}
