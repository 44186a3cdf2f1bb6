import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

@testable import Web

/// An account that may not start runs makes nothing start: what it writes for a campaign that starts automatically
/// waits.
@Suite(.timeLimit(.minutes(10)))
struct PendingChangesTests {
    private static let scheduled = WebScene.scheduledText
    private static let changed = scheduled.replacing("30 2 * * *", with: "* * * * *")

    private static func with(_ body: (WebScene) async throws -> Void) async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            try scene.folder.write(scheduled, to: "campaigns/morning.yaml")
            try await body(scene)
        }
    }

    private static func put(
        _ scene: WebScene, _ path: String, _ text: String, as role: AccessRole = .author, etag: String? = nil
    ) async throws -> WebScene.Answer {
        let seen = etag.map { ["If-Match": "\"\($0)\""] } ?? ["If-None-Match": "*"]
        return try await scene.api(
            "PUT", path, as: role, body: text, headers: seen.merging(["Content-Type": "application/yaml"]) { $1 })
    }

    private static func etag(_ scene: WebScene, _ path: String) async throws -> String {
        try #require(try await scene.api("GET", path).header("etag")).replacing("\"", with: "")
    }

    @Test func `a new campaign with a schedule or a feed is not there before it is released`() async throws {
        try await Self.with { scene in
            let texts = [
                "nightly": Self.scheduled.replacing("campaign: morning", with: "campaign: nightly"),
                "fed": WebScene.campaignText.replacing("campaign: new-podcast", with: "campaign: fed")
                    + "trigger: {feed: \"https://example.org/feed.xml\", every: 15m, variables: {title: item.title}}\n",
            ]
            for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
                let answer = try await Self.put(scene, "/campaigns/\(name)", text)
                #expect(answer.status == 202, "\(answer.text)")
                let held = try #require(try answer.result(WrittenFileResult.self).held)
                #expect(scene.text(of: "campaigns/\(name).yaml") == nil)
                let coming = scene.webConsole.cases.schedule().coming
                #expect(throws: Failure.self) {
                    _ = try coming.coming([name], count: 1, on: nil, now: scene.sending.clock.now)
                }
                #expect(try await scene.api("POST", "/changes/\(held)/release", as: .author).status == 403)
                #expect(try await scene.api("POST", "/changes/\(held)/release", as: .approver).status == 403)
                #expect(scene.text(of: "campaigns/\(name).yaml") == nil)
                let released = try await scene.api("POST", "/changes/\(held)/release", as: .sender)
                #expect(released.status == 200, "\(released.text)")
                #expect(scene.text(of: "campaigns/\(name).yaml") == text)
                #expect(try await scene.api("POST", "/changes/\(held)/release", as: .sender).status == 404)
            }
            let kinds = try await scene.store.events(run: nil, since: nil, limit: 99)
            let written = kinds.filter { $0.kind == "file_written" }
            #expect(written.count == 2 && written.allSatisfy { $0.actor.signedInAs == "token:author" })
            let released = kinds.filter { $0.kind == "change_released" }
            #expect(released.count == 2 && released.allSatisfy { $0.actor.signedInAs == "token:sender" })
        }
    }

    @Test func `the schedule, the words and the correction of what starts automatically wait`() async throws {
        try await Self.with { scene in
            let morning = try await Self.etag(scene, "/campaigns/morning")
            let template = try await Self.etag(scene, "/templates/new-podcast")
            let words = WebScene.templateText.replacing("is out", with: "is wrong")
            let rows = [
                ("/campaigns/morning", Self.changed, morning, "campaigns/morning.yaml"),
                // Without a schedule it would not start what it was to start.
                (
                    "/campaigns/morning",
                    Self.scheduled.split(separator: "\n").filter { !$0.hasPrefix("schedule") }.joined(separator: "\n")
                        + "\n", morning, "campaigns/morning.yaml"
                ), ("/templates/new-podcast", words, template, "templates/new-podcast.yaml"),
            ]
            for (path, text, etag, file) in rows {
                let before = scene.text(of: file)
                let answer = try await Self.put(scene, path, text, etag: etag)
                #expect(answer.status == 202, "\(answer.text)")
                #expect(scene.text(of: file) == before)
            }
            // The same author's text is in place of the one before.
            let listed: ListPage<ChangeResult> = try await scene.api("GET", "/changes", as: .viewer).result()
            #expect(listed.items.map(\.kind) == ["campaign", "template"])
            let body = try JSONSerialization.data(withJSONObject: ["text": Self.changed])
            let json = String(decoding: body, as: UTF8.self)
            for (role, held) in [(AccessRole.author, true as Bool?), (.approver, true), (.sender, nil), (.admin, nil)] {
                let found = try await scene.api("POST", "/campaigns/morning/validate", as: role, body: json)
                #expect(try found.result(ValidationResult.self).held == held, "\(role)")
            }
        }
    }

    @Test func `what starts by hand alone is written at once, as is what a role with run writes`() async throws {
        try await Self.with { scene in
            let podcast = try await Self.etag(scene, "/campaigns/new-podcast")
            let text = WebScene.campaignText.replacing("4h", with: "5h")
            #expect(try await Self.put(scene, "/campaigns/new-podcast", text, etag: podcast).status == 200)
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == text)
            let own = WebScene.templateText.replacing("template: new-podcast", with: "template: own")
            #expect(try await Self.put(scene, "/templates/own", own).status == 201)
            let morning = try await Self.etag(scene, "/campaigns/morning")
            let admin = try await Self.put(scene, "/campaigns/morning", Self.changed, as: .admin, etag: morning)
            #expect(admin.status == 200)
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.changed)
        }
    }

    @Test func `a release after another change is refused, and a rejected text is gone`() async throws {
        try await Self.with { scene in
            let etag = try await Self.etag(scene, "/campaigns/morning")
            let held = try #require(
                try await Self.put(scene, "/campaigns/morning", Self.changed, etag: etag)
                    .result(WrittenFileResult.self).held)
            let meanwhile = Self.scheduled.replacing("30 2", with: "45 2")
            try scene.folder.write(meanwhile, to: "campaigns/morning.yaml")
            let refused = try await scene.api("POST", "/changes/\(held)/release", as: .sender)
            #expect(refused.status == 409)
            #expect(refused.problem?.detail.contains("has changed since author (token) wrote change") == true)
            #expect(scene.text(of: "campaigns/morning.yaml") == meanwhile)
            let detail: ChangeDetailResult = try await scene.api("GET", "/changes/\(held)", as: .viewer).result()
            #expect(detail.change.isOutdated && detail.text == Self.changed && detail.current == meanwhile)
            for long in [String(repeating: "z", count: 200_000), "a" + String(repeating: "\u{301}", count: 200_000)] {
                let body = "{\"reason\": \"\(long)\"}"
                let answer = try await scene.api("POST", "/changes/\(held)/reject", as: .sender, body: body)
                #expect(answer.status == 422 && answer.text.contains("longer than 1,000 characters"))
            }
            let reason = #"{"reason": "too often"}"#
            #expect(try await scene.api("POST", "/changes/\(held)/reject", as: .author, body: reason).status == 403)
            #expect(try await scene.api("POST", "/changes/\(held)/reject", as: .sender, body: reason).status == 200)
            #expect(try await scene.api("GET", "/changes/\(held)").status == 404)
            let event = try #require(try await scene.store.events(run: nil, since: nil, limit: 9).last)
            #expect(event.kind == "change_rejected" && event.detail.contains("too often"))
        }
    }

    @Test func `another author's waiting text is replaced only by its own tag`() async throws {
        try await Self.with { scene in
            let etag = try await Self.etag(scene, "/campaigns/morning")
            let first = try await Self.put(scene, "/campaigns/morning", Self.changed, etag: etag)
            let waiting = try #require(first.header("etag")).replacing("\"", with: "")
            let other = try await scene.confined(to: PipelineScene.topic, as: .author)
            let text = Self.changed.replacing("title: Morning", with: "title: Evening")
            let type = ["Content-Type": "application/yaml"]
            let blind = try await scene.api(
                "PUT", "/campaigns/morning", body: text,
                headers: other.merging(type) { $1 }.merging(["If-Match": etag]) { $1 })
            #expect(blind.status == 412 && blind.header("etag") == "\"\(waiting)\"")
            let seen = try await scene.api(
                "PUT", "/campaigns/morning", body: text,
                headers: other.merging(type) { $1 }.merging(["If-Match": waiting]) { $1 })
            #expect(seen.status == 202, "\(seen.text)")
            let changes = try await scene.webConsole.cases.files.changes()
            #expect(changes.count == 1 && changes.first?.isOutdated == false)
        }
    }

    @Test func `a template of a campaign that waits is not changed behind its releaser`() async throws {
        try await Self.with { scene in
            let own = WebScene.templateText.replacing("template: new-podcast", with: "template: own")
            #expect(try await Self.put(scene, "/templates/own", own).status == 201)
            let nightly = Self.scheduled.replacing("campaign: morning", with: "campaign: nightly")
                .replacing("template: new-podcast", with: "template: own")
            #expect(try await Self.put(scene, "/campaigns/nightly", nightly).status == 202)
            let etag = try await Self.etag(scene, "/templates/own")
            let late = try await Self.put(scene, "/templates/own", own + "# late\n", etag: etag)
            #expect(late.status == 202 && scene.text(of: "templates/own.yaml") == own)
        }
    }

    @Test func `a waiting text is read once, whoever asks and how often`() async throws {
        try await Self.with { scene in
            let nightly = Self.scheduled.replacing("campaign: morning", with: "campaign: nightly")
            #expect(try await Self.put(scene, "/campaigns/nightly", nightly).status == 202)
            let reads = Mutex(0)
            let files = scene.webConsole.cases.files
            func count(_ body: () async throws -> Void) async throws -> Int {
                reads.withLock { $0 = 0 }
                try await TextWork.$reader.withValue(TextWork.Reader { reads.withLock { $0 += 1 } }, operation: body)
                return reads.withLock { $0 }
            }
            let change = try #require(try await scene.store.pendingChanges().first)
            func read() async throws {
                for _ in 0..<3 { _ = try await files.names(ofWaiting: change.id, change.name, hash: change.hash) }
            }
            #expect(try await count(read) == 1)
            #expect(try await count(read) == 0)
            let asked = try await count { try await scene.webConsole.cases.requireStartsNothing(segment: "other") }
            let again = try await count { try await scene.webConsole.cases.requireStartsNothing(segment: "other") }
            #expect(asked <= 2 && again == 0)
            let unknown = ManageFiles(
                configuration: scene.webConsole.cases.configuration(), store: scene.store, zone: .current)
            let first = try await count {
                _ = try await unknown.names(ofWaiting: change.id, change.name, hash: change.hash)
            }
            #expect(first == 1)
            let confined = try await scene.confined(to: PipelineScene.topic, as: .viewer)
            let listed: ListPage<ChangeResult> = try await scene.api("GET", "/changes", headers: confined).result()
            #expect(listed.items.map(\.name) == ["nightly"])
            let elsewhere = try await scene.confined(to: "org.example.other", as: .viewer)
            let none: ListPage<ChangeResult> = try await scene.api("GET", "/changes", headers: elsewhere).result()
            #expect(none.items.isEmpty)
        }
    }

    @Test func `saving the file's own text again withdraws what waits`() async throws {
        try await Self.with { scene in
            let etag = try await Self.etag(scene, "/campaigns/morning")
            #expect(try await Self.put(scene, "/campaigns/morning", Self.changed, etag: etag).status == 202)
            let back = try await Self.put(scene, "/campaigns/morning", Self.scheduled, etag: etag)
            #expect(back.status == 200 && back.header("etag") == "\"\(etag)\"")
            #expect(try await scene.webConsole.cases.files.changes().isEmpty)
            #expect(try await Self.put(scene, "/campaigns/morning", Self.scheduled, etag: etag).status == 200)
            #expect(try await scene.webConsole.cases.files.changes().isEmpty)
        }
    }

    @Test func `segments of what starts automatically are not changed, others are`() async throws {
        try await Self.with { scene in
            let define = { (name: String, expression: String, role: AccessRole) in
                let body = try JSONSerialization.data(withJSONObject: ["expression": expression])
                return try await scene.api(
                    "PUT", "/segments/\(name)", as: role, body: String(decoding: body, as: UTF8.self)
                ).status
            }
            let line = "{\"installation_id\": \"install-1\"}\n"
            #expect(try await scene.lines("/segments/fans/members", as: .author, line).status == 200)
            #expect(try await define("named", "segment(\"inner\")", .author) == 422)
            #expect(try await define("inner", "locale in (\"de\")", .author) == 200)
            #expect(try await define("named", "segment(\"inner\")", .author) == 200)
            let text = Self.scheduled.replacing(
                "audience: everyone", with: "audience: segment(\"fans\") or segment(\"named\")")
            try scene.folder.write(text, to: "campaigns/morning.yaml")
            for name in ["inner", "named"] { #expect(try await define(name, "everyone", .author) == 409, "\(name)") }
            #expect(try await scene.lines("/segments/fans/members", as: .author, line).status == 409)
            #expect(try await define("elsewhere", "everyone", .author) == 200)
            let form = ["mode": "add", "key": "installation_id", "members": "install-2"]
            #expect(try await scene.page("/segments/fans/members", as: .author, form: form).status == 409)
            let named = ["do": "keep", "name": "inner", "expression": "everyone"]
            #expect(try await scene.page("/segments", as: .author, form: named).status == 409)
            #expect(try await scene.lines("/segments/fans/members", as: .sender, line).status == 200)
            #expect(try await define("inner", "everyone", .sender) == 200)
        }
    }

    @Test func `pages show what waits, and release it`() async throws {
        try await Self.with { scene in
            let etag = try await Self.etag(scene, "/campaigns/morning")
            let form = ["kind": "campaign", "file": "morning", "text": Self.changed, "etag": etag]
            let saved = try await scene.page("/campaigns/morning/save", as: .author, form: form)
            #expect(
                saved.status == 303
                    && saved.header("location") == "/campaigns/morning?view=files&held=campaign-morning",
                "\(saved.text)")
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.scheduled)
            let change = try #require(try await scene.webConsole.cases.files.changes().first)
            for path in ["/campaigns/morning", "/calendar", "/changes"] {
                let page = try await scene.page(path, as: .viewer)
                #expect(page.text.contains("waits for release"), "\(path)")
            }
            let author = try await scene.page("/campaigns/morning", as: .author)
            #expect(author.text.contains("* * * * *") && author.text.contains("value=\"\(change.etag)\""))
            #expect(!(try await scene.page("/campaigns/morning", as: .sender)).text.contains("* * * * *"))
            let again = try await scene.page(
                "/campaigns/morning/save", as: .author,
                form: form.merging(["etag": change.etag, "text": Self.changed + "# again\n"]) { $1 })
            #expect(again.status == 303, "\(again.text)")
            let edited = try #require(try await scene.webConsole.cases.files.changes().first)
            #expect(edited.id != change.id)
            #expect(!(try await scene.page("/changes", as: .author)).text.contains("/release"))
            #expect(try await scene.page("/changes/\(edited.id)/release", as: .author, form: [:]).status == 403)
            let old = try await scene.page("/changes/\(change.id)/release", as: .sender, form: [:])
            #expect(old.status == 404 && scene.text(of: "campaigns/morning.yaml") == Self.scheduled)
            #expect(try await scene.page("/changes/\(edited.id)/release", as: .sender, form: [:]).status == 303)
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.changed + "# again\n")
            let nightly = Self.scheduled.replacing("campaign: morning", with: "campaign: nightly")
            let new = ["kind": "campaign", "file": "nightly", "text": nightly, "etag": ""]
            let begun = try await scene.page("/new/campaign/save", as: .author, form: new)
            #expect(begun.status == 303 && begun.header("location")?.hasPrefix("/changes?change=") == true)
            #expect(scene.text(of: "campaigns/nightly.yaml") == nil)
        }
    }

    @Test func `a second author sees the text that waits, and puts theirs in its place if it is meant`() async throws {
        try await Self.with { scene in
            let etag = try await Self.etag(scene, "/campaigns/morning")
            let form = ["kind": "campaign", "file": "morning", "text": Self.changed, "etag": etag]
            #expect(try await scene.page("/campaigns/morning/save", as: .author, form: form).status == 303)
            let waiting = try #require(try await scene.webConsole.cases.files.changes().first?.etag)
            let second = try await scene.confinedVisitor(to: PipelineScene.topic, as: .author)
            let own = Self.changed.replacing("title: Morning", with: "title: Evening")
            let typed = form.merging(["text": own]) { $1 }
            let late = try await scene.page("/campaigns/morning/save", form: typed, headers: second)
            #expect(late.status == 412)
            #expect(late.text.contains("author&#39;s text waits for release"))
            #expect(late.text.contains("title: Morning}</mark>") && late.text.contains("title: Evening"))
            #expect(late.text.contains("name=\"over\" value=\"\(waiting)\""))
            let again = try await scene.page("/campaigns/morning/save", form: typed, headers: second)
            #expect(again.status == 412)
            let meant = typed.merging(["over": waiting]) { $1 }
            #expect(try await scene.page("/campaigns/morning/save", form: meant, headers: second).status == 303)
            let changes = try await scene.webConsole.cases.files.changes()
            #expect(changes.count == 1 && changes.first?.author.hasPrefix("visitor-of-") == true)
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.scheduled)
        }
    }

    @Test func `another app's waiting text is as if it were not there`() async throws {
        try await Self.with { scene in
            let etag = try await Self.etag(scene, "/campaigns/morning")
            let held = try #require(
                try await Self.put(scene, "/campaigns/morning", Self.changed, etag: etag)
                    .result(WrittenFileResult.self).held)
            let other = try await scene.confined(to: "com.example.other", as: .sender)
            let listed: ListPage<ChangeResult> = try await scene.api("GET", "/changes", headers: other).result()
            #expect(listed.items.isEmpty)
            for (method, path) in [("GET", ""), ("POST", "/release"), ("POST", "/reject")] {
                #expect(try await scene.api(method, "/changes/\(held)\(path)", headers: other).status == 404)
            }
        }
    }
}
