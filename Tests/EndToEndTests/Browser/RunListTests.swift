import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test(arguments: [true, false])
    func `the list of runs shows their first words, and finds one by them`(hasScript: Bool) async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with(hasScript: hasScript) { browser in
            try await browser.open(demo.link)
            let rows = try await browser.text("table.runs")
            #expect(rows.contains("New on WenderCast"), "\(rows)")
            try await browser.type("new wenderCAST", into: "input[name=find]")
            try await browser.follow(browser.named("Show"))
            let address = try await browser.url
            #expect(address.contains("find=new+wenderCAST"))
            let found = try await browser.text("table.runs tbody tr")
            #expect(found.contains("new-podcast"))
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
            try await browser.open(demo.address + "/?silent=hide&kind=background")
            let none = try await browser.text("main .none")
            #expect(none == "No run matches.")
            try await browser.follow(browser.named("Show all"))
            let all = try await browser.text("table.runs")
            #expect(all == rows || hasScript)
        }
    }
}

extension `The pages in a browser` {
    /// Cells of the list whose text is wider than they are, or that are beyond the window. A phone shows no heads.
    private static let pushedOff = """
        const seen = (cell) => cell.checkVisibility() && (innerWidth > 640 || !cell.closest("thead"));
        return [...document.querySelectorAll("table.runs :is(th, td)")].filter(seen)
          .filter((cell) => cell.scrollWidth > cell.clientWidth + 1 || cell.getBoundingClientRect().right > innerWidth)
          .map((cell) => cell.textContent.trim().slice(0, 40));
        """

    @Test(arguments: [1280, 390])
    func `the columns of the list stay in the window, and the header is short, also with long texts`(
        width: Int
    ) async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with(width: width) { browser in
            try await browser.open(demo.link)
            let silent = try await browser.text("main")
            #expect(silent.contains("silent runs are not listed"))
            try await browser.open(demo.address + "/?silent=show")
            // A long state, as of a run that failed, and a long name.
            _ = try await browser.script(
                """
                const row = document.querySelector("table.runs tbody tr");
                row.querySelector(".state").textContent = "failed: no value for {{link_url}}, {{title}} ".repeat(6);
                row.querySelector("th a").textContent = "a-campaign-with-a-very-long-name-".repeat(4);
                """)
            #expect(try await browser.script(Self.pushedOff) as? [String] == [])
            let header = try await browser.script("return document.querySelector('header.head').offsetHeight") as? Int
            #expect((header ?? 999) <= (width == 390 ? 90 : 60), "\(header ?? 0)")
            let sections = try await browser.script(
                "return [...document.querySelectorAll('.head nav a')].map((link) => link.getBoundingClientRect().right)"
            )
            #expect((sections as? [Double])?.allSatisfy { $0 <= Double(width) } == true, "\(sections ?? "")")
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
        }
    }

    @Test func `times are in the browser's zone, and in another one after a form`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with { browser in
            try await browser.protocolCommand("Emulation.setTimezoneOverride", ["timezoneId": "Asia/Tokyo"])
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/runs/1")
            let foot = try await browser.text(".foot summary")
            #expect(foot == "Times in Asia/Tokyo")
            let shown = "const time = document.querySelector('.facts time'); return [time.textContent, time.title]"
            let tokyo = try await browser.script(shown) as? [String] ?? []
            #expect(tokyo.count == 2 && tokyo[1] != "\(tokyo[0]) UTC" && tokyo[1].hasSuffix(" UTC"))
            try await browser.click(".foot summary")
            _ = try await browser.script("document.querySelector('[name=zone]').value = ''")
            try await browser.type("UTC", into: "[name=zone]")
            try await browser.follow(browser.named("Change"))
            let utc = try await browser.script(shown) as? [String] ?? []
            #expect(utc.count == 2 && utc[1] == "\(utc[0]) UTC" && utc[1] == tokyo[1])
            #expect(try await browser.url.hasSuffix("/runs/1"))
        }
    }
}
