import Foundation
import TestSupport
import Testing

/// The pages as a person uses them, in a real browser, on the README's demo that stays.
@Suite(
    .ownThread, .timeLimit(.minutes(20)),
    .enabled(if: Browser.isAsked, "no browser was installed; `.ci/run` does it: left out"))
struct `The pages in a browser` {
    /// Of every page there is, light and dark, wide and narrow: written to the folder that `SCREENSHOTS` names.
    private static let pictures = ProcessInfo.processInfo.environment["SCREENSHOTS"]

    static let pages = [
        "/", "/runs/1", "/runs/1/deliveries?state=rejected", "/campaigns", "/campaigns/new-podcast",
        "/campaigns/new-podcast?view=files", "/new", "/setup", "/new/campaign",
        "/new/template?name=summer", "/templates", "/templates/new-podcast",
        "/runs/1/correction?v.title=Other", "/calendar", "/segments", "/segments/podcast-fans", "/devices",
        "/devices?find=install-1", "/audit", "/health", "/people",
    ]

    @Test func `every page is fit for everybody, light and dark, wide and narrow`() async throws {
        let demo = try DemoWithPages(devices: 5_000)
        var cookie: String?
        for (width, isDark) in Nightly.rows([(390, false)], atNight: [(390, true), (1280, false), (1280, true)]) {
            try await Browser.with(width: width, isDark: isDark) { browser in
                if let cookie {
                    try await browser.open(demo.address + "/sign-in")
                    try await browser.protocolCommand(
                        "Network.setCookie", ["name": "fanfare", "value": cookie, "url": demo.address])
                } else {
                    try await browser.open(demo.link)
                    cookie = try await browser.sessionCookie()
                }
                for page in Self.pages {
                    try await browser.open(demo.address + page)
                    let faults = try await PageCheck(browser).faults
                    #expect(faults == [], "\(page) \(width) \(isDark ? "dark" : "light")")
                    let bytes = try await browser.script(
                        "return performance.getEntriesByType('navigation')[0].decodedBodySize")
                    #expect((1000..<60_000).contains(bytes as? Int ?? 0), "\(page)")
                    guard let folder = Self.pictures else { continue }
                    let name = page == "/" ? "runs" : page.dropFirst().replacing(/[^\w]+/, with: "-")
                    let file = "\(folder)/\(name)-\(width)-\(isDark ? "dark" : "light").png"
                    try await browser.picture().write(to: URL(fileURLWithPath: file))
                }
            }
        }
    }

    @Test func `a run's sum leads to its devices and their history, and its report is a file`() async throws {
        let demo = try DemoWithPages(devices: 2_000, stays: true)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            let first = try await browser.text("h1")
            #expect(first == "Broadcasts")
            try await browser.follow(browser.named("new-podcast"))
            let run = try await browser.text("h1")
            #expect(run == "new-podcast episode-42")
            try await browser.follow(browser.named("rejected"))
            let rejected = try await browser.text("tbody tr")
            #expect(rejected.contains("rejected"))
            try await browser.follow("tbody th a")
            let text = try await browser.text("main")
            #expect(text.contains("new-podcast"))
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
            #expect(again.contains("already used"))
        }
    }

    @Test func `a content editor sees a mistake at its line, plans, starts, watches, pauses and resumes`() async throws
    {
        let demo = try DemoWithPages.withSlowBroadcasts()
        // A script in a name is text, wherever it is shown.
        let occurrence = "evening <img src=x onerror=\"document.title='broken'\">"
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns")
            try await browser.follow(browser.named("new-podcast"))
            let phones = try await browser.script("return document.querySelectorAll('.phone').length")
            #expect(phones as? Int == 8)

            try await browser.follow(browser.named("Files"))
            try await browser.type("\nprioritee: 3\n", into: "#campaign-file textarea, form.editor textarea")
            try await browser.wait(for: "document.querySelector('.troubles li.error')")
            let trouble = try await browser.text(".troubles li.error")
            #expect(trouble.contains("unknown key \"prioritee\"; did you mean \"priority\"?"))
            let marked = try await browser.script("return document.querySelectorAll('.gutter .error').length")
            #expect(marked as? Int == 1)

            try await browser.open(demo.address + "/campaigns/new-podcast")
            try await browser.type("The Quiet Reef", into: "#v-title")
            try await browser.type("https://example.com/118", into: "#v-link_url")
            try await browser.follow(browser.named("Plan"))
            let plan = try await browser.text("#plan h2")
            // Without those whose tokens the first run found gone.
            #expect(plan.contains("3,490"))
            _ = try await browser.script("document.querySelector('#occurrence').value = ''")
            try await browser.type(occurrence, into: "#occurrence")
            try await browser.follow("form.start button.main")

            // It moves, and not because the page was asked for again.
            try await browser.wait(for: "document.querySelector('p .state.running')")
            _ = try await browser.script("window.stays = true")
            try await browser.wait(
                for: "window.stays && (b => b.value > 0.05 && b.value < 1)(document.querySelector('progress'))")
            try await browser.pauseAndResume()
            try await browser.wait(for: "document.querySelector('p .state.finished')")
            let title = try await browser.script("return document.title") as? String
            #expect(title?.contains("<img") ?? false)
            try await compareFinished(demo, browser)
        }
    }

    @Test func `an operator stops a run, then everything, without a question, and lifts that with a reason`()
        async throws
    {
        let demo = try DemoWithPages.withSlowBroadcasts(pace: 20)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            // Not before: a browser may take as long to start as the run takes.
            try demo.fanfare(
                "run", "new-podcast", "--occurrence", "wrong", "--var", "title=Wrong", "--var",
                "link_url=https://example.com/wrong", "--yes", "--no-wait")
            let runs = try #require(
                try JSONSerialization.jsonObject(with: Data(demo.fanfare("status", "--json").utf8)) as? [String: Any])
            let run = try #require((runs["runs"] as? [[String: Any]])?.compactMap { $0["run"] as? Int }.max())
            try await browser.open("\(demo.address)/runs/\(run)")
            try await browser.follow(browser.named("Stop"))
            // The page follows the run: on a busy machine, its sender may hear of the stop only after the answer.
            try await browser.wait(for: "document.querySelector('p .state').textContent.includes('paused')")
            let stopped = try await browser.text("p .state")
            #expect(stopped.contains("paused") && stopped.contains("stopped"), "\(stopped)")
            let banner = try await browser.text(".stopped")
            #expect(banner.contains("run \(run)") && banner.contains("resumes it on its page"))
            let settled = try await browser.text("[data-value=settled]")

            try await browser.open(demo.address + "/")
            // The button is on the first page only while something is being sent.
            let shown = try await browser.script("return document.querySelectorAll('button.stop').length")
            #expect(shown as? Int == 0)
            try await browser.open(demo.address + "/stops")
            try await browser.follow(browser.named("Stop everything"))
            try await browser.open(demo.address + "/campaigns")
            let everything = try await browser.text(".stopped:last-of-type")
            #expect(everything.contains(/Stopped: everything, by terminal-[0-9a-f]{8} at [0-9]/))
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])

            try await browser.click(browser.named("Lift this stop"))
            try await browser.type("put right", into: "details[open] input[name=reason]")
            try await browser.follow("details[open] form button")
            let left = try await browser.script("return document.querySelectorAll('.stopped').length")
            #expect(left as? Int == 1)
            try await browser.open("\(demo.address)/runs/\(run)")
            let still = try await browser.text("[data-value=settled]")
            #expect(still == settled)
            try await browser.click(browser.named("Resume"))
            try await browser.follow("details[open] form button")
            let none = try await browser.script("return document.querySelectorAll('.stopped').length")
            #expect(none as? Int == 0)
        }
    }

    /// What the page, its file, the API, the command line and APNs' side say of the sixth run is the same.
    private func compareFinished(_ demo: DemoWithPages, _ browser: Browser) async throws {
        let command = try demo.fanfare("report", "7", "--format", "json")
        let download =
            try await browser.script(
                """
                const request = new XMLHttpRequest();
                request.open("GET", "/runs/7/report.json", false);
                request.send();
                return request.responseText;
                """) as? String
        #expect(command == download)
        let token = try demo.token("viewer")
        let answer = try await demo.api("/runs/7/report", token)
        #expect(answer == command)
        // The words of its state, too, and all its counts.
        let status = try demo.fanfare("status", "7", "--json")
        let run = try await demo.api("/runs/7", token)
        #expect(run == status)
        let words = try await browser.text("p .state")
        let printed = try demo.fanfare("status", "7")
        #expect(printed.contains(words))
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(command.utf8)) as? [String: Any])
        let counts = try #require(report["counts"] as? [String: Int])
        for (state, count) in counts {
            let place = state == "audience" ? "audience" : "\(state).count"
            let shown = try await browser.script(
                "return document.querySelector('[data-value=\"\(place)\"]').textContent")
            #expect((shown as? String)?.replacing(",", with: "") == "\(count)", "\(state)")
        }
        // Nobody had it twice, pause or not.
        let accepted = try demo.folder.read("demo/simulator.jsonl").split(separator: "\n").compactMap { line in
            line.contains("\"status\":200") ? line.firstMatch(of: /"apns_id":"([^"]+)"/)?.1 : nil
        }
        #expect(accepted.count > 6_000)
        #expect(Set(accepted).count == accepted.count)
    }
}
