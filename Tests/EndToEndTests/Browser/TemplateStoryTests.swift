import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test func `a new template is opened again, is refused when it is too long, and is deleted`() async throws {
        let demo = try DemoWithPages(devices: 500)
        let editor = "#template-winter textarea"
        try await Browser.with { browser in
            try await browser.open(demo.link)
            try await browser.open(demo.address + "/new/template?name=winter")
            try await browser.follow(browser.named("Save"))
            try await browser.follow(browser.named("Campaigns"))
            try await browser.follow(browser.named("Templates"))
            let list = try await browser.text("main")
            #expect(list.contains("winter") && list.contains("no campaign"))
            try await picture(browser, "templates")
            try await browser.follow(browser.named("winter"))
            let phone = try await browser.text(".phone")
            #expect(phone.contains("<title> is out."))

            // The check while typing says it, and saving is refused.
            _ = try await browser.script(
                """
                const field = document.querySelector('\(editor)');
                field.value = field.value.replace('is out.', 'is out. ' + 'very '.repeat(1000));
                """)
            try await browser.type("# long\n", into: editor)
            try await browser.wait(for: "document.querySelector('.troubles li.error')")
            let trouble = try await browser.text(".troubles li.error")
            #expect(trouble.contains(/the payload in en has at least 5\d\d\d bytes; Apple accepts 4096/))
            try await browser.follow(browser.named("Save"))
            let refused = try await browser.text(".found")
            #expect(refused.contains("Not saved: correct the errors first."))
            try await picture(browser, "template-too-long")

            // The refused text is kept in this tab, until it is saved or discarded.
            try await browser.open(demo.address + "/templates/winter")
            // Not by the mouse: the button may stand below the line that sticks to the window's lower edge.
            _ = try await browser.script("document.querySelector('.restored button').click()")
            try await browser.type("# shorter\n", into: editor)
            try await browser.follow(browser.named("Save"))
            let saved = try await browser.text(".found")
            #expect(saved.contains("Saved."))
            let faults = try await PageCheck(browser).faults
            #expect(faults == [])
            try await browser.click("details.danger summary")
            try await picture(browser, "template")
            try await browser.follow("details.danger button")
            let left = try await browser.text("main")
            #expect(!left.contains("winter"))
            #expect(!FileManager.default.fileExists(atPath: demo.folder.file("demo/templates/winter.yaml")))
        }
    }

    private func picture(_ browser: Browser, _ name: String) async throws {
        guard let folder = ProcessInfo.processInfo.environment["SCREENSHOTS"] else { return }
        try await browser.picture().write(to: URL(fileURLWithPath: "\(folder)/\(name).png"))
    }
}
