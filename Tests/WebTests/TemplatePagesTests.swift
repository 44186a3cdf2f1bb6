import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// Templates have pages of their own, whether a campaign uses them or not.
@Suite(.timeLimit(.minutes(10)))
struct TemplatePagesTests {
    private static let own = """
        template: winter
        default_locale: en
        alert:
          en: {title: Winter, body: "{{title}} is out."}
          de: {title: Winter, body: "{{title}} ist da."}

        """

    private static func with(_ body: (WebScene) async throws -> Void) async throws {
        try await WebScene.with(WebScene.editingOfTwoApps) { scene in
            try await scene.addCampaign()
            try scene.folder.write(own, to: "templates/winter.yaml")
            try await body(scene)
        }
    }

    private static func draft(_ text: String, etag: String) -> [String: String] {
        ["kind": "template", "file": "winter", "text": text, "etag": etag]
    }

    private static func etag(_ scene: WebScene) async throws -> String {
        let tag = try #require(try await scene.api("GET", "/templates/winter").header("etag"))
        return tag.replacing("\"", with: "")
    }

    @Test func `a template that no campaign uses is found, read and changed`() async throws {
        try await Self.with { scene in
            #expect(try await scene.page("/campaigns", as: .viewer).text.contains("href=\"/templates\""))
            let list = try await scene.page("/templates", as: .viewer)
            #expect(list.text.contains("href=\"/templates/winter\"") && list.text.contains("no campaign"))
            #expect(list.text.contains("<a href=\"/campaigns/new-podcast\">new-podcast</a>"))
            #expect(list.text.contains("<a href=\"/campaigns\" aria-current=\"true\">"))
            let page = try await scene.page("/templates/winter", as: .author)
            #expect(page.text.contains("&lt;title&gt; ist da.") && page.text.contains("/templates/winter/delete"))
            let viewer = try await scene.page("/templates/winter", as: .viewer)
            #expect(!viewer.text.contains("/templates/winter/save") && !viewer.text.contains("/delete"))
            #expect(try await scene.page("/templates/other", as: .viewer).status == 404)

            let etag = try await Self.etag(scene)
            let right = Self.own.replacing("is out", with: "is here")
            let checked = try await scene.page(
                "/templates/winter/check", as: .author,
                form: Self.draft(Self.own + "sond: x\n", etag: etag).merging(["part": "check"]) { $1 })
            #expect(checked.text.contains("did you mean &quot;sound&quot;?"), "\(checked.text)")
            let saved = try await scene.page(
                "/templates/winter/save", as: .author, form: Self.draft(right, etag: etag))
            #expect(saved.header("location") == "/templates/winter?saved=yes")
            #expect(scene.text(of: "templates/winter.yaml") == right)
            // Another user's text is shown, not overwritten.
            let late = try await scene.page(
                "/templates/winter/save", as: .author, form: Self.draft(Self.own, etag: etag))
            #expect(late.status == 412 && late.text.contains("<mark>") && late.text.contains("Save mine over theirs"))
            #expect(scene.text(of: "templates/winter.yaml") == right)
        }
    }

    @Test func `a template is deleted by its page if nothing uses it and the text was seen`() async throws {
        try await Self.with { scene in
            func delete(_ name: String, _ etag: String, as role: AccessRole = .author) async throws -> WebScene.Answer {
                try await scene.page("/templates/\(name)/delete", as: role, form: ["etag": etag])
            }
            let etag = try await Self.etag(scene)
            #expect(try await delete("winter", etag, as: .viewer).status == 403)
            #expect(try await delete("winter", "other").status == 412)
            let used = try #require(try await scene.api("GET", "/templates/new-podcast").header("etag"))
            let kept = try await delete("new-podcast", used.replacing("\"", with: ""))
            #expect(kept.status == 409 && kept.text.contains("campaign new-podcast uses it"), "\(kept.text)")
            #expect(scene.text(of: "templates/new-podcast.yaml") != nil)

            // A campaign that waits for release may need it.
            let campaign = WebScene.scheduledText.replacing("template: new-podcast", with: "template: winter")
                .replacing("campaign: morning", with: "campaign: winter").replacing("show: WenderCast, ", with: "")
            let held = try await scene.api(
                "PUT", "/campaigns/winter", as: .author, body: campaign,
                headers: ["If-None-Match": "*", "Content-Type": "application/yaml"])
            #expect(held.status == 202, "\(held.text)")
            #expect(try await delete("winter", etag).text.contains("that waits for release uses it"))
            let confined = try await scene.confinedVisitor(to: "com.example.other", as: .author)
            let hidden = try await scene.page("/templates/winter/delete", form: ["etag": etag], headers: confined)
            #expect(hidden.status == 409 && !hidden.text.contains("campaign winter"), "\(hidden.text)")
            let change: WrittenFileResult = try held.result()
            let id = try #require(change.held)
            #expect(try await scene.api("POST", "/changes/\(id)/reject", as: .sender, body: "{}").status == 200)

            #expect(try await delete("winter", etag).header("location") == "/templates")
            #expect(scene.text(of: "templates/winter.yaml") == nil)
            let events = try await scene.store.events(run: nil, since: nil, limit: 100)
            let event = try #require(events.first { $0.kind == "file_deleted" })
            #expect(event.actor.name == "author (signed in)" && event.detail == "template winter")
            #expect(try await delete("winter", etag).status == 404)
        }
    }

    @Test func `the API deletes a template under the same conditions`() async throws {
        try await Self.with { scene in
            func delete(_ name: String, _ etag: String?, as role: AccessRole = .author) async throws -> WebScene.Answer
            {
                let headers = etag.map { ["If-Match": "\"\($0)\""] } ?? [:]
                return try await scene.api("DELETE", "/templates/\(name)", as: role, headers: headers)
            }
            let etag = try await Self.etag(scene)
            #expect(try await delete("winter", nil).status == 428)
            let other = try await delete("winter", "other")
            #expect(other.status == 412 && other.header("etag") == "\"\(etag)\"")
            #expect(try await delete("winter", etag, as: .viewer).status == 403)
            let used = try #require(try await scene.api("GET", "/templates/new-podcast").header("etag"))
            #expect(try await delete("new-podcast", used.replacing("\"", with: "")).status == 409)
            let done = try await delete("winter", etag)
            #expect(done.status == 200 && done.text.contains("\"winter\""), "\(done.text)")
            #expect(try await delete("winter", etag).status == 404)
        }
    }

    @Test func `a payload that cannot fit is refused when the template is saved, at its language`() async throws {
        try await Self.with { scene in
            let etag = try await Self.etag(scene)
            func save(_ count: Int) async throws -> WebScene.Answer {
                let text = Self.own.replacing("ist da", with: String(repeating: "sehr ", count: count) + "da")
                return try await scene.page(
                    "/templates/winter/save", as: .author, form: Self.draft(text, etag: etag))
            }
            let long = try await save(1000)
            #expect(long.status == 422 && long.text.contains("Not saved"))
            #expect(long.text.contains("the payload in de has at least") && long.text.contains("line 5, column"))
            #expect(!long.text.contains("the payload in en"))
            // Only a long value takes it beyond the limit.
            #expect(try await save(800).status == 303)
            #expect(try await scene.page("/templates/winter").text.contains("the payload in de may reach"))
        }
    }
}
