import APNs
import Foundation
import TestSupport
import Testing

extension `The pages in a browser` {
    /// One team's first day, in the order in which it happens. Each step leaves a picture if the environment names a
    /// folder for them.
    @Test func `a new editor gets from an empty installation to a corrected broadcast without YAML and shell`()
        async throws
    {
        let story = try WholeStory()
        try await Browser.with { admin in
            try await story.setUp(admin)
            let (anna, ben) = (
                try await story.invite("anna", role: "author", admin),
                try await story.invite("ben", role: "approver", admin)
            )
            try await Browser.with { editor in
                try await Browser.with(width: 390) { phone in
                    try await story.join(anna, as: "anna", editor)
                    try await story.join(ben, as: "ben", phone)
                    try await story.write(editor)
                    let plan = try await story.planAndTest(editor)
                    try await story.approve(try await story.askForApproval(editor), phone)
                    try await story.send(plan, admin)
                    let run = try await story.find(editor)
                    try await story.correct(run, by: admin, signedBy: phone)
                }
            }
        }
        try story.end()
    }
}

/// An empty installation whose sends above five devices need a signature, and the steps of its first day.
private final class WholeStory {
    private let place: Installation
    private let own: TemporaryDirectory
    private let key: String
    private let devices: String
    private let program: RunningProgram
    private let link: String
    private let address: String
    private let axe: AxeCore
    private var shots = 0

    init() throws {
        axe = try AxeCore()
        place = try Installation(devices: 12)
        let pem = try String(contentsOfFile: place.folder.file("key.p8"), encoding: .utf8)
        own = try TemporaryDirectory()
        key = try own.write(pem, to: "AuthKey_\(SampleInstallation.keyID).p8")
        devices = try own.write(
            try String(contentsOfFile: place.folder.file("devices.csv"), encoding: .utf8), to: "devices.csv")
        try FileManager.default.removeItem(atPath: place.folder.file("key.p8"))
        // Nothing is written yet.
        for folder in ["campaigns", "templates"] {
            for file in try FileManager.default.contentsOfDirectory(atPath: place.folder.file(folder)) {
                try FileManager.default.removeItem(atPath: place.folder.file("\(folder)/\(file)"))
            }
        }
        let settings = try place.folder.read("fanfare.yaml")
            .replacing("listen: \"127.0.0.1:0\"", with: "listen: \"127.0.0.1:0\", editing: true")
        try place.folder.write(
            settings + "\napprovals: {rules: [{above: 5, needs: 1}]}\n", to: "fanfare.yaml")
        program = try RunningProgram(["serve", "--create", "--link"], in: place.folder)
        try program.wait { [program] in program.errors.contains("/sign-in?link=") }
        link = String(try #require(program.errors.firstMatch(of: /http:\/\/[^\s]+\/sign-in\?link=[\w-]+/)).0)
        address = String(link.prefix { $0 != "?" }.dropLast("/sign-in".count))
    }

    func end() throws {
        program.signal(SIGTERM)
        _ = try program.finish()
    }

    /// Looks at a page as a person does: a picture, and nothing that a team without operators cannot read.
    private func look(_ name: String, _ browser: Browser) async throws {
        #expect(try await PageCheck(browser).faults == [], "\(name)")
        #expect(try await axe.faults(browser) == [], "\(name)")
        let text = try await browser.text("body")
        for foreign in ["fanfare run", "--var", "audience:", "yaml"] {
            #expect(!text.localizedCaseInsensitiveContains(foreign), "\(name): \(foreign)")
        }
        shots += 1
        guard let folder = ProcessInfo.processInfo.environment["PICTURES"] else { return }
        let number = shots < 10 ? "0\(shots)" : "\(shots)"
        try await browser.picture().write(to: URL(fileURLWithPath: "\(folder)/story-\(number)-\(name).png"))
    }

    // MARK: Setup

    func setUp(_ browser: Browser) async throws {
        try await browser.open(link)
        try await browser.open(address + "/setup")
        try await look("setup-empty", browser)
        try await browser.type(key, into: "form[action='/setup/key'] input[type=file]")
        try await browser.follow("form[action='/setup/key'] button")
        try await browser.type(devices, into: "form[action='/setup/devices'] input[type=file]")
        try await browser.follow("form[action='/setup/devices'] button")
        try await look("import", browser)
        try await browser.follow(browser.named("Import these 12 devices"))
        try await browser.wait(for: "document.querySelector('main').innerText.includes('12 devices imported')")
        try await browser.follow(browser.named("Back to Setup"))
        try await browser.type("Anna’s phone", into: "form[action='/setup/test-devices'] input[name=name]")
        try await browser.type("install-3", into: "form[action='/setup/test-devices'] input[name=device]")
        try await browser.follow("form[action='/setup/test-devices'] button")
        try await look("setup-done", browser)
    }

    func invite(_ name: String, role: String, _ browser: Browser) async throws -> String {
        try await browser.open(address + "/people")
        try await browser.type(name, into: "form[action='/people/invite'] input[name=name]")
        _ = try await browser.script(
            "document.querySelector(\"form[action='/people/invite'] select[name=role]\").value = '\(role)'")
        try await browser.follow("form[action='/people/invite'] button")
        return try await browser.text(".secret")
    }

    func join(_ invitation: String, as name: String, _ browser: Browser) async throws {
        try await browser.open(invitation)
        try await look("join-\(name)", browser)
        try await browser.follow(browser.named("Sign in as \(name)"))
        try await browser.follow(browser.named("Go to the broadcasts"))
    }

    // MARK: Writing

    func write(_ browser: Browser) async throws {
        try await browser.open(address + "/new")
        try await look("gallery", browser)
        _ = try await browser.script("document.querySelector('[value=episode]').click()")
        try await browser.type("Winter Special", into: "#name")
        try await browser.follow(browser.named("Create"))
        #expect(try await browser.text("h1") == "winter-special")
        try await browser.type("de", into: "[name=language]")
        try await center("[name=language]", browser)
        try await browser.click(browser.named("Add"))
        try await browser.wait(for: "document.querySelector('#c-alert-de-title')")
        try await browser.type("Neue Folge", into: "#c-alert-de-title")
        try await browser.type("{{title}} ist da.", into: "#c-alert-de-body")
        _ = try await browser.script("document.querySelector('[name=\"c.who\"][value=everyone]').click()")
        try await browser.wait(
            for: "document.querySelector('output.reach').textContent.includes('would get the push')")
        try await browser.wait(for: "document.querySelector('.phones').textContent.includes('Neue Folge')")
        try await look("composer", browser)
        try await center(".save .main", browser)
        try await browser.follow(browser.named("Save"))
        #expect(try await browser.text(".notice").contains("Saved."))
    }

    private func center(_ selector: String, _ browser: Browser) async throws {
        _ = try await browser.script("document.querySelector('\(selector)').scrollIntoView({ block: 'center' })")
    }

    // MARK: Sending

    /// Returns the address of the plan.
    func planAndTest(_ browser: Browser) async throws -> String {
        for name in ["title", "link_url"] {
            let exists = try await browser.script("return document.querySelector('#v-\(name)') !== null") as? Bool
            guard exists == true else { continue }
            let value = name == "title" ? "The Quiet Reff" : "https://example.com/118"
            try await browser.type(value, into: "#v-\(name)")
        }
        try await browser.follow(browser.named("Plan"))
        let plan = try await browser.url
        try await look("plan", browser)
        _ = try await browser.script("document.querySelector('#to').value = 'Anna’s phone'")
        try await browser.follow(browser.named("Send test to this device"))
        try await browser.wait(for: "/accepted/.test(document.querySelector('#test').textContent)")
        try await look("tested", browser)
        return String(plan.prefix { $0 != "?" && $0 != "#" })
    }

    /// Returns the address of the approval.
    func askForApproval(_ browser: Browser) async throws -> String {
        try await browser.type("Before nine, please.", into: "#note")
        try await browser.follow(browser.named("Ask for approval"))
        try await look("asked", browser)
        try await browser.follow(browser.named("The approval"))
        return try await browser.url
    }

    func approve(_ approval: String, _ browser: Browser) async throws {
        try await browser.open(address + "/approvals")
        #expect(try await browser.text("main").contains("Before nine, please."))
        try await browser.open(approval)
        try await look("approval-390", browser)
        try await browser.type("Looks right.", into: "form[action$='/approve'] input[name=reason]")
        try await browser.follow("form[action$='/approve'] button")
        #expect(try await browser.text("main").contains("It has all signatures"))
    }

    /// A plan is sent by a person who may send: here the admin.
    func send(_ plan: String, _ browser: Browser) async throws {
        try await browser.open(plan)
        try await look("approved", browser)
        try await browser.follow("form.start button.main")
        try await browser.wait(for: "document.querySelector('p .state.finished')")
        try await look("sent", browser)
    }

    /// Returns the address of the run that the words lead to.
    func find(_ browser: Browser) async throws -> String {
        try await browser.open(address + "/?find=Reff")
        #expect(try await browser.text("main").contains("The Quiet Reff"))
        try await look("found", browser)
        try await browser.follow("main a[href^='/runs/']")
        return String(try await browser.url.prefix { $0 != "?" && $0 != "#" })
    }

    func correct(_ run: String, by sender: Browser, signedBy approver: Browser) async throws {
        try await sender.open(run)
        try await sender.follow(sender.named("Correct the text"))
        _ = try await sender.script("document.querySelector('#v-title').value = ''")
        try await sender.type("The Quiet Reef", into: "#v-title")
        try await sender.follow(sender.named("Preview"))
        try await look("correction", sender)
        try await sender.follow(sender.named("Ask for approval"))
        let correction = try await sender.url
        try await sender.follow(sender.named("The approval"))
        try await approver.open(try await sender.url)
        #expect(try await approver.text("main").contains("The Quiet Reef"))
        try await look("correction-approval-390", approver)
        try await approver.follow("form[action$='/approve'] button")
        try await sender.open(correction)
        try await sender.follow(sender.named("Send the correction"))
        #expect(try await sender.text("main").contains("Corrects run"))
        try await sender.wait(for: "document.querySelector('p .state.finished')")
        try await look("corrected", sender)
    }
}
