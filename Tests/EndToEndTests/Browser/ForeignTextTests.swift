import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    /// Runs wherever it is taken for a part of the page.
    private static let marker = "<img src=x onerror=document.title='broken'>"

    @Test func `a script in a device, a tag, a segment, a file or a text is text on every page`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try writeForeign(demo)
        let name = Self.marker.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        try await Browser.with { browser in
            try await browser.open(demo.link)
            // A test to that device: its name is told where it was sent.
            try await browser.open("\(demo.address)/campaigns/\(name)")
            try await browser.type(Self.marker, into: "#device")
            try await browser.follow(browser.named("Update preview"))
            try await expectText(browser, "the campaign with the device's data")
            try await browser.follow(browser.named("Plan"))
            try await expectText(browser, "the plan")
            try await browser.follow(browser.named("Send test to this device"))
            try await expectText(browser, "the test")
            for page in [
                "/runs/7/deliveries", "/campaigns", "/campaigns/\(name)", "/campaigns/\(name)?view=files",
                "/campaigns/wrong\(name)",
                "/calendar?weeks=5",
                "/segments", "/segments/\(name)", "/segments/\(name)?done=\(name)", "/devices?find=\(name)",
                "/devices?find=nobody\(name)", "/audit", "/audit?actor=\(name)", "/new/campaign?name=\(name)",
            ] {
                try await browser.open(demo.address + page)
                try await expectText(browser, page)
            }
            for page in ["/", "/runs/7", "/health"] {
                try await browser.open(demo.address + page)
                try await expectText(browser, page, isThere: false)
            }
            try await typeForeign(demo, browser)
        }
    }

    /// Devices, segments and files with the marker wherever a text is free.
    private func writeForeign(_ demo: DemoWithPages) throws {
        let marker = Self.marker
        let device: [String: Any] = [
            "token": String(repeating: "ab", count: 32), "environment": "production",
            "topic": "com.example.wendercast", "installation_id": marker, "user_id": "\(marker) user", "locale": "en",
            "model": marker, "tags": [marker], "attributes": ["name": marker],
        ]
        let line = try JSONSerialization.data(withJSONObject: device)
        try demo.folder.write(String(decoding: line, as: UTF8.self) + "\n", to: "\(marker).jsonl")
        try demo.fanfare("devices", "import", demo.folder.file("\(marker).jsonl"))
        try demo.fanfare("segments", "define", marker, "tag(\"\(marker)\")")
        let day = Date(timeIntervalSinceNow: 5 * 86_400).formatted(.iso8601.year().month().day())
        try demo.folder.write(
            """
            campaign: foreign
            topic: com.example.wendercast
            push_type: alert
            template: new-podcast
            audience: segment("\(marker)")
            variables: {show: "\(marker)", title: "\(marker)", link_url: "\(marker)"}
            schedule: {at: \(day)T12:00, zone: UTC}
            expires_after: 4h

            """, to: "demo/campaigns/\(marker).yaml")
        try demo.folder.write(
            "campaign: \"wrong \(marker)\"\n\"\(marker)\": 1\ntemplate: \"\(marker)\"\n",
            to: "demo/campaigns/wrong\(marker).yaml")
    }

    /// Where a script puts what the server found into the page.
    private func typeForeign(_ demo: DemoWithPages, _ browser: Browser) async throws {
        try await browser.open("\(demo.address)/campaigns/new-podcast?view=files")
        try await browser.type("\"\(Self.marker)\": 1\n", into: "#campaign-new-podcast textarea")
        try await browser.wait(for: "document.querySelector('#campaign-new-podcast .troubles li.error')")
        try await expectText(browser, "what the editor found")
        try await browser.open("\(demo.address)/segments")
        try await browser.click("input[name='c.who'][value=expression]")
        try await browser.type("locale = \"\(Self.marker)\" and", into: "textarea[name=expression]")
        try await browser.wait(for: "document.querySelector('output .bad')")
        try await expectText(browser, "what counting found")
    }

    /// - Parameter isThere: false: it may be.
    private func expectText(_ browser: Browser, _ page: String, isThere: Bool = true) async throws {
        let title = try await browser.script("return document.title") as? String
        #expect(title != "broken", "\(page)")
        let found = try await browser.script(
            """
            const made = document.querySelectorAll("img, [onerror], main script:not([src^='/assets/'])").length;
            const typed = [...document.querySelectorAll("input, textarea")].map(field => field.value).join();
            return [made, (document.body.textContent + typed + document.title).includes("<img src=x onerror")];
            """)
        let answer = found as? [Any] ?? []
        #expect(answer.first as? Int == 0, "\(page)")
        // Else the page would be a wrong one to look at.
        #expect(answer.last as? Bool == true || !isThere, "\(page)")
    }
}
