import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    private static let german = "[name=\"c.alert.de.title\"]"
    private static let phones = "document.querySelector('.phones').textContent"

    @Test func `a new editor writes a campaign in two languages without a file`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns")
            try await browser.follow(browser.named("New campaign"))
            let gallery = try await PageCheck(browser).faults
            #expect(gallery == [])
            _ = try await browser.script("document.querySelector('[value=episode]').click()")
            try await browser.type("winter", into: "#name")
            try await browser.follow(browser.named("Create"))
            let heading = try await browser.text("h1")
            #expect(heading == "winter")

            // The phones show what is typed before it is saved.
            try await browser.type(" {{guest}}", into: "[name=\"c.alert.en.title\"]")
            try await browser.wait(for: "\(Self.phones).includes('New episode <guest>')")
            try await browser.wait(for: "document.querySelector('[name=\"c.variables.guest\"]')")
            try await browser.type("de", into: "[name=language]")
            try await browser.center("[name=language]")
            // The fields of the language appear in the same page.
            let visits = try await browser.script("return history.length") as? Int
            try await browser.click(browser.named("Add"))
            try await browser.wait(for: "document.querySelector('\(Self.german)')")
            let visitsAfter = try await browser.script("return history.length") as? Int
            #expect(visitsAfter == visits)
            try await browser.type("Neue Folge mit {{guest}}", into: Self.german)
            try await browser.type("{{title}} ist da.", into: "[name=\"c.alert.de.body\"]")
            try await browser.wait(for: "\(Self.phones).includes('Neue Folge mit <guest>')")
            // The phone of the language under edit comes first.
            let order = try await browser.script(
                "return getComputedStyle(document.querySelector('.phone[lang=de]').closest('li')).order")
            #expect(order as? String == "-1")

            _ = try await browser.script("document.querySelector('[name=\"c.who\"][value=everyone]').click()")
            let reach = "document.querySelector('output.reach').textContent"
            try await browser.wait(for: "\(reach).includes('would get the push')")
            let file = try demo.folder.read("demo/campaigns/winter.yaml")
            #expect(!file.contains("guest"))

            // A save with an error stays on the page, and the error stands at its field.
            let limit = "[name=\"c.guards.max_reach\"]"
            try await browser.type("x", into: limit)
            try await browser.center(".save .main")
            try await browser.click(browser.named("Save"))
            try await browser.wait(for: "document.querySelector('#c-guards-max_reach + .fault')")
            let isWrong = try await browser.script("return document.querySelector('#c-guards-max_reach').ariaInvalid")
            #expect(isWrong as? String == "true")
            _ = try await browser.script(
                "const field = document.querySelector('#c-guards-max_reach'); field.value = '1000';"
                    + " field.dispatchEvent(new Event('input', { bubbles: true }))")
            try await browser.wait(for: "!document.querySelector('.composer .fault')")
            try await browser.center(".save .main")
            try await browser.follow(browser.named("Save"))
            let notice = try await browser.text(".notice")
            #expect(notice.contains("Saved."))
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
        }
        let (campaign, template) = (
            try demo.folder.read("demo/campaigns/winter.yaml"), try demo.folder.read("demo/templates/winter.yaml")
        )
        #expect(campaign.contains("audience: everyone") && campaign.contains("  guest: \"\""))
        #expect(template.contains("  de:\n    title: \"Neue Folge mit {{guest}}\"\n    body: \"{{title}} ist da.\""))
        try demo.fanfare("validate", demo.folder.file("demo/campaigns/winter.yaml"))
    }

    @Test func `changes of a form survive the end of the session`() async throws {
        let demo = try DemoWithPages(devices: 500)
        let token = try demo.token("admin")
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns/new-podcast")
            let width = "return document.querySelector('#composer').clientWidth"
            let wide = try #require(try await browser.script(width) as? Int)
            #expect(wide > 500)
            _ = try await browser.script("document.querySelector('[data-language=de]').open = true")
            try await browser.protocolCommand("Network.clearBrowserCookies", [:])
            try await browser.type("!", into: Self.german)
            let found = "document.querySelector('[data-target=found]').textContent"
            try await browser.wait(for: "\(found).includes('your session has ended')")
            // The count shows no part of the sign-in page either.
            let limit = "const field = document.querySelector('#c-guards-max_reach'), old = field.value;"
            let changed = "field.dispatchEvent(new Event('input', { bubbles: true }));"
            _ = try await browser.script("\(limit) window.oldLimit = old; field.value = '77777'; \(changed)")
            let reach = "document.querySelector('output.reach').textContent"
            try await browser.wait(for: "\(reach).includes('Not counted: your session has ended')")
            let secrets = try await browser.script("return document.querySelectorAll('#composer [name=token]').length")
            #expect(secrets as? Int == 0)
            _ = try await browser.script("\(limit) field.value = window.oldLimit; \(changed)")
            try await browser.center("[data-target=found] a")
            try await browser.follow("[data-target=found] a")
            try await browser.type(token, into: "#token")
            try await browser.follow(browser.named("Sign in"))
            let note = try await browser.text(".restored")
            #expect(note.contains("These are the changes that you had not saved."))
            let kept = try await browser.script("return document.querySelector('\(Self.german)').value") as? String
            #expect(kept == "Neu bei {{show}}!")

            // The same for a form that is sent without a session.
            try await browser.protocolCommand("Network.clearBrowserCookies", [:])
            try await browser.center(".save .main")
            try await browser.follow(browser.named("Save"))
            try await browser.type(token, into: "#token")
            try await browser.follow(browser.named("Sign in"))
            let again = try await browser.script("return document.querySelector('\(Self.german)').value") as? String
            #expect(again == "Neu bei {{show}}!")
            let file = try demo.folder.read("demo/templates/new-podcast.yaml")
            #expect(!file.contains("{{show}}!"))
            try await browser.center(".save .main")
            try await browser.follow(browser.named("Save"))
            let written = try demo.folder.read("demo/templates/new-podcast.yaml")
            #expect(written.contains("title: \"Neu bei {{show}}!\""))
        }
    }
}

extension Browser {
    /// Scrolls an element to where no sticky line covers it.
    fileprivate func center(_ selector: String) async throws {
        _ = try await script("document.querySelector('\(selector)').scrollIntoView({ block: 'center' })")
    }
}
