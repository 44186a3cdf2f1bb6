import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test func `without script an editor is told a mistake, plans, starts, pauses, resumes and reads the report`()
        async throws
    {
        let demo = try DemoWithPages.withSlowBroadcasts()
        try await Browser.with(hasScript: false) { browser in
            try await browser.open(demo.link)
            try await browser.follow(browser.named("Campaigns"))
            try await browser.follow(browser.named("new-podcast"))
            let phones = try await browser.text(".phones")
            for text in ["Neu bei WenderCast", "Novedad en WenderCast", "Nouveau sur WenderCast"] {
                #expect(phones.contains(text))
            }
            try await tryMistake(browser)
            try await browser.follow(browser.named("new-podcast"))
            try await browser.type("The Quiet Reef", into: "#v-title")
            try await browser.type("https://example.com/118", into: "#v-link_url")
            try await browser.follow(browser.named("Plan"))
            let plan = try await browser.text("#plan h2")
            #expect(plan.contains("3,490"))
            try await browser.follow("form.start button.main")

            let note = try await browser.text("noscript")
            #expect(note.contains("Live updates need JavaScript"))
            try await look(browser, until: "running")
            try await browser.pauseAndResume()
            try await look(browser, until: "finished")
            try await readReport(browser)
        }
    }

    /// In the campaign's file: told at its line, and not saved.
    private func tryMistake(_ browser: Browser) async throws {
        try await browser.follow(browser.named("Files"))
        try await browser.type("prioritee: 3\n", into: "#campaign-new-podcast textarea")
        for (button, words) in [("Check", "1 error"), ("Save", "Not saved: correct the errors first.")] {
            try await browser.follow(browser.named(button))
            let found = try await browser.text("#campaign-new-podcast .found")
            #expect(found.contains(words))
            let trouble = try await browser.text("#campaign-new-podcast .troubles li.error")
            #expect(trouble.contains("unknown key \"prioritee\"; did you mean \"priority\"?"))
            let line = try await browser.text("#campaign-new-podcast .gutter .error")
            #expect(trouble.contains("line \(line), column 1"))
        }
        try await browser.follow(browser.named("Campaigns"))
    }

    /// By the link that says so, as a person would who waits.
    private func look(_ browser: Browser, until state: String) async throws {
        let deadline = ContinuousClock.now + Process.longest
        while try await !browser.text("p .state").hasPrefix(state) {
            try #require(ContinuousClock.now < deadline, "still not \(state)")
            try await browser.follow(browser.named("Reload this page"))
        }
    }

    /// Of whom APNs refused, then all of it as a file.
    private func readReport(_ browser: Browser) async throws {
        let run = try await browser.url
        try await browser.follow(browser.named("rejected"))
        let rejected = try await browser.text("tbody tr")
        #expect(rejected.contains("rejected"))
        try await browser.follow("tbody th a")
        let text = try await browser.text("main")
        #expect(text.contains("rejected by APNs"))
        try await browser.open(run)
        let number = run.split(separator: "/").last ?? ""
        let report = try await browser.download(
            "run-\(number)-report.html", endingWith: "</html>\n", by: browser.named("HTML"))
        #expect(report.contains("<h1>new-podcast</h1>") && report.contains("The counts balance"))
    }
}
