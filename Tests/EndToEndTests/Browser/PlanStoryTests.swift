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
            try await browser.follow(browser.named("Files"))
            try await expectTyped(browser)
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

extension `The pages in a browser` {
    /// A demo whose runs above ten devices need a signature.
    private func demoWithApprovals() throws -> DemoWithPages {
        let demo = try DemoWithPages(devices: 500)
        let path = demo.folder.file("demo/fanfare.yaml")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try demo.folder.write(text + "\napprovals: {rules: [{above: 10, needs: 1}]}\n", to: "demo/fanfare.yaml")
        return demo
    }

    /// Opens a page until the daemon has read the configuration, and the page has this button.
    private func open(_ address: String, until button: String, _ browser: Browser) async throws {
        let deadline = ContinuousClock.now + Process.longest
        repeat {
            try await browser.open(address)
            if try await browser.text("main").contains(button) { return }
        } while ContinuousClock.now < deadline
        Issue.record("no \(button) at \(address)")
    }

    private func signIn(_ token: String, _ demo: DemoWithPages, _ browser: Browser) async throws {
        try await browser.open(demo.address + "/sign-in")
        try await browser.type(token, into: "#token")
        try await browser.follow(browser.named("Sign in"))
    }

    private func save(_ name: String, _ browser: Browser) async throws {
        guard let folder = ProcessInfo.processInfo.environment["SCREENSHOTS"] else { return }
        try await browser.picture().write(to: URL(fileURLWithPath: "\(folder)/\(name).png"))
    }

    @Test func `a plan is asked for with a note, read on phones, signed with a comment and sent`() async throws {
        let demo = try demoWithApprovals()
        let token = try demo.token("approver")
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/campaigns/new-podcast")
            try await browser.type("The Quiet Reef", into: "#v-title")
            try await browser.type("https://example.com/118", into: "#v-link_url")
            try await browser.follow(browser.named("Plan"))
            let plan = try await browser.url
            try await open(plan, until: "Ask for approval", browser)
            try await browser.type("before nine, please", into: "#note")
            try await save("plan-ask", browser)
            try await browser.follow(browser.named("Ask for approval"))
            try await save("plan-waiting", browser)
            try await browser.follow(browser.named("The approval"))
            let approval = try await browser.url
            let own = try await browser.text("main")
            #expect(own.contains("another person must sign it") && own.contains("Withdraw the request"))
            #expect(own.contains("before nine, please"))

            try await Browser.with(width: 390) { approver in
                try await signIn(token, demo, approver)
                try await approver.open(approval)
                #expect(try await approver.text(".phones").contains("The Quiet Reef"))
                let raw = try await approver.script("return document.body.innerText.includes('\"aps\"')") as? Bool
                #expect(raw == false)
                #expect(try await PageCheck(approver).faults == [])
                try await save("approval-390", approver)
            }
            try await Browser.with(isDark: true) { approver in
                try await signIn(token, demo, approver)
                try await approver.open(approval)
                try await save("approval-dark", approver)
                try await approver.type("looks right", into: "form[action$='/approve'] input[name=reason]")
                try await approver.follow("form[action$='/approve'] button")
                let done = try await approver.text("main")
                #expect(done.contains("It has all signatures") && done.contains("looks right"))
                let forms = "return document.querySelectorAll(\"form[action$='/approve']\").length"
                let buttons = try await approver.script(forms) as? Int
                #expect(buttons == 0)
                try await save("approval-signed-dark", approver)
            }
            try await browser.open(plan)
            let ready = try await browser.text("main")
            #expect(ready.contains("looks right") && ready.contains("before nine, please"))
            try await save("plan-approved", browser)
            try await browser.follow("form.start button.main")
            #expect(try await browser.text("main").contains("looks right"))
            try await browser.open(demo.address + "/approvals")
            #expect(try await PageCheck(browser).faults == [])
            try await save("approvals", browser)
            try await browser.follow("table a[href^='/approvals/']")
            #expect(try await browser.text("main").contains("Sent as run"))
            try await save("approval-used", browser)
        }
    }

    @Test func `a large correction is asked for, compared with what was sent, signed and sent`() async throws {
        let demo = try demoWithApprovals()
        let token = try demo.token("approver")
        try await Browser.with { browser in
            try await browser.open(demo.link)
            let values = "?v.title=The+Quiet+Reef%2C+corrected"
            try await open(demo.address + "/runs/1/correction\(values)", until: "Ask for approval", browser)
            #expect(try await PageCheck(browser).faults == [])
            try await save("correction-ask", browser)
            try await browser.follow(browser.named("Ask for approval"))
            #expect(try await browser.text("main").contains("awaiting approval, 0 of 1 signature"))
            let correction = try await browser.url
            try await browser.follow(browser.named("The approval"))
            let approval = try await browser.url
            try await Browser.with { approver in
                try await signIn(token, demo, approver)
                try await approver.open(approval)
                let seen = try await approver.text("main")
                #expect(seen.contains("sent by run 1") && seen.contains("The Quiet Reef, corrected"))
                #expect(try await PageCheck(approver).faults == [])
                try await save("correction-approval", approver)
                try await approver.follow("form[action$='/approve'] button")
            }
            try await browser.open(correction)
            try await save("correction-approved", browser)
            try await browser.follow(browser.named("Send the correction"))
            #expect(try await browser.text("main").contains("Corrects run 1."))
        }
    }
}
