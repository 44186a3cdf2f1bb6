import CampaignFiles
import Campaigns
import Foundation
import Model
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// The form over a campaign and its template, as a browser without script uses it.
@Suite(.timeLimit(.minutes(10)))
struct ComposerTests {
    static let page = "/campaigns/new-podcast"
    static let commented = """
        # who gets it
        campaign: new-podcast
        topic: com.example.app   # the app
        push_type: alert
        template: new-podcast
        audience: locale in ("en", "de")
        variables: {show: WenderCast, title: ""}
        # four hours
        expires_after: 4h

        """

    static func with(_ body: (WebScene) async throws -> Void) async throws {
        try await WebScene.with(WebScene.editingOfTwoApps) { scene in
            try await scene.addCampaign()
            try scene.folder.write(commented, to: "campaigns/new-podcast.yaml")
            try await body(scene)
        }
    }

    /// The fields of the form on the page, as a browser sends them.
    static func form(_ scene: WebScene, _ page: String = page, as role: AccessRole = .admin) async throws
        -> [String: String]
    {
        let text = try await scene.page(page, as: role).text
        return [
            "opened": try #require(WebScene.field("opened", in: text)).replacing("&quot;", with: "\""),
            "etag.campaign": try #require(WebScene.field("etag.campaign", in: text)),
            "etag.template": try #require(WebScene.field("etag.template", in: text)), "do": "save",
        ]
    }

    static func post(
        _ scene: WebScene, _ form: [String: String], _ fields: [String: String], as role: AccessRole = .admin,
        to page: String = page
    ) async throws -> WebScene.Answer {
        try await scene.page("\(page)/compose", as: role, form: form.merging(fields) { $1 })
    }

    @Test func `a campaign opens as a form, and a save changes only what was changed`() async throws {
        try await Self.with { scene in
            let open = try await scene.page(Self.page, as: .author)
            #expect(open.text.contains("name=\"c.alert.de.title\" value=\"Neu bei {{show}}\""))
            #expect(open.text.contains("name=\"c.who.locale.de\" checked"))
            #expect(!open.text.contains("<code>") && !open.text.contains("--var"))
            let viewer = try await scene.page(Self.page, as: .viewer)
            #expect(!viewer.text.contains("c.alert.de.title") && !viewer.text.contains("class=\"views\""))
            let form = try await Self.form(scene)
            let fields = [
                "c.alert.de.title": "Neue Folge: {{title}}", "c.who": "choose", "c.who.locale.de": "on",
                "c.variables.show": "Wender \"Cast\"",
            ]
            let saved = try await Self.post(scene, form, fields)
            #expect(saved.status == 303)
            let after = try await scene.page(try #require(saved.header("location")), as: .author)
            #expect(after.text.contains("Saved."))
            #expect(
                scene.text(of: "campaigns/new-podcast.yaml")
                    == Self.commented.replacing(
                        "audience: locale in (\"en\", \"de\")", with: "audience: >-\n  locale in (\"de\")"
                    ).replacing("show: WenderCast", with: "show: \"Wender \\\"Cast\\\"\""))
            #expect(
                scene.text(of: "templates/new-podcast.yaml")
                    == WebScene.templateText.replacing("Neu bei {{show}}", with: "Neue Folge: {{title}}"))
        }
    }

    @Test func `a preview shows what is typed, its mistakes, the next starts and new variables, and saves nothing`()
        async throws
    {
        try await Self.with { scene in
            let form = try await Self.form(scene).merging(["part": "check", "do": "preview"]) { $1 }
            let fields = [
                "c.alert.de.body": "{{guest}} spricht.", "c.start": "repeat", "c.repeat.time": "09:00",
                "c.repeat.MON": "on", "c.zone": "Europe/Berlin",
            ]
            let parts = try await Self.post(scene, form, fields)
            #expect(parts.text.contains("&lt;guest&gt; spricht."))
            #expect(parts.text.contains("name=\"c.variables.guest\""))
            #expect(parts.text.contains("09:00 in Europe/Berlin") && parts.text.contains("no value for"))
            #expect(parts.text.components(separatedBy: "class=\"next\"").count == 6)
            #expect(parts.text.contains("Not saved yet."))
            let wrong = try await Self.post(scene, form, ["c.badge": "many"])
            #expect(wrong.text.contains("badge") && wrong.text.contains("error"))
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == Self.commented)
            let refused = try await Self.post(scene, try await Self.form(scene), ["c.badge": "many"])
            #expect(refused.status == 422 && refused.text.contains("Not saved: correct the errors first."))
            #expect(refused.text.contains("name=\"c.badge\" value=\"many\""))
        }
    }

    @Test func `a language is added and removed without a script`() async throws {
        try await Self.with { scene in
            let form = try await Self.form(scene)
            let added = try await Self.post(scene, form, ["do": "language", "language": "fr"])
            #expect(added.text.contains("name=\"c.alert.fr.title\"") && added.text.contains("French"))
            let saved = try await Self.post(
                scene, form, ["c.alert.fr.title": "Nouveau", "c.alert.fr.body": "{{title}}", "remove.de": "on"])
            #expect(saved.status == 303)
            let text = try #require(scene.text(of: "templates/new-podcast.yaml"))
            #expect(text.contains("fr: {title: \"Nouveau\", body: \"{{title}}\"}") && !text.contains("de:"))
        }
    }

    @Test func `the text of someone else is not overwritten`() async throws {
        try await Self.with { scene in
            let form = try await Self.form(scene)
            let changed = Self.commented.replacing("4h", with: "5h").replacing("WenderCast", with: "Theirs")
            try scene.folder.write(changed, to: "campaigns/new-podcast.yaml")
            let late = try await Self.post(scene, form, ["c.variables.show": "Mine", "c.alert.en.title": "Mine"])
            #expect(late.status == 412)
            #expect(late.text.contains("another user changed the campaign"))
            // The form has the changes of both. Only the field that both changed is listed with both values.
            #expect(late.text.contains("name=\"c.alert.en.title\" value=\"Mine\""))
            #expect(late.text.contains("name=\"c.expires_after\" value=\"5h\""))
            #expect(late.text.contains("Taken from the other user: Time for phones that are off."))
            #expect(late.text.contains(">Value of show</a>: you both changed it"))
            #expect(late.text.contains("<dd dir=\"auto\">Theirs</dd>") && !late.text.contains(">Title (English)</a>"))
            let shown = try #require(WebScene.field("etag.campaign", in: late.text))
            #expect(shown != form["etag.campaign"])
            #expect(scene.text(of: "campaigns/new-podcast.yaml")?.contains("5h") == true)
            #expect(scene.text(of: "templates/new-podcast.yaml") == WebScene.templateText)
        }
    }

    @Test func `an error stands at its field, and the phones keep the typed text`() async throws {
        try await Self.with { scene in
            let form = try await Self.form(scene).merging(["part": "check", "do": "preview"]) { $1 }
            let fields = ["c.guards.max_reach": "many", "c.alert.en.title": "Typed", "c.alert.de.body": "{{title"]
            let both = try await Self.post(scene, form, fields)
            #expect(both.text.contains("<a href=\"#c-guards-max_reach\">"))
            #expect(both.text.contains("<a href=\"#c-alert-de-body\">"))
            let one = try await Self.post(scene, form, fields.merging(["c.alert.de.body": "ok"]) { $1 })
            #expect(one.text.contains("<p class=\"title\" dir=\"auto\">Typed</p>"))
            let when = try await Self.post(scene, form, ["c.start": "once"])
            #expect(when.text.contains("<a href=\"#c-at-date\">When: choose a date and a time.</a>"))
            let page = try await scene.page(Self.page).text
            for id in ["c-guards-max_reach", "c-alert-de-body", "c-at-date"] {
                #expect(page.contains("id=\"\(id)\""), "\(id)")
            }
        }
    }

    @Test func `a new campaign and a copy take a title as people write it`() async throws {
        try await Self.with { scene in
            let made = try await scene.page(
                "/new", form: ["name": "Winter Spécial!", "kind": "blank", "topic": "com.example.app"])
            #expect(made.header("location") == "/campaigns/winter-special")
            let copied = try await scene.page("\(Self.page)/copy", form: ["name": " Late Night Show "])
            #expect(copied.header("location") == "/campaigns/late-night-show")
            #expect(scene.text(of: "campaigns/late-night-show.yaml")?.contains("campaign: late-night-show") == true)
        }
    }

    @Test func `a preview keeps the texts that were opened, so that a later save finds another person's change`()
        async throws
    {
        try await Self.with { scene in
            let form = try await Self.form(scene)
            try scene.folder.write(Self.commented.replacing("4h", with: "5h"), to: "campaigns/new-podcast.yaml")
            let shown = try await Self.post(scene, form, ["do": "preview", "c.alert.en.title": "Mine"])
            #expect(WebScene.field("etag.campaign", in: shown.text) == form["etag.campaign"])
        }
    }

    @Test func `a variable that no text uses can be removed, and a language has a name`() async throws {
        try await Self.with { scene in
            try scene.folder.write(
                Self.commented.replacing("title: \"\"", with: "title: \"\", titel: x"), to: "campaigns/new-podcast.yaml"
            )
            let page = try await scene.page(Self.page).text
            #expect(page.contains("name=\"c.remove.variables.titel\""))
            #expect(!page.contains("name=\"c.remove.variables.title\""))
            let saved = try await Self.post(
                scene, try await Self.form(scene), ["c.variables.titel": "x", "c.remove.variables.titel": "on"])
            #expect(saved.status == 303)
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == Self.commented)
            let form = try await Self.form(scene)
            let named = try await Self.post(scene, form, ["do": "language", "language": "french"])
            #expect(named.text.contains("name=\"c.alert.fr.title\""))
            let wrong = try await Self.post(scene, form, ["do": "language", "language": "Frensh"])
            #expect(wrong.text.contains("<a href=\"#c-language\">“Frensh” is not a language."))
        }
    }

    @Test func `a weekly campaign without values is saved, and the page says that its start lacks them`() async throws {
        try await Self.with { scene in
            let fields = [
                "c.start": "repeat", "c.repeat.time": "09:00", "c.repeat.FRI": "on", "c.zone": "Europe/Berlin",
            ]
            let form = try await Self.form(scene)
            let check = try await Self.post(scene, form.merging(["part": "check"]) { $1 }, fields)
            #expect(
                check.text.contains("has no value when the schedule starts") && !check.text.contains("data-refused"))
            #expect(try await Self.post(scene, form, fields).status == 303)
            let wrong = try await Self.post(scene, form.merging(["part": "check"]) { $1 }, ["c.badge": "many"])
            #expect(wrong.text.contains("data-refused"))
        }
    }

    @Test func `a change of a schedule by an author waits for release`() async throws {
        try await Self.with { scene in
            let fields = ["c.start": "once", "c.at.date": "2099-12-01", "c.at.time": "09:00", "c.zone": "UTC"]
            let answer = try await Self.post(
                scene, try await Self.form(scene, as: .author), fields.merging(["c.variables.title": "x"]) { $1 },
                as: .author)
            #expect(answer.status == 303 && answer.header("location")?.contains("held=compose") == true)
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == Self.commented)
            let page = try await scene.page(Self.page, as: .author)
            #expect(page.text.contains("waits for release") && page.text.contains("value=\"2099-12-01\""))
        }
    }

    @Test func `a file that the form cannot show opens as a file, with the reason`() async throws {
        try await Self.with { scene in
            try scene.folder.write(
                "template: new-podcast\nalert: {loc_key: NEW}\n", to: "templates/new-podcast.yaml")
            let page = try await scene.page(Self.page, as: .author)
            #expect(page.text.contains("The key loc_key refers to texts that the app translates."))
            #expect(page.text.contains("id=\"template-new-podcast\""))
            // Two templates.
            for name in ["new-podcast", "short"] {
                try scene.folder.write(
                    "template: \(name)\nalert: {en: {title: New}}\n", to: "templates/\(name).yaml")
            }
            try scene.folder.write(
                Self.commented
                    + "variants: {a: {weight: 1, template: new-podcast}, b: {weight: 1, template: short}}\n",
                to: "campaigns/new-podcast.yaml")
            let variants = try await scene.page(Self.page, as: .author)
            #expect(variants.text.contains("but the form can show only one"), "\(variants.text)")
            #expect(variants.text.contains("id=\"template-short\""))
        }
    }

    @Test func `each campaign of the gallery is valid, and opens`() async throws {
        try await Self.with { scene in
            for kind in CampaignGallery.allCases {
                let name = "new-\(kind.rawValue)"
                let form = ["name": name, "kind": kind.rawValue, "topic": PipelineScene.topic]
                let made = try await scene.page("/new", as: .author, form: form)
                #expect(made.status == 303, "\(kind): \(made.text)")
                let page = try await scene.page("/campaigns/\(name)", as: .author)
                #expect(page.text.contains("no problem") || page.text.contains("files ok"), "\(kind): \(page.text)")
                let again = try await scene.page("/new", as: .author, form: form)
                #expect(again.status == 422 && again.text.contains("already exists"), "\(kind)")
            }
            #expect(try await scene.page("/new", as: .viewer).status == 403)
            let other = try await scene.page(
                "/new", form: ["name": "theirs", "kind": "blank", "topic": PipelineScene.topic],
                headers: try await scene.confinedVisitor(to: "com.example.other"))
            #expect(other.status == 403 && scene.text(of: "campaigns/theirs.yaml") == nil)
        }
    }

    @Test func `a copy has the texts of its source, and never starts by itself`() async throws {
        try await Self.with { scene in
            let daily = Self.commented + "schedule: {cron: \"0 9 * * *\", zone: UTC}\n"
            try scene.folder.write(daily, to: "campaigns/new-podcast.yaml")
            let made = try await scene.page("\(Self.page)/copy", as: .author, form: ["name": "copy"])
            #expect(made.status == 303, "\(made.text)")
            let copy = try #require(scene.text(of: "campaigns/copy.yaml"))
            #expect(
                copy
                    == Self.commented.replacing("campaign: new-podcast", with: "campaign: copy")
                    .replacing("template: new-podcast", with: "template: copy"))
            let template = WebScene.templateText.replacing("template: new-podcast", with: "template: copy")
            #expect(scene.text(of: "templates/copy.yaml") == template)
            #expect(try await scene.page("\(Self.page)/copy", as: .author, form: ["name": "copy"]).status == 422)
        }
    }

    @Test func `a form without an audience leaves it, and a choice without a condition is refused`() async throws {
        try await Self.with { scene in
            let saved = try await Self.post(scene, try await Self.form(scene), ["c.alert.en.title": "Only a title"])
            #expect(saved.status == 303)
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == Self.commented)
            let empty = try await Self.post(scene, try await Self.form(scene), ["c.who": "choose"])
            #expect(empty.status == 422 && empty.text.contains("choose at least one condition"), "\(empty.text)")
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == Self.commented)
        }
    }

    @Test func `no name of a tag or attribute becomes a condition`() throws {
        let name = "vip\u{0600}\") or everyone or tag(\"\u{0301}y"
        for (field, value) in [
            ("who.tag.\(name)", "in"), ("who.attribute.plan", name), ("who.seen", "1 days or everyone"),
        ] {
            let audience = ComposerFields(["who": "choose", field: value]).audience
            let expression = AudienceParser.parse(audience).0
            #expect(expression.map { !$0.namesEveryone } ?? true, "\(audience)")
        }
    }

    @Test func `a form of too many fields, and an app that is not one's own, are refused`() async throws {
        try await Self.with { scene in
            let many = Dictionary((0..<2_100).map { ("c.alert.x\($0).title", "") }) { $1 }
            let answer = try await Self.post(scene, try await Self.form(scene), many)
            #expect(answer.status == 422 && answer.text.contains("more than 2000 fields"))
            let topic = "com.example.app\"\nschedule: {cron: \"* * * * *\", zone: UTC}\n#"
            let made = try await scene.page("/new", form: ["name": "inj", "kind": "blank", "topic": topic])
            #expect(made.status == 422 && scene.text(of: "templates/inj.yaml") == nil)
        }
    }

    @Test func `the setup ticks what is there, and leads to what is not`() async throws {
        try await WebScene.with(WebScene.editingOfTwoApps) { scene in
            try scene.folder.write("", to: "campaigns/.keep")
            let empty = try await scene.page("/setup", as: .author).text
            #expect(empty.contains("Devices<span class=\"visually-hidden\">: open") && empty.contains("href=\"/new\""))
            try await scene.addCampaign()
            // A broadcast that was not sent is none.
            let sending = scene.sending
            let log: any RunLog = sending.store
            _ = try await log.createEndedRun(
                try sending.definition(), occurrence: "o", state: .missed, reason: "late", now: sending.clock.now,
                by: "test")
            let missed = try #require(try await sending.store.latestRun(campaign: "c"))
            let month = MonthPage(CivilMonth(of: sending.clock.now), [missed], gone: [:], devices: nil, isCut: false)
            #expect(month.facts.first?.value == "0" && month.facts.last?.value == "1")
            let filled = try await scene.page("/setup", as: .author).text
            #expect(filled.contains("4 devices registered.") && filled.contains("1 campaign written."))
            #expect(filled.contains("Campaign<span class=\"visually-hidden\">: done"))
            #expect(filled.contains("First broadcast<span class=\"visually-hidden\">: open"))
        }
    }

    @Test func `validate agrees with the page on many saves`() async throws {
        try await Self.with { scene in
            var random = SeededGenerator(seed: 5)
            var (saved, refused) = (0, 0)
            let choices: [(String, [String])] = [
                ("c.alert.en.title", ["", "A", "{{title}}", "{{", "{{device.model}} \"x\""]),
                ("c.alert.de.body", ["", "b: c # d", "{{show}}\nzwei", "{{device.nothing}}"]),
                ("c.badge", ["", "+1", "3", "x"]), ("c.expires_after", ["", "4h", "soon"]),
                ("c.who.version", ["", "4.2", "new"]), ("c.who.seen", ["", "30", "0"]),
                ("c.sound", ["", "default"]), ("c.default_locale", ["en", "de", "xx"]),
                ("c.variables.title", ["", "The Reef"]), ("c.interruption_level", ["", "active", "loud"]),
                ("c.at.date", ["2099-01-01", "tomorrow"]), ("c.start", ["hand", "once"]),
            ]
            let rounds = Nightly.isOn ? 200 : 80
            for round in 0..<rounds {
                var fields = [
                    "c.who": "choose", "c.who.locale.en": "on", "c.zone": "UTC", "c.at.time": "09:00",
                    "c.at.date": "2099-12-01",
                ]
                for _ in 0..<3 {
                    guard let (name, values) = choices.randomElement(using: &random) else { continue }
                    fields[name] = values.randomElement(using: &random)
                }
                let before = [
                    "campaigns/new-podcast.yaml": scene.text(of: "campaigns/new-podcast.yaml"),
                    "templates/new-podcast.yaml": scene.text(of: "templates/new-podcast.yaml"),
                ]
                let answer = try await Self.post(scene, try await Self.form(scene), fields)
                if answer.status == 303 {
                    saved += 1
                } else {
                    refused += 1
                    #expect(answer.status == 422, "\(round): \(fields)")
                    // The texts that the page refused are written past it.
                    let known = ComposedFiles(
                        campaign: before["campaigns/new-podcast.yaml"].flatMap(\.self) ?? "",
                        template: before["templates/new-podcast.yaml"].flatMap(\.self) ?? "")
                    let edited = try known.edited(try ComposerBuilder.posted(fields, over: known.fields))
                    try scene.folder.write(edited.campaign, to: "campaigns/new-podcast.yaml")
                    try scene.folder.write(edited.template, to: "templates/new-podcast.yaml")
                }
                let found = try await scene.webConsole.cases.files.campaign("new-podcast", now: scene.sending.clock.now)
                // Values for a start are given once the campaign is saved.
                let isWrong = found.problems.contains {
                    $0.severity == "error" && !$0.what.contains("has no value when")
                }
                #expect(isWrong != (answer.status == 303), "\(round): \(fields) \(found.problems)")
                for (file, text) in before { try scene.folder.write(text ?? "", to: file) }
            }
            #expect(saved > rounds / 5 && refused > rounds / 5, "\(saved) saved, \(refused) refused")
        }
    }
}
