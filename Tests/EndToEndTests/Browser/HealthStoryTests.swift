import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test func `Health says what doctor finds, and that a stop is why nothing is sent`() async throws {
        let demo = try DemoWithPages(devices: 500)
        try demo.stop()
        let key = "AuthKey_DEMOKEY001.p8"
        try FileManager.default.removeItem(atPath: demo.folder.file("demo/\(key)"))
        try demo.folder.write("template: lost\nalert: 3\n", to: "demo/templates/lost.yaml")
        let serve = try RunningProgram(
            ["serve", "--link", "--config", demo.folder.file("demo/fanfare.yaml")], in: demo.folder)
        try serve.wait { serve.errors.contains("/sign-in?link=") }
        let link = String(try #require(serve.errors.firstMatch(of: /http:\/\/[^\s]+\/sign-in\?link=[\w-]+/)).0)
        let address = String(link.prefix(while: { $0 != "?" }).dropLast("/sign-in".count))
        try await Browser.with { browser in
            try await browser.open(link)
            try await browser.open(address + "/health")
            // The page loads itself again until the first checks have ended.
            try await browser.wait(for: "document.querySelector('main').textContent.includes('credential')")
            let verdict = try await browser.text(".verdict")
            #expect(verdict.hasPrefix("wrong") && verdict.contains(key), "\(verdict)")
            let checks = try await browser.text("main")
            #expect(checks.contains("lost.yaml") && checks.contains("no campaign uses this template"), "\(checks)")
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
            try await browser.follow(browser.named("Stop everything"))
            try await browser.follow("button.stop")
            try await browser.open(address + "/health")
            let page = try await browser.text("main")
            #expect(page.contains("everything was stopped by") && page.contains("until the stop is lifted"))
            #expect(!page.contains("has no sender"))
        }
        serve.signal(SIGINT)
        _ = try serve.finish()
    }
}
