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
