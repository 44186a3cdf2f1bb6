import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    /// What the browser asks before a page is left, by the page's own answer to its event.
    private static let asks =
        "return !window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"

    @Test func `an editor keeps the field's width, and is asked before an unsaved text is left`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns/new-podcast?view=files")
            let editor = "#campaign-new-podcast textarea"
            let width = "return document.querySelector('\(editor)').clientWidth"
            let before = try #require(try await browser.script(width) as? Int)
            try await browser.type("\n", into: editor)
            let numbers = "return document.querySelectorAll('#campaign-new-podcast .gutter span').length"
            let rows = try await browser.script("return document.querySelector('\(editor)').rows") as? Int
            let counted = try await browser.script(numbers) as? Int
            #expect(counted == rows)
            let after = try #require(try await browser.script(width) as? Int)
            #expect(before > 500 && after > 500, "\(before), \(after)")

            // A mistake: the server sends the text back, and it is still in no file.
            try await browser.type("prioritee: 3\n", into: editor)
            try await browser.follow(browser.named("Save"))
            let refused = try await browser.text("#campaign-new-podcast .found")
            #expect(refused.contains("Not saved"))
            let isAsked = try await browser.script(Self.asks) as? Bool
            #expect(isAsked == true)
        }
    }

    @Test func `Enter in a variable's field plans, and Shift with Enter breaks its line`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns/new-podcast")
            try await browser.type("https://example.com/118", into: "#v-link_url")
            // WebDriver's codes of Shift and of Enter.
            try await browser.type("The Quiet\u{E008}\u{E007}\u{E000}Reef", into: "#v-title")
            let typed = try await browser.script("return document.querySelector('#v-title').value") as? String
            #expect(typed == "The Quiet\nReef")
            try await browser.type("\u{E007}", into: "#v-title")
            try await browser.wait(for: "document.querySelector('#plan')")
            let plan = try await browser.text("#plan h2")
            #expect(plan.contains("it reaches"))
            try await browser.follow(browser.named("Change the values"))
            let kept = try await browser.script("return document.querySelector('#v-title').value") as? String
            #expect(kept == "The Quiet\nReef")
        }
    }
}
