import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test func `values stay through a preview and a test, whose result appears by itself`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns/new-podcast")
            try await browser.type("The Quiet Reef", into: "#v-title")
            try await browser.type("https://example.com/118", into: "#v-link_url")
            try await browser.follow(browser.named("Update preview"))
            #expect(try await browser.text(".phones").contains("The Quiet Reef"))
            try await expectTyped(browser)
            // A preview is a link, so that Back and Reload send no form again.
            let address = try await browser.script("return location.search") as? String
            #expect(address?.contains("v.title=The") == true)

            try await browser.type("install-0", into: "#device")
            try await browser.follow(browser.named("Send test to this device"))
            try await expectTyped(browser)
            _ = try await browser.script("window.stays = true")
            try await browser.wait(
                for: "window.stays && /accepted|rejected/.test(document.querySelector('#test').textContent)")
            try await expectTyped(browser)

            // What was typed after the page was opened goes along with a save.
            try await browser.type(" again", into: "#v-title")
            try await browser.type("# a remark\n", into: "#campaign-new-podcast textarea")
            try await browser.follow(browser.named("Save"))
            try await expectTyped(browser, "The Quiet Reef again")
            #expect(try await browser.text("#campaign-new-podcast .found").contains("Saved."))
        }
    }

    private func expectTyped(_ browser: Browser, _ title: String = "The Quiet Reef") async throws {
        let typed = try await browser.script("return document.querySelector('#v-title').value") as? String
        #expect(typed == title)
        let link = try await browser.script("return document.querySelector('#v-link_url').value") as? String
        #expect(link == "https://example.com/118")
    }

    @Test func `a plan has an address, is sent once, and goes out again only on purpose`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            func plan() async throws -> String {
                try await browser.open(demo.address + "/campaigns/new-podcast")
                try await browser.type("The Quiet Reef", into: "#v-title")
                try await browser.type("https://example.com/118", into: "#v-link_url")
                try await browser.follow(browser.named("Plan"))
                return try #require(try await browser.script("return location.pathname") as? String)
            }
            let first = try await plan()
            #expect(first.hasPrefix("/plans/"))
            let name = try await browser.script("return document.querySelector('#occurrence').value") as? String
            #expect(name?.contains("the-quiet-reef") == true, "\(name ?? "")")
            try await browser.follow("form.start button.main")
            #expect(try await browser.text("h1").contains("new-podcast"))

            // Back leads to the plan, which asks for nothing and says what became of it.
            _ = try await browser.script("history.back()")
            try await browser.wait(for: "location.pathname == '\(first)' && document.querySelector('.step a')")
            #expect(try await browser.text("main").contains("sent as run"))

            let second = try await plan()
            #expect(second != first)
            #expect(try await browser.text("form.start").contains("Send it again: run"))
            try await browser.follow("form.start button.main")
            #expect(try await browser.text("[role=alert]").contains("same content"))
            try await browser.click("form.start input[type=checkbox]")
            try await browser.follow("form.start button.main")
            let run = try await browser.script("return location.pathname") as? String
            #expect(run?.hasPrefix("/runs/") == true)
        }
    }
}
