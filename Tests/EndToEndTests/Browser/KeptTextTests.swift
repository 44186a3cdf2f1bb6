import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    private static let editor = "#campaign-new-podcast textarea"

    @Test(arguments: [true, false])
    func `a text that is saved after the session's end is there again after the sign-in`(hasScript: Bool) async throws {
        let demo = try DemoWithPages(devices: 500)
        let token = try demo.token("admin")
        try await Browser.with(hasScript: hasScript) { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns/new-podcast?view=files")
            try await browser.type("# kept\n", into: Self.editor)
            try await browser.protocolCommand("Network.clearBrowserCookies", [:])
            try await browser.follow(browser.named("Save"))
            let heading = try await browser.text("h1")
            #expect(heading == "Sign in")
            let reason = try await browser.text(".notice")
            #expect(reason.contains("Your session has ended. What you typed is kept"))
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
            // A wrong token loses nothing either.
            try await browser.type("fanfare_wrong", into: "#token")
            try await browser.follow(browser.named("Sign in"))
            try await browser.type(token, into: "#token")
            try await browser.follow(browser.named("Sign in"))
            let campaign = try await browser.text("h1")
            #expect(campaign == "new-podcast")
            let text = try await browser.script("return document.querySelector('\(Self.editor)').value") as? String
            #expect(text?.contains("# kept\n") == true)
            // Signing in saves nothing by itself.
            let file = try demo.folder.read("demo/campaigns/new-podcast.yaml")
            #expect(!file.contains("# kept"))
            try await browser.follow(browser.named("Save"))
            let saved = try await browser.text("#campaign-new-podcast .found")
            #expect(saved.contains("Saved."))
            let written = try demo.folder.read("demo/campaigns/new-podcast.yaml")
            #expect(written.contains("# kept"))
        }
    }

    @Test func `a check that cannot be made says why, and an unsaved text comes back with its page`() async throws {
        let demo = try DemoWithPages(devices: 500)
        let token = try demo.token("admin")
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns/new-podcast?view=files")
            try await browser.protocolCommand("Network.clearBrowserCookies", [:])
            try await browser.type("# kept\n", into: Self.editor)
            let found = "document.querySelector('#campaign-new-podcast .found').textContent"
            try await browser.wait(for: "\(found).includes('Not checked: your session has ended')")
            let said = try await browser.script("return \(found)") as? String
            #expect(said?.contains("no problem") == false)
            try await browser.follow("#campaign-new-podcast .found a")
            try await browser.type(token, into: "#token")
            try await browser.follow(browser.named("Sign in"))
            let note = try await browser.text(".restored")
            #expect(note.contains("This is the text that you had not saved."))
            let text = "document.querySelector('\(Self.editor)').value"
            let kept = try await browser.script("return \(text)") as? String
            #expect(kept?.contains("# kept\n") == true)
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
            // It is discarded only by a button, and then gone.
            _ = try await browser.script("document.querySelector('.restored').scrollIntoView({ block: 'center' })")
            try await browser.click(browser.named("Discard it"))
            let discarded = try await browser.script("return \(text)") as? String
            #expect(discarded?.contains("# kept") == false)
            try await browser.open(demo.address + "/campaigns/new-podcast?view=files")
            let fresh = try await browser.script("return \(text)") as? String
            #expect(fresh?.contains("# kept") == false)

            try demo.stop()
            try await browser.type("# alone\n", into: Self.editor)
            try await browser.wait(for: "\(found).includes('Not checked: the server does not respond')")
        }
    }
}
