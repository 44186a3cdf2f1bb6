import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test func `a scheduled campaign without its values is marked on its page, in the calendar and on Health`()
        async throws
    {
        let demo = try DemoWithPages(devices: 500)
        let text = try demo.folder.read("demo/campaigns/new-podcast.yaml")
        let winter = text.replacing("campaign: new-podcast", with: "campaign: winter")
        try demo.folder.write(
            winter + "\nschedule: {cron: \"0 \(try Self.distantHour()) * * *\", zone: Europe/Berlin}\n",
            to: "demo/campaigns/winter.yaml")
        try await Browser.with { browser in
            try await browser.open(demo.link)
            for page in ["/calendar", "/health", "/campaigns/winter"] {
                try await browser.open(demo.address + page)
                let found = try await browser.text("main")
                #expect(found.contains("will fail: no value for link_url, title"), "\(page)")
                let faults = try await PageCheck(browser).faults
                #expect(faults == [], "\(page)")
                guard let folder = ProcessInfo.processInfo.environment["SCREENSHOTS"] else { continue }
                let file = "\(folder)/missing-\(page.dropFirst().replacing("/", with: "-")).png"
                try await browser.picture().write(to: URL(fileURLWithPath: file))
            }
            try await fillOneStart(browser, demo)
            try await browser.open(demo.address + "/campaigns/winter")
            // The person who starts it now gives the values.
            try await browser.type("The Quiet Reef", into: "#v-title")
            try await browser.type("https://example.com/118", into: "#v-link_url")
            try await browser.click("#when option[value=now]")
            try await browser.follow(browser.named("Plan"))
            let plan = try await browser.text("#plan h2")
            #expect(plan.contains("it reaches"))
        }
    }

    /// The hour in Berlin that is half a day away: the daemon starts nothing meanwhile.
    private static func distantHour() throws -> Int {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "Europe/Berlin"))
        return calendar.component(.hour, from: Date(timeIntervalSinceNow: 43_200))
    }

    /// The calendar shows the gap; one click leads to its form, and then the calendar shows the values.
    private func fillOneStart(_ browser: Browser, _ demo: DemoWithPages) async throws {
        try await browser.open(demo.address + "/calendar?weeks=2")
        try await browser.follow(browser.named("Give values"))
        #expect(try await browser.text(".state") == "will fail: no value for link_url, title")
        try await browser.type("The Quiet Reef", into: "#v-title")
        try await browser.type("https://example.com/118", into: "#v-link_url")
        try await browser.follow(browser.named("Update preview"))
        #expect(try await browser.text(".phones").contains("The Quiet Reef"))
        try await picture(browser, "next-start")
        try await browser.follow(browser.named("Save the values"))
        #expect(try await browser.text("main").contains("The start sends these values."))
        try await picture(browser, "next-start-saved")
        try await browser.open(demo.address + "/calendar?weeks=2")
        let filled = try await browser.named("https://example.com/118 · The Quiet Reef")
        try await picture(browser, "calendar-filled")
        try await browser.follow(filled)
        #expect(try await browser.text(".state") == "its own values")
        #expect(try await PageCheck(browser).faults == [])
    }

    private func picture(_ browser: Browser, _ name: String) async throws {
        guard let folder = ProcessInfo.processInfo.environment["SCREENSHOTS"] else { return }
        try await browser.picture().write(to: URL(fileURLWithPath: "\(folder)/\(name).png"))
    }
}
