import Campaigns
import Foundation
import Model
import SendingScene
import TestSupport
import Testing

@testable import Web

/// Templates that several campaigns use, and the errors of a template that a save finds.
@Suite(.timeLimit(.minutes(10)))
struct SharedTemplateTests {
    private static let page = "/campaigns/new-podcast"
    private static let variants =
        WebScene.campaignText + """
            variants:
              a: {weight: 1, template: new-podcast}   # as always
              b: {weight: 1, template: short}
            correction: sorry

            """

    private static func with(_ body: (WebScene) async throws -> Void) async throws {
        try await WebScene.with(WebScene.editingOfTwoApps) { scene in
            try await scene.addCampaign()
            try await body(scene)
        }
    }

    private static func form(_ scene: WebScene, _ fields: [String: String]) async throws -> [String: String] {
        let text = try await scene.page(page).text
        return [
            "etag.campaign": try #require(WebScene.field("etag.campaign", in: text)),
            "etag.template": try #require(WebScene.field("etag.template", in: text)), "do": "save",
        ].merging(fields) { $1 }
    }

    @Test func `a copy of a campaign with variants has its own templates`() async throws {
        try await Self.with { scene in
            for name in ["short", "sorry"] {
                try scene.folder.write(
                    WebScene.templateText.replacing("template: new-podcast", with: "template: \(name)"),
                    to: "templates/\(name).yaml")
            }
            try scene.folder.write(Self.variants, to: "campaigns/new-podcast.yaml")
            let made = try await scene.page("\(Self.page)/copy", form: ["name": "copy"])
            #expect(made.status == 303, "\(made.text)")
            let copy = try #require(scene.text(of: "campaigns/copy.yaml"))
            #expect(
                copy
                    == Self.variants.replacing("campaign: new-podcast", with: "campaign: copy")
                    .replacing("template: new-podcast", with: "template: copy")
                    .replacing("template: short", with: "template: copy-b")
                    .replacing("correction: sorry", with: "correction: copy-correction"))
            for name in ["copy", "copy-b", "copy-correction"] {
                let text = try #require(scene.text(of: "templates/\(name).yaml"))
                #expect(text == WebScene.templateText.replacing("template: new-podcast", with: "template: \(name)"))
            }
            let page = try await scene.page("/campaigns/copy", as: .author).text
            #expect(!page.contains("Other campaigns use"))
        }
    }

    @Test func `templates of a copy get different names, whatever the variants are called`() async throws {
        try await Self.with { scene in
            let names = ["short", "late", "sorry"]
            for name in names {
                try scene.folder.write(
                    WebScene.templateText.replacing("template: new-podcast", with: "template: \(name)"),
                    to: "templates/\(name).yaml")
            }
            let text =
                WebScene.campaignText + """
                    variants: {correction: {weight: 1, template: short}, b: {weight: 1, template: short}}
                    correction: sorry

                    """
            try scene.folder.write(text, to: "campaigns/new-podcast.yaml")
            #expect(try await scene.page("\(Self.page)/copy", form: ["name": "copy"]).status == 303)
            let copy = try #require(scene.text(of: "campaigns/copy.yaml"))
            #expect(copy.components(separatedBy: "template: copy-correction}").count == 3, "\(copy)")
            #expect(copy.contains("correction: copy-correction-2\n"))
            #expect(scene.text(of: "templates/copy-correction-2.yaml") != nil)
        }
    }

    @Test func `the page names the other campaigns that use the template`() async throws {
        try await Self.with { scene in
            #expect(try await !scene.page(Self.page).text.contains("Other campaigns use"))
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            for address in [Self.page, "\(Self.page)?view=files"] {
                let page = try await scene.page(address).text
                #expect(
                    page.contains(
                        "Other campaigns use the template new-podcast, too: <a href=\"/campaigns/morning\">morning</a>"),
                    "\(address)")
            }
        }
    }

    @Test func `each error that refuses a save is listed, while a person types and after the save`() async throws {
        try await Self.with { scene in
            let long = ["c.alert.en.body": String(repeating: "x", count: 5_000)]
            let check = try await Self.form(scene, ["part": "check", "do": "preview"].merging(long) { $1 })
            let typed = try await scene.page("\(Self.page)/compose", form: check)
            #expect(typed.text.contains("data-refused"))
            #expect(typed.text.contains("<li class=\"error\">") && typed.text.contains("has at least"), "\(typed.text)")
            let saved = try await scene.page("\(Self.page)/compose", form: try await Self.form(scene, long))
            #expect(saved.status == 422 && saved.text.contains("Not saved: correct the errors first."))
            #expect(saved.text.contains("<li class=\"error\">") && saved.text.contains("has at least"))
        }
    }

    @Test func `an error that another campaign had before does not stand in the form`() async throws {
        try await Self.with { scene in
            try scene.folder.write(
                WebScene.scheduledText.replacing("expires_after: 4h", with: "expires_after: soon"),
                to: "campaigns/morning.yaml")
            let fields = ["part": "check", "do": "preview", "c.alert.en.title": "Other"]
            let typed = try await scene.page("\(Self.page)/compose", form: try await Self.form(scene, fields))
            #expect(
                !typed.text.contains("data-refused") && !typed.text.contains("<li class=\"error\">"), "\(typed.text)")
        }
    }
}
