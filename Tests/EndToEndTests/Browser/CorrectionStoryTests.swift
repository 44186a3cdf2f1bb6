import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test func `a typo in a value is corrected from the run's page, after a look at the phones`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/runs/1")
            try await browser.follow(browser.named("Correct the text"))
            let sent = try await browser.script("return document.querySelector('#v-title').value") as? String
            let known = try #require(sent)
            #expect(!known.isEmpty)
            // Nothing to send before a value has changed.
            let buttons = "return document.querySelectorAll('button.danger').length"
            let before = try await browser.script(buttons) as? Int
            #expect(before == 0)

            let typed = "The Quiet Reef, and it’s here"
            _ = try await browser.script("document.querySelector('#v-title').value = ''")
            try await browser.type(typed, into: "#v-title")
            try await browser.follow(browser.named("Preview"))
            let count = "return document.querySelectorAll('#corrected .phone').length"
            let phones = try await browser.script(count) as? Int
            #expect(phones == 8)
            let text = try await browser.text("#corrected .phones")
            #expect(text.contains(typed) && !text.contains(known))
            // What was sent then stands beside it.
            let then = try await browser.text(".phones")
            #expect(then.contains(known) && !then.contains(typed))
            let reach = try await browser.text("p.environment")
            #expect(reach.contains(/PRODUCTION: \d+ devices/))
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
            if let folder = ProcessInfo.processInfo.environment["SCREENSHOTS"] {
                try await browser.picture().write(to: URL(fileURLWithPath: "\(folder)/correction.png"))
            }

            // What is typed after the preview is not sent unseen.
            try await browser.type("!", into: "#v-title")
            try await browser.follow(browser.named("Send the correction"))
            let refused = try await browser.text("p.rejected")
            #expect(refused.contains("Not sent: the values or the texts are not those of the preview."))
            try await browser.follow(browser.named("Send the correction"))
            let corrects = try await browser.text("main")
            #expect(corrects.contains("Corrects run 1."))
            try await browser.wait(for: "document.querySelector('p .state.finished')")
            let link = try await browser.script("return location.pathname") as? String
            let report = try demo.fanfare("report", String(try #require(link).dropFirst("/runs/".count)))
            #expect(report.contains("Corrects   run 1 (replace)"))

            // The next correction begins with the values of this one, and is asked for on purpose.
            try await browser.open(demo.address + "/runs/1/correction")
            let next = try await browser.script("return document.querySelector('#v-title').value") as? String
            #expect(next == typed + "!")
            try await browser.follow(browser.named("Send the correction"))
            let again = try await browser.text("p.rejected")
            #expect(again.contains("tick the box"))
        }
    }
}
