import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// The pages of a content editor, as a browser without script uses them: by links and forms.
@Suite(.timeLimit(.minutes(10)))
struct CampaignPagesTests {
    private static let page = "/campaigns/new-podcast"

    private func draft(_ text: String, _ etag: String, file: String = "new-podcast", kind: String = "campaign")
        -> [String: String]
    {
        ["kind": kind, "file": file, "etag": etag, "text": text.replacing("\n", with: "\r\n")]
    }

    @Test func `from the list to a run, by forms alone`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let list = try await scene.page("/campaigns", as: .sender)
            #expect(list.text.contains("<a href=\"/campaigns/new-podcast\">new-podcast</a>"))
            let open = try await scene.page(Self.page, as: .sender)
            #expect(open.status == 200)
            #expect(open.text.contains("Neu bei WenderCast"))
            #expect(open.text.contains("lang=\"de\""))
            #expect(open.text.contains("Files cannot be edited here"))
            let planned = try await scene.planned(["v.title": "The Reef", "v.show": "WenderCast"])
            #expect(planned.text.contains("it reaches 4 devices"))
            #expect(planned.text.contains("The Reef ist da."))
            let name: String = try #require(WebScene.field("occurrence", in: planned.text))
            #expect(name.hasPrefix("the-reef-"), "\(name)")
            let form = ["occurrence": name]
            let started = try await scene.page("\(planned.address)/start", as: .sender, form: form)
            #expect(started.status == 303)
            let run = try #require(try await scene.store.runs(limit: 1).first)
            #expect(started.header("location") == "/runs/\(run.id)")
            #expect(run.definition.variables["title"] == "The Reef")
            // Sent twice by an impatient hand, it is one run.
            #expect(try await scene.page("\(planned.address)/start", as: .sender, form: form).status == 303)
            #expect(try await scene.store.runs(limit: 9).count == 1)
            let sent = try await scene.page(planned.address, as: .viewer)
            #expect(sent.text.contains("sent as run \(run.id)") && sent.text.contains("href=\"/runs/\(run.id)\""))
            #expect(!sent.text.contains("/start\""))
            #expect(try await scene.page("/plans", as: .viewer).text.contains("href=\"\(planned.address)\""))
            #expect(try await scene.store.events(run: run.id).first?.actor.name == "sender (signed in)")
        }
    }

    @Test func `a default of several lines comes back from the form as it is in the file`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let text = WebScene.campaignText.replacing("title: \"\"", with: "title: \"The Reef\\n\\n and more\"")
            try scene.folder.write(text, to: "campaigns/new-podcast.yaml")
            let open = try await scene.page(Self.page, as: .sender)
            #expect(open.text.contains("name=\"v.title\" rows=\"3\""))
            // A parser of HTML leaves out one line break behind the tag.
            #expect(open.text.contains(" dir=\"auto\">\nThe Reef\n\n and more</textarea>"))
            let form = ["v.title": "The Reef\r\n\r\n and more", "v.show": "WenderCast"]
            let hash = { (text: String) in text.firstMatch(of: #/p2-[0-9a-f-]+/#).map { String($0.0) } }
            let typed = try await scene.planned(form)
            let untouched = try await scene.planned([:])
            let shown = hash(typed.text)
            #expect(shown != nil && shown == hash(untouched.text))
        }
    }

    @Test func `the name of an earlier run sends nothing, and says so`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            func start(_ title: String) async throws -> WebScene.Answer {
                let planned = try await scene.planned(["v.title": title])
                return try await scene.page(
                    "\(planned.address)/start", as: .sender, form: ["occurrence": "summer"])
            }
            #expect(try await start("The Reef").status == 303)
            let run = try #require(try await scene.store.runs(limit: 1).first)
            let same = try await start("The Reef")
            #expect(same.status == 409)
            let words = "summer has already been sent as run \(run.id)"
            #expect(same.text.contains("\(words); nothing was sent. Give the send another name."))
            let other = try await start("The Wreck")
            #expect(other.status == 409)
            #expect(other.text.contains("\(words), with other texts; nothing was sent."))
            // The plan is there again, for another name.
            #expect(WebScene.field("occurrence", in: other.text) != nil)
            #expect(try await scene.store.runs(limit: 9).count == 1)
        }
    }

    @Test func `what has changed since the plan is shown, and nothing is sent`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let planned = try await scene.planned(["v.title": "The Reef"])
            try await scene.sending.addDevices(4..<6)
            let drifted = try await scene.page("\(planned.address)/start", as: .sender, form: [:])
            #expect(drifted.status == 409)
            #expect(drifted.text.contains("6 devices, 50 % more than the 4 planned"))
            #expect(drifted.text.contains("<dd dir=\"auto\">The Reef</dd>"))
            #expect(try await scene.store.runs(limit: 9).isEmpty)
            // Without a value it has an address, too, and cannot be sent.
            let incomplete = try await scene.planned([:])
            #expect(incomplete.text.contains("Give title a value, and plan again."))
            let started = try await scene.page("\(incomplete.address)/start", as: .sender, form: [:])
            #expect(started.status == 422)
            #expect(try await scene.store.runs(limit: 9).isEmpty)
        }
    }

    @Test func `a mistake stands at its line, with what validate says, and what was typed stays`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let typo = WebScene.campaignText.replacing("audience:", with: "audiance:")
            let answer = try await scene.page("\(Self.page)/check", as: .author, form: draft(typo, "e"))
            #expect(answer.status == 200)
            #expect(answer.text.contains("audiance: locale in (&quot;en&quot;, &quot;de&quot;)"))
            #expect(answer.text.contains("<span class=\"error\">5</span>"))
            #expect(answer.text.contains("line 5, column 1"))
            #expect(answer.text.contains("unknown key &quot;audiance&quot;; did you mean &quot;audience&quot;?"))
            #expect(answer.text.contains("<mark>audiance</mark>"))
            #expect(WebScene.field("etag", in: answer.text) == "e")
            // The browser asks before this text is left, and only before this one.
            #expect(answer.text.contains("id=\"campaign-new-podcast\" data-unsaved>"))
            #expect(answer.text.components(separatedBy: "data-unsaved").count == 2)
            #expect(!(try await scene.page(Self.page, as: .author)).text.contains("data-unsaved"))
            // For the script the parts alone.
            let part = try await scene.page(
                "\(Self.page)/check", as: .author, form: draft(typo, "e").merging(["part": "check"]) { $1 })
            #expect(part.text.hasPrefix("<div data-part=\"campaign-new-podcast\">"))
            #expect(!part.text.contains("<html"))
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == WebScene.campaignText)
            // What phones show is that of the text that is being written.
            let text = WebScene.templateText.replacing("ist da", with: "ist hier")
            let phones = try await scene.page(
                "\(Self.page)/check", as: .author, form: draft(text, "e", kind: "template"))
            #expect(phones.text.contains("&lt;title&gt; ist hier."))
            let refused = try await scene.page(
                "\(Self.page)/save", as: .author, form: draft(typo, "e"))
            #expect(refused.status == 412)
        }
    }

    @Test func `of two who save one file the second sees both texts, and saves again if it is meant`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let open = try await scene.page("\(Self.page)?view=files", as: .author)
            let etag = try #require(WebScene.field("etag", in: open.text))
            let first = WebScene.campaignText.replacing("4h", with: "5h")
            let second = WebScene.campaignText.replacing("4h", with: "6h")
            let saved = try await scene.page("\(Self.page)/save", as: .author, form: draft(first, etag))
            #expect(saved.status == 303)
            let after = try await scene.page(try #require(saved.header("location")), as: .author)
            #expect(after.text.contains("Saved."))
            let late = try await scene.page("\(Self.page)/save", as: .admin, form: draft(second, etag))
            #expect(late.status == 412)
            #expect(late.text.contains("<mark>expires_after: 5h</mark>"))
            #expect(late.text.contains("expires_after: 6h"))
            #expect(late.text.contains("Save mine over theirs") && late.text.contains("data-unsaved"))
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == first)
            // Checking what is typed does not make it known: the form is still that of the text that was opened.
            #expect(WebScene.field("etag", in: late.text) == etag)
            let checked = try await scene.page("\(Self.page)/check", as: .admin, form: draft(second, etag))
            let kept = try #require(WebScene.field("etag", in: checked.text))
            let again = try await scene.page("\(Self.page)/save", as: .admin, form: draft(second, kept))
            #expect(again.status == 412 && again.text.contains("<mark>expires_after: 5h</mark>"))
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == first)
            let over = try #require(WebScene.field("over", in: again.text))
            let meant = draft(second, kept).merging(["over": over]) { $1 }
            #expect(try await scene.page("\(Self.page)/save", as: .admin, form: meant).status == 303)
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == second)
            let wrong = try await scene.page(
                "\(Self.page)/save", as: .admin,
                form: draft("campaign: new-podcast\n", try #require(try ContentTag.of(second))))
            #expect(wrong.status == 422)
            #expect(wrong.text.contains("Not saved"))
        }
    }

    @Test(
        arguments: [
            ("cron: \"30 2 * * *\"", "title: Morning", nil, "It then starts automatically."),
            ("cron: \"30 2 * * *\"", "title: \"\"", nil, "It will then fail: no value for title."),
            ("cron: \"30 2 * * *\"", "title: Morning", 1, "It then waits for the signature of 1 person,"),
            ("cron: \"30 2 * * *\"", "title: Morning", 2, "It then waits for the signatures of 2 people,"),
        ] as [(String, String, Int?, String)])
    func `a plan says what becomes of it at its next time`(when: String, title: String, needs: Int?, words: String)
        async throws
    {
        try await WebScene.with { configuration in
            guard let needs else { return }
            configuration.approvals = ApprovalRules(
                rules: [.init(above: 1, needs: needs)], people: ConfiguredPeople([:]))
        } _: { scene in
            try await scene.addCampaign()
            let text = WebScene.scheduledText.replacing("cron: \"30 2 * * *\"", with: when)
                .replacing("title: Morning", with: title)
            try scene.folder.write(text, to: "campaigns/morning.yaml")
            // What is typed is not what the schedule sends.
            let page = try await scene.planned(["v.title": "Typed"], of: "/campaigns/morning")
            #expect(page.text.contains(words), "\(page.text)")
            #expect(
                page.text.contains(
                    "To send it immediately, choose “as started now” on the campaign’s page, and plan again."))
            #expect(!page.text.contains("Sent now, it reaches") && !page.text.contains(">Typed<"))
        }
    }

    @Test func `whoever may not edit, test or start has no button for it, and is refused`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let viewer = try await scene.page(Self.page, as: .viewer)
            #expect(!viewer.text.contains("/plan"))
            #expect(!viewer.text.contains("/save"))
            let author = try await scene.planned(["v.title": "x"], as: .author)
            #expect(author.text.contains("only senders can send."))
            #expect(try await scene.page("\(author.address)/start", as: .author, form: [:]).status == 403)
            #expect(!author.text.contains("/start\""))
            let off = try await scene.page(
                "\(Self.page)/save", as: .author, form: draft(WebScene.campaignText, "e"))
            #expect(off.status == 403)
            #expect(off.text.contains("web editing is off"))
        }
    }

    @Test func `a device shows its own data, and a test of it is seen on the page`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let form = ["v.title": "Riff", "device": "install-2"]
            let shown = try await scene.page("\(Self.page)?v.title=Riff&device=install-2", as: .author)
            #expect(shown.text.contains("<strong>install-2, de</strong>"))
            let sent = try await scene.page("\(Self.page)/test-send", as: .author, form: form)
            #expect(sent.status == 303)
            let page = try await scene.page(try #require(sent.header("location")), as: .author)
            #expect(page.text.contains("to install-2: waits for the daemon to send it"))
            // The link that shows it again has another address each time, so that every browser follows it.
            let again = try #require(page.text.firstMatch(of: #/<a href="([^"]+)#test">Reload</#)).1
            let address = again.replacing("&amp;", with: "&")
            #expect(!(try #require(sent.header("location"))).hasPrefix(address))
            let later = try await scene.page(String(address), as: .author)
            #expect(later.text.contains("waits for the daemon") && !later.text.contains("href=\"\(again)#test\""))
            let nobody = try await scene.page(
                "\(Self.page)/test-send", as: .author, form: ["device": "x", "v.title": "y"])
            #expect(nobody.status == 404)
            let none = try await scene.page("\(Self.page)/test-send", as: .author, form: ["v.title": "y"])
            #expect(none.status == 422)
            #expect(none.text.contains("name a device"))
        }
    }

    @Test func `scripts in texts and file names are shown as text`() async throws {
        let script = "<script>alert(1)</script>"
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let template = WebScene.templateText.replacing("{{title}} is out.", with: "</textarea>\(script)")
            try scene.folder.write(template, to: "templates/new-podcast.yaml")
            try scene.folder.write("campaign: \"\(script)\"\nnothing: \(script)\n", to: "campaigns/<img src=x>.yaml")
            for path in [
                "/campaigns", "/campaigns/new-podcast", "/campaigns/new-podcast?view=files",
                "/campaigns/%3Cimg%20src=x%3E", "/calendar",
                "/campaigns/new-podcast?test=%3Cscript%3E&saved=%3Cscript%3E",
            ] {
                let answer = try await scene.page(path, as: .author)
                #expect(answer.status == 200, "\(path)")
                #expect(!answer.text.contains("<script>alert"), "\(path)")
                #expect(!answer.text.contains("<img"), "\(path)")
                let fields = answer.text.components(separatedBy: "<textarea").count
                #expect(answer.text.components(separatedBy: "</textarea>").count == fields, "\(path)")
            }
            let checked = try await scene.page(
                "\(Self.page)/check", as: .author, form: draft("</textarea>\(script): \(script)\n", script))
            #expect(!checked.text.contains("<script>alert"))
        }
    }

    @Test func `a file that is no text is only named, with the reason, and nothing is put in its place`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let path = scene.folder.file("templates/new-podcast.yaml")
            let latin = Data(
                WebScene.templateText.replacing("Neu", with: "F\u{FC}r").unicodeScalars.map { UInt8($0.value) })
            try latin.write(to: URL(fileURLWithPath: path))
            let page = try await scene.page(Self.page, as: .author)
            #expect(page.text.contains("templates/new-podcast.yaml cannot be read as UTF-8 text"))
            // The campaign's own text is there to be changed.
            #expect(page.text.components(separatedBy: "<textarea").count == 2)
            #expect(page.text.components(separatedBy: "/save#").count == 2)
            for etag in ["", try FileHash.hash(of: path)] {
                let saved = try await scene.page(
                    "\(Self.page)/save", as: .author, form: draft(WebScene.templateText, etag, kind: "template"))
                #expect(saved.status == 422)
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == latin)
        }
    }

    @Test func `the calendar says what goes out when, by whose clock, and what the clocks do to it`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            try scene.folder.write(
                WebScene.scheduledText.replacing("campaign: morning", with: "campaign: everywhere")
                    .replacing("Europe/Berlin", with: "recipient, unknown_zone: UTC").replacing("30 2", with: "0 9"),
                to: "campaigns/everywhere.yaml")
            try scene.folder.write("campaign: broken\n", to: "campaigns/broken.yaml")
            let page = try await scene.page("/calendar?from=2027-03-22&weeks=2", as: .viewer)
            #expect(page.status == 200)
            #expect(page.text.contains("2027-03-22 to 2027-04-04"))
            #expect(page.text.contains("in Europe/Berlin the clocks skip its time: the run starts at 03:00"))
            #expect(page.text.contains("<strong>09:00</strong> <a href=\"/campaigns/everywhere\">everywhere</a>"))
            #expect(page.text.contains("each device’s clock"))
            #expect(page.text.contains("broken.yaml has errors"))
            #expect(page.text.components(separatedBy: "<li class=\"day").count == 15)
            let strange = try await scene.page("/calendar?from=never&weeks=999", as: .viewer)
            #expect(strange.text.components(separatedBy: "<li class=\"day").count == 36)
        }
    }

    @Test func `a text is cut where a lock screen cuts it`() {
        let short = PhoneScreen.cut("Listen now.", lines: 4, units: 40)
        #expect(short.rest == nil)
        let words = PhoneScreen.cut(String(repeating: "seven77 ", count: 40), lines: 4, units: 40)
        #expect(words.shown.count == 160)
        let wide = PhoneScreen.cut(String(repeating: "聴", count: 100), lines: 4, units: 40)
        #expect(wide.shown.count == 80)
        let lines = PhoneScreen.cut("a\nb\nc\nd\ne", lines: 4, units: 40)
        #expect(lines.shown == "a\nb\nc\nd")
        #expect(lines.rest == "\ne")
        let arabic = PhoneScreen.cut(String(repeating: "حلقة ", count: 60), lines: 4, units: 40)
        #expect(arabic.shown.hasSuffix(" "))
    }
}

/// SHA-256, as an ETag.
private enum ContentTag {
    static func of(_ text: String) throws -> String? {
        let folder = try TemporaryDirectory()
        return try FileHash.hash(of: try folder.write(text, to: "text"))
    }
}
