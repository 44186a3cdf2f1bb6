import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// New campaigns and templates by way of the pages, as a browser without script makes them.
@Suite(.timeLimit(.minutes(10)))
struct NewFileTests {
    /// What stands in the field of the editor.
    private func text(in page: String) throws -> String {
        let start = try #require(page.range(of: "<textarea"))
        let open = try #require(page[start.upperBound...].range(of: ">\n"))
        let end = try #require(page[open.upperBound...].range(of: "</textarea>"))
        return String(page[open.upperBound..<end.lowerBound]).replacing("&quot;", with: "\"").replacing(
            "&lt;", with: "<"
        )
        .replacing("&gt;", with: ">").replacing("&#39;", with: "'").replacing("&amp;", with: "&")
    }

    private func form(_ kind: String, _ name: String, _ text: String) -> [String: String] {
        ["kind": kind, "file": name, "etag": "", "text": text.replacing("\n", with: "\r\n")]
    }

    @Test func `from nothing to a campaign that can be planned: its template first, then who gets it`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            let list = try await scene.page("/campaigns", as: .author)
            #expect(list.text.contains("href=\"/new\""))
            let early = try await scene.page("/new/campaign", as: .author)
            #expect(early.text.contains("there is none yet"))
            #expect(!early.text.contains("<select name=\"template\""))

            let template = try await scene.page("/new/template?name=summer", as: .author)
            #expect(template.status == 200)
            #expect(template.text.contains("no problem"))
            let words = try text(in: template.text)
            #expect(words.contains("# "))
            #expect(scene.text(of: "templates/summer.yaml") == nil)
            let made = try await scene.page("/new/template/save", as: .author, form: form("template", "summer", words))
            #expect(made.status == 303)
            #expect(scene.text(of: "templates/summer.yaml") == words)

            let next = try await scene.page(try #require(made.header("location")), as: .author)
            #expect(next.text.contains("Template <a href=\"/templates/summer\">summer</a> was created."))
            #expect(next.text.contains("<option selected>summer</option>"))
            let campaign = try await scene.page(
                "/new/campaign?name=sale&topic=\(PipelineScene.topic)&template=summer", as: .author)
            #expect(campaign.text.contains("no problem"))
            let who = try text(in: campaign.text)
            #expect(who.contains("  title: \"\"") && who.contains("tag(\"testers\")"))
            let saved = try await scene.page("/new/campaign/save", as: .author, form: form("campaign", "sale", who))
            #expect(saved.status == 303)
            let page = try await scene.page(try #require(saved.header("location")), as: .author)
            #expect(page.text.contains("Saved."))
            #expect(page.text.contains("formaction=\"/campaigns/sale/test-send\""))
            let event = try #require(try await scene.store.events(run: nil, since: nil, limit: 9).last)
            #expect(event.kind == "file_written" && event.actor.name == "author (signed in)")
        }
    }

    @Test func `a name that is taken or that no file can have is refused in words`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let taken = try await scene.page("/new/campaign?name=new-podcast&template=new-podcast", as: .author)
            #expect(taken.status == 422)
            #expect(taken.text.contains("new-podcast.yaml already exists and was not overwritten"))
            for name in ["..%2Fx", ".x", "a b", "x.yaml", "%3Cscript%3E", "-x", "M%C3%BCnchen"] {
                let answer = try await scene.page("/new/template?name=\(name)", as: .author)
                #expect(answer.status == 422, "\(name)")
                #expect(answer.text.contains("is not a valid file name; use letters, digits, - and _"), "\(name)")
                #expect(!answer.text.contains("<script>"))
            }
            for kind in ["campaign", "template"] {
                let text = kind == "campaign" ? WebScene.campaignText : WebScene.templateText
                let over = try await scene.page(
                    "/new/\(kind)/save", as: .author, form: form(kind, "new-podcast", text.replacing("4h", with: "9h")))
                #expect(over.status == 422)
                #expect(over.text.contains("already exists"))
                let outside = try await scene.page("/new/\(kind)/save", as: .author, form: form(kind, "../x", text))
                #expect(outside.status == 422)
            }
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == WebScene.campaignText)
            #expect(scene.text(of: "templates/new-podcast.yaml") == WebScene.templateText)
            #expect(scene.text(of: "x.yaml") == nil)
            #expect(try await scene.page("/new/config", as: .author).status == 404)
        }
    }

    @Test func `a mistake in a new text stands at its line, and is not saved`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let typo = WebScene.campaignText.replacing("campaign: new-podcast", with: "campaign: sale")
                .replacing("audience:", with: "audiance:").replacing("4h", with: "5h")
            let checked = try await scene.page("/new/campaign/check", as: .author, form: form("campaign", "sale", typo))
            #expect(checked.status == 200)
            #expect(checked.text.contains("<span class=\"error\">5</span>"))
            #expect(checked.text.contains("did you mean &quot;audience&quot;?"))
            let part = try await scene.page(
                "/new/campaign/check", as: .author,
                form: form("campaign", "sale", typo).merging(["part": "check"]) { $1 })
            #expect(part.text.hasPrefix("<div data-part=\"campaign-sale\">"))
            let saved = try await scene.page("/new/campaign/save", as: .author, form: form("campaign", "sale", typo))
            #expect(saved.status == 422)
            #expect(saved.text.contains("Not saved"))
            #expect(scene.text(of: "campaigns/sale.yaml") == nil)
        }
    }

    @Test func `only whoever may edit makes files, of their own app, and only where that is on`() async throws {
        try await WebScene.with(WebScene.editingOfTwoApps) { scene in
            try await scene.addCampaign()
            for role in [AccessRole.viewer, .sender, .approver] {
                #expect(try await scene.page("/new/template", as: role).status == 403)
                #expect(!(try await scene.page("/campaigns", as: role)).text.contains("/new/"))
            }
            let made = try await scene.webConsole.cases.access.create(
                name: "theirs", role: .author, topic: "com.example.other", expiresIn: nil, by: "test",
                now: scene.sending.clock.now)
            let session = try await scene.webConsole.cases.access.signIn(
                made.token, by: "test", now: scene.sending.clock.now)
            let headers = [
                "Cookie": "fanfare=\(session)", "Content-Type": "application/x-www-form-urlencoded",
                "Sec-Fetch-Site": "same-origin",
            ]
            try scene.folder.write(
                WebScene.templateText.replacing("new-podcast", with: "own"), to: "templates/own.yaml")
            let begun = try await scene.ask("GET", "/new/campaign", headers: headers)
            #expect(begun.text.contains("com.example.other") && !begun.text.contains("com.example.app<"))
            let text = WebScene.campaignText.replacing("campaign: new-podcast", with: "campaign: sneaked")
                .replacing("template: new-podcast", with: "template: own")
            let body = "kind=campaign&file=sneaked&etag=&text=" + text.inAddress
            let sneaked = try await scene.ask("POST", "/new/campaign/save", headers: headers, body: body)
            #expect(sneaked.status == 403)
            #expect(scene.text(of: "campaigns/sneaked.yaml") == nil)
        }
        try await WebScene.with { scene in
            let off = try await scene.page("/new/template", as: .author)
            #expect(off.status == 403)
            #expect(off.text.contains("web editing is off"))
            #expect(!(try await scene.page("/campaigns", as: .author)).text.contains("/new/"))
        }
    }
}
