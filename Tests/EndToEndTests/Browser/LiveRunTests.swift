import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    /// Numbers of the run's page, read in one step: the table, the bar with its legend, and the button's warning.
    private static let numbers = """
        const number = (text) => Number((text.match(/[\\d,]+/) ?? [""])[0].replaceAll(",", ""));
        const cell = (name) => number(document.querySelector(`td[data-value="${name}.count"]`).textContent);
        const states = ["accepted", "rejected", "unknown", "suppressed", "leased", "pending"].filter((name) => cell(name) > 0);
        const drawn = [...document.querySelectorAll("#sum title:not([id])")].map((title) => title.textContent);
        const legend = [...document.querySelectorAll("#sum li")].map((item) => item.textContent.split(" (")[0]);
        const left = cell("leased") + cell("pending");
        return JSON.stringify({
          moment: cell("accepted"),
          table: states.map((name) => `${name} ${cell(name)}`),
          drawn: drawn.map((text) => text.replace(":", "").replaceAll(",", "")),
          legend: legend.map((text) => text.replaceAll(",", "")),
          left, remaining: number(document.querySelector("form[action$='/cancel'] [data-value=left]")?.textContent ?? ""),
        });
        """

    private struct Numbers: Decodable {
        var moment: Int
        var table, drawn, legend: [String]
        var left, remaining: Int
    }

    @Test func `all numbers of a run's page are of one moment, and a paused run has no time left`() async throws {
        let demo = try DemoWithPages.withSlowBroadcasts(pace: 20)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try demo.fanfare(
                "run", "new-podcast", "--occurrence", "live", "--var", "title=Live", "--var",
                "link_url=https://example.com/live", "--yes", "--no-wait")
            try await browser.open(demo.address + "/runs/7")
            try await browser.wait(
                for: "document.querySelector('p .state.running') && document.querySelector('progress').value > 0.02")
            _ = try await browser.script("window.stays = true")
            var seen: Set<Int> = []
            for _ in 0..<4 {
                let text = try #require(try await browser.script(Self.numbers) as? String)
                let numbers = try JSONDecoder().decode(Numbers.self, from: Data(text.utf8))
                #expect(numbers.drawn == numbers.table && numbers.legend == numbers.table, "\(numbers)")
                #expect(numbers.remaining == numbers.left, "\(numbers)")
                seen.insert(numbers.moment)
                let settled =
                    "document.querySelector('td[data-value=\"accepted.count\"]').textContent.replaceAll(',', '')"
                try await browser.wait(for: "window.stays && Number(\(settled)) > \(numbers.moment)")
            }
            #expect(seen.count == 4)
            // The counted figures and the charts move, too, and an open table stays open.
            try await browser.click("[data-part=charts] details summary")
            let before = try await browser.script("return document.querySelector('[data-part=reasons]').textContent")
            let reasons = try #require(before as? String)
            let quoted = try String(decoding: JSONEncoder().encode(reasons), as: UTF8.self)
            try await browser.wait(
                for: "window.stays && document.querySelector('[data-part=reasons]').textContent !== \(quoted)")
            let isOpen = try await browser.script("return document.querySelector('[data-part=charts] details').open")
            #expect(isOpen as? Bool == true)

            try await browser.click(browser.named("Pause"))
            try await browser.follow("details[open] form button")
            let pace = try await browser.script("return document.querySelector('[data-value=pace]').textContent.trim()")
            #expect(pace as? String == "")
            let page = try await browser.text("main")
            #expect(!page.contains("remaining\n") && !page.contains("/s, about"))
        }
    }
}

extension `The pages in a browser` {
    @Test func `a person who asks for it is notified when a run halts`() async throws {
        let demo = try DemoWithPages.withSlowBroadcasts(pace: 20)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.protocolCommand(
                "Browser.grantPermissions", ["permissions": ["notifications"], "origin": demo.address])
            try demo.fanfare(
                "run", "new-podcast", "--occurrence", "live", "--var", "title=Live", "--var",
                "link_url=https://example.com/live", "--yes", "--no-wait")
            try await browser.open(demo.address + "/runs/7")
            try await browser.wait(for: "document.querySelector('p .state.running')")
            // What the browser would show is written down: a headless one shows nothing.
            _ = try await browser.script(
                """
                window.Notification = class {
                  static permission = "granted";
                  static requestPermission() { return Promise.resolve("granted"); }
                  constructor(title, options) { sessionStorage.setItem("told", `${title}: ${options.body}`); }
                };
                """)
            try await browser.click("[data-watch]")
            try await browser.wait(for: "document.querySelector('[data-watch]').disabled")
            try demo.fanfare("pause", "7", "--reason", "wrong link")
            try await browser.wait(for: "sessionStorage.getItem('told')")
            let told = try await browser.script("return sessionStorage.getItem('told')") as? String ?? ""
            #expect(told.hasPrefix("new-podcast live: ") && told.contains("paused"), "\(told)")
        }
    }
}
