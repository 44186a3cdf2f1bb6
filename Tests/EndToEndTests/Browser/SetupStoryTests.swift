import APNs
import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    @Test func `a new team gets from an empty installation to its first author without a shell`() async throws {
        let place = try Installation(devices: 12)
        let pem = try String(contentsOfFile: place.folder.file("key.p8"), encoding: .utf8)
        // The key comes from Apple, to the admin's own computer.
        let own = try TemporaryDirectory()
        let key = try own.write(pem, to: "AuthKey_\(SampleInstallation.keyID).p8")
        let stranger = try own.write(try SigningKey.generatedPEM(), to: "AuthKey_OTHER.p8")
        let list = try own.write(
            try String(contentsOfFile: place.folder.file("devices.csv"), encoding: .utf8), to: "devices.csv")
        try FileManager.default.removeItem(atPath: place.folder.file("key.p8"))
        let program = try RunningProgram(["serve", "--create", "--link"], in: place.folder)
        try program.wait { program.errors.contains("/sign-in?link=") }
        let link = String(
            try #require(program.errors.firstMatch(of: /http:\/\/[^\s]+\/sign-in\?link=[\w-]+/)).0)
        let address = String(link.prefix { $0 != "?" }.dropLast("/sign-in".count))
        var (invitation, session) = ("", "")
        try await Browser.with { browser in
            try await browser.open(link)
            try await browser.open(address + "/setup")
            try await picture(browser, "setup-empty")
            #expect(try await browser.text("main").contains("There is no key yet."))

            // A key that APNs does not know is not kept.
            try await browser.type(stranger, into: "form[action='/setup/key'] input[type=file]")
            try await browser.follow("form[action='/setup/key'] button")
            try await picture(browser, "setup-refused")
            #expect(try await browser.text("[role=alert]").contains("APNs did not accept it"))
            #expect(!FileManager.default.fileExists(atPath: place.folder.file("key.p8")))
            try await browser.type(key, into: "form[action='/setup/key'] input[type=file]")
            try await browser.follow("form[action='/setup/key'] button")
            #expect(try await browser.text("main").contains("APNs accepts the key."))
            #expect(try await browser.text(".steps li").contains("com.example.wendercast, with a key that works here."))
            #expect(try String(contentsOfFile: place.folder.file("key.p8"), encoding: .utf8) == pem)

            try await browser.type(list, into: "form[action='/setup/devices'] input[type=file]")
            try await browser.follow("form[action='/setup/devices'] button")
            try await picture(browser, "setup-import")
            #expect(try await browser.text("main").contains("First devices"))
            try await browser.follow(browser.named("Import these 12 devices"))
            try await browser.wait(for: "document.querySelector('main').innerText.includes('12 devices imported')")
            try await browser.follow(browser.named("Back to Setup"))

            try await browser.type("Anna’s phone", into: "form[action='/setup/test-devices'] input[name=name]")
            try await browser.type("install-3", into: "form[action='/setup/test-devices'] input[name=device]")
            try await browser.follow("form[action='/setup/test-devices'] button")
            #expect(try await browser.text("main").contains("The test device is in the configuration."))
            let written = try String(contentsOfFile: place.folder.file("fanfare.yaml"), encoding: .utf8)
            #expect(written.contains("test_devices: {\"Anna’s phone\": \"install-3\"}"))
            try await picture(browser, "setup-done")
            #expect(try await PageCheck(browser).faults == [])

            try await browser.open(address + "/people")
            try await browser.type("anna", into: "form[action='/people/invite'] input[name=name]")
            try await browser.follow("form[action='/people/invite'] button")
            invitation = try await browser.text(".secret")
            session = try await browser.sessionCookie()
            #expect(try await PageCheck(browser).faults == [])
            try await picture(browser, "people")
        }
        try await Browser.with(width: 390) { browser in
            try await browser.open(address + "/sign-in")
            try await browser.protocolCommand(
                "Network.setCookie", ["name": "fanfare", "value": session, "url": address])
            try await browser.open(address + "/setup")
            #expect(try await browser.text("main").contains("File of devices"))
            #expect(try await PageCheck(browser).faults == [])
        }
        try await Browser.with(width: 390) { browser in
            // A chat program opens the link first, for its preview.
            _ = try LocalPage.text(invitation)
            try await browser.open(invitation)
            #expect(try await browser.text("main").contains("invited as anna"))
            #expect(try await PageCheck(browser).faults == [])
            try await picture(browser, "join-390")
            try await browser.follow(browser.named("Sign in as anna"))
            #expect(try await browser.text("h1") == "Welcome, anna")
            #expect(try await browser.text(".secret").hasPrefix("fanfare_"))
            try await browser.follow(browser.named("Go to the broadcasts"))
            #expect(try await browser.text(".visitor").contains("anna author"))
            try await browser.open(address + "/setup")
            #expect(try await PageCheck(browser).faults == [])
            try await picture(browser, "setup-author-390")
            try await browser.open(invitation)
            #expect(try await browser.text("main").contains("This link was used"))
        }
        // What the pages wrote is what the command line uses: a push reaches the device by its name.
        let test = try place.fanfare(
            "test-send", "breaking-news", "--to", "Anna’s phone", "--var", "headline=H", "--var",
            "link_url=https://example.com")
        #expect(test.status == 0, "\(test.errors)\(test.output)")
        program.signal(SIGTERM)
        _ = try program.finish()
    }

    /// Saves a picture for a person, if the environment names a folder for them.
    private func picture(_ browser: Browser, _ name: String) async throws {
        guard let folder = ProcessInfo.processInfo.environment["PICTURES"] else { return }
        try await browser.picture().write(to: URL(fileURLWithPath: "\(folder)/\(name).png"))
    }
}
