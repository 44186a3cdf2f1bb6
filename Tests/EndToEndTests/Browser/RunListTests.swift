import Foundation
import GRDB
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
            // A long state, as of a run that failed, a long name, and a notice of a run with a long occurrence.
            _ = try await browser.script(
                """
                const row = document.querySelector("table.runs tbody tr");
                row.querySelector(".state").textContent = "failed: no value for {{link_url}}, {{title}} ".repeat(6);
                row.querySelector("th a").textContent = "a-campaign-with-a-very-long-name-".repeat(4);
                const notice = document.createElement("p"), link = notice.appendChild(row.querySelector("th a").cloneNode());
                notice.className = "notice paused";
                link.appendChild(row.querySelector(".state").cloneNode()).textContent = "x".repeat(300);
                document.querySelector("main").prepend(notice);
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

extension `The pages in a browser` {
    /// Three runs of a campaign with opens, of which one has none.
    private static func addOpens(_ demo: DemoWithPages) throws {
        try demo.folder.write(
            """
            campaign: weekend
            topic: com.example.wendercast
            push_type: alert
            template: new-podcast
            audience: everyone
            variables: {show: WenderCast, title: "The weekend episode, which has quite a long title", link_url: "https://example.com/43"}
            expires_after: 4h
            feedback: true
            conversion: {event: played_episode, within: 1h}

            """, to: "demo/campaigns/weekend.yaml")
        for number in 1...4 { try demo.fanfare("run", "weekend", "--occurrence", "\(number)", "--yes") }
        let queue = try DatabaseQueue(path: demo.folder.path + "/demo/fanfare.sqlite")
        try queue.write { db in
            try db.execute(
                sql: """
                    INSERT INTO feedback_count (run_id, kind, name, variant, locale_index, minute, events, value_micros)
                    SELECT id, 2, '', -1, number % 3, 5, 4 * number, 0
                    FROM (SELECT id, CAST(occurrence AS INTEGER) AS number FROM run WHERE campaign = 'weekend')
                    WHERE number > 1;
                    UPDATE run SET started_at = started_at - 7200000 WHERE campaign = 'weekend';
                    INSERT INTO feedback_event (
                        device_id, run_id, kind, name, id_high, id_low, happened_at, received_at)
                    SELECT device_id, 0, 5, 'played_episode', 1, device_id, started_at + 60000, started_at + 60000
                    FROM delivery JOIN run ON run.id = run_id
                    WHERE campaign = 'weekend' AND occurrence = '3' AND device_id % 9 = 0;
                    """)
        }
        try queue.close()
    }

    @Test(arguments: [1280, 390])
    func `opens have a column of the list, and a chart on their campaign's page`(width: Int) async throws {
        let demo = try DemoWithPages(devices: 500)
        try Self.addOpens(demo)
        try await Browser.with(width: width) { browser in
            try await browser.open(demo.link)
            let rows = try await browser.text("table.runs")
            #expect(rows.contains(" %"), "\(rows)")
            let opened = try await browser.script(
                "return [...document.querySelectorAll('table.runs td:nth-child(5)')].map((cell) => cell.textContent)")
            #expect((opened as? [String])?.prefix(4).map(\.isEmpty) == [false, false, false, true], "\(opened ?? "")")
            #expect(try await browser.script(Self.pushedOff) as? [String] == [])
            #expect(try await PageCheck(browser).faults == [])
            try await browser.open(demo.address + "/campaigns/weekend")
            let points =
                try await browser.script(
                    "return document.querySelectorAll('#responses circle.accepted, #responses circle.accent').length")
                as? Int
            #expect(points == 6)
            let table =
                try await browser.script(
                    "return document.querySelector('#responses table').textContent") as? String
            #expect(table?.contains("of accepted") == true, "\(table ?? "")")
            #expect(try await PageCheck(browser).faults == [])
        }
    }
}
