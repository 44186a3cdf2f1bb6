import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// A release writes exactly the texts that its releaser has seen.
@Suite(.timeLimit(.minutes(10)))
struct ReleaseTests {
    private static let scheduled = WebScene.scheduledText
    private static let changed = scheduled.replacing("4h", with: "5h")
    private static let words = WebScene.templateText.replacing("is out", with: "is here")
    private static let edna = Actor("edna (signed in)", uid: nil, user: "edna", origin: .api, command: nil)
    private static let bob = Actor("bob (signed in)", uid: nil, user: "bob", origin: .api, command: nil)

    private static func with(_ body: (WebScene) async throws -> Void) async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            try scene.folder.write(scheduled, to: "campaigns/morning.yaml")
            try await body(scene)
        }
    }

    /// Saves texts as an account that may not start runs. Returns the numbers of the changes.
    @discardableResult
    private static func save(
        _ scene: WebScene, _ texts: [(ManageFiles.Kind, String, String)], by actor: Actor = edna
    ) async throws -> [Int64] {
        let files = scene.webConsole.cases.files
        let waiting = try await files.changes()
        let new = texts.map { kind, name, text in
            let own = waiting.first { $0.kind == kind.rawValue && $0.name == name }
            let etag = own?.etag ?? (try? files.current(kind, name))?.etag
            return ManageFiles.NewText(kind, name, text: text, etag.map { .unchanged(etag: $0) } ?? .new)
        }
        let now = scene.webConsole.cases.now
        return try await files.write(new, mayStart: false, by: actor, now: now).compactMap(\.held)
    }

    private static func together(_ scene: WebScene) async throws -> [Int64: [Int64]] {
        let changes = try await scene.webConsole.cases.files.changes()
        return Dictionary(changes.map { ($0.id, $0.together ?? []) }) { $1 }
    }

    @Test func `a template that another author saves later is not released with a campaign`() async throws {
        try await Self.with { scene in
            let campaign = try #require(try await Self.save(scene, [(.campaign, "morning", Self.changed)]).first)
            let open = try await scene.page("/changes", as: .sender).text
            let template = try #require(
                try await Self.save(scene, [(.template, "new-podcast", Self.words)], by: Self.bob).first)
            #expect(try await Self.together(scene) == [campaign: [], template: []])
            let form = ["seen": try #require(WebScene.field("seen", in: open))]
            let released = try await scene.page("/changes/\(campaign)/release", as: .sender, form: form)
            #expect(released.status == 303, "\(released.text)")
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.changed)
            #expect(scene.text(of: "templates/new-podcast.yaml") == WebScene.templateText)
            #expect(try await scene.webConsole.cases.files.changes().map(\.id) == [template])
        }
    }

    @Test func `a release or rejection of texts that have changed since is refused`() async throws {
        try await Self.with { scene in
            let both = try await Self.save(
                scene, [(.campaign, "morning", Self.changed), (.template, "new-podcast", Self.words)])
            #expect(try await Self.together(scene) == [both[0]: [both[1]], both[1]: [both[0]]])
            let open = try await scene.page("/changes", as: .sender).text
            let form = ["seen": try #require(WebScene.field("seen", in: open))]
            let old = try await scene.api("GET", "/changes/\(both[0])", as: .sender)
                .result(ChangeDetailResult.self).texts
            #expect(old.map(\.id) == both)
            let new = try #require(
                try await Self.save(scene, [(.template, "new-podcast", Self.words + "# unseen\n")]).first)
            for verb in ["release", "reject"] {
                let page = try await scene.page("/changes/\(both[0])/\(verb)", as: .sender, form: form)
                #expect(page.status == 409, "\(page.text)")
                #expect(page.text.contains("have changed since you looked"))
                let late = try await scene.end(both[0], verb, seen: old)
                #expect(late.status == 409)
                #expect(late.problem?.detail.contains("change \(both[1]) no longer belongs to it") == true)
                #expect(late.problem?.detail.contains("change \(new) now belongs to it") == true)
                let blind = try await scene.api("POST", "/changes/\(both[0])/\(verb)", as: .sender)
                #expect(blind.status == 409 && blind.problem?.detail.contains("change \(new) belongs to") == true)
                let wrong = [old[0], ChangeText(id: new, etag: "other")]
                #expect(try await scene.end(both[0], verb, seen: wrong).status == 409)
            }
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.scheduled)
            #expect(scene.text(of: "templates/new-podcast.yaml") == WebScene.templateText)
            #expect(try await scene.end(both[0], "release").status == 200)
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.changed)
            #expect(scene.text(of: "templates/new-podcast.yaml") == Self.words + "# unseen\n")
        }
    }

    @Test func `changes that share a template are released together`() async throws {
        try await Self.with { scene in
            let evening = Self.scheduled.replacing("campaign: morning", with: "campaign: evening")
            try await Self.save(
                scene, [(.campaign, "morning", Self.changed), (.template, "new-podcast", Self.words)])
            try await Self.save(
                scene, [(.campaign, "evening", evening), (.template, "new-podcast", Self.words + "#\n")])
            let changes = try await scene.webConsole.cases.files.changes()
            #expect(changes.count == 3 && changes.allSatisfy { $0.together?.count == 2 })
            let morning = try #require(changes.first { $0.name == "morning" })
            #expect(try await scene.end(morning.id, "release").status == 200)
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.changed)
            #expect(scene.text(of: "campaigns/evening.yaml") == evening)
            #expect(scene.text(of: "templates/new-podcast.yaml") == Self.words + "#\n")
            #expect(try await scene.webConsole.cases.files.changes().isEmpty)
        }
    }

    @Test func `a rejection names and ends the changes of one author alone`() async throws {
        try await Self.with { scene in
            let (both, theirs) = try await Self.ofTwoAuthors(scene)
            let files = scene.webConsole.cases.files
            let detail = try await files.changeToReject(both[0])
            #expect(detail.change.together == nil && detail.texts.map(\.id) == [both[0]])
            let rejected = try await files.reject(
                both[0], seen: detail.texts, reason: nil, by: "carl", now: scene.webConsole.cases.now)
            #expect(rejected.together == nil)
            #expect(try await files.changes().map(\.id) == [theirs])
        }
    }

    @Test func `changes of two authors are released together if one needs the other`() async throws {
        try await Self.with { scene in
            let (_, theirs) = try await Self.ofTwoAuthors(scene)
            #expect(try await scene.end(theirs, "release").status == 200)
            #expect(scene.text(of: "campaigns/nightly.yaml") == Self.nightly)
            #expect(scene.text(of: "templates/own.yaml") == Self.own + "#\n")
        }
    }

    private static let own = WebScene.templateText.replacing("template: new-podcast", with: "template: own")
    private static let nightly = scheduled.replacing("campaign: morning", with: "campaign: nightly")
        .replacing("template: new-podcast", with: "template: own")

    /// Saves a campaign and its text by one author, and that text again by another one. Only the campaign and the
    /// second text wait then, and they belong together.
    private static func ofTwoAuthors(_ scene: WebScene) async throws -> (both: [Int64], theirs: Int64) {
        let both = try await save(scene, [(.campaign, "nightly", nightly), (.template, "own", own)])
        let theirs = try #require(try await save(scene, [(.template, "own", own + "#\n")], by: bob).first)
        #expect(try await together(scene) == [both[0]: [theirs], theirs: [both[0]]])
        return (both, theirs)
    }

    /// Fills the list with changes of templates that no campaign uses.
    private static func fill(_ scene: WebScene, _ count: Int) async throws -> [Int64] {
        let texts = (0..<count).map { number in
            let change = PendingChange(
                kind: "template", name: "filler-\(number)", text: "x", hash: "hash \(number)", base: nil, author: edna,
                askedAt: scene.webConsole.cases.now)
            return TextToHold(change: change, known: nil, detail: "template")
        }
        guard case .held(let held) = try await scene.store.holdChanges(texts, most: 100) else { return [] }
        return held.compactMap { $0?.id }
    }

    @Test func `a save of two texts is not held in part at the limit`() async throws {
        try await Self.with { scene in
            #expect(try await Self.fill(scene, 99).count == 99)
            await #expect(throws: Failure.self) {
                try await Self.save(
                    scene, [(.campaign, "morning", Self.changed), (.template, "new-podcast", Self.words)])
            }
            #expect(try await scene.webConsole.cases.files.changes().count == 99)
            try await Self.save(scene, [(.campaign, "morning", Self.changed)])
            #expect(try await scene.webConsole.cases.files.changes().count == 100)
        }
    }

    @Test func `each of many changes has its page, and the page counts them`() async throws {
        try await Self.with { scene in
            let ids = try await Self.fill(scene, 45)
            var next = "/changes"
            for (first, last) in [(1, 20), (21, 40), (41, 45)] {
                let page = try await scene.page(next, as: .sender).text
                #expect(page.contains("Changes \(first) to \(last) of 45"))
                for (index, id) in ids.enumerated() {
                    #expect(page.contains("id=\"change-\(id)\"") == ((first - 1)..<last).contains(index))
                }
                if last < 45 {
                    next = "/changes?change=\(ids[last])"
                    #expect(page.replacing("&#x3D;", with: "=").contains(next))
                }
            }
            #expect(try await scene.page("/changes?change=\(ids[30])").text.contains("Changes 21 to 40"))
            let calendar = try await scene.page("/calendar", as: .sender).text
            #expect(calendar.contains("change \(ids[0]) of template") && !calendar.contains("edna (signed in)"))
            #expect(calendar.firstMatch(of: /by edna at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/) != nil)
        }
    }

    @Test func `of a release, a rejection and a save at the same time one decides, and each answer is true`()
        async throws
    {
        try await Self.with { scene in
            let files = scene.webConsole.cases.files
            let now = scene.webConsole.cases.now
            for round in 0..<20 {
                let before = scene.text(of: "campaigns/morning.yaml")
                let text = Self.scheduled + "# \(round)\n"
                let id = try #require(try await Self.save(scene, [(.campaign, "morning", text)]).first)
                let etag = try #require(try await files.changes().first?.etag)
                let later = ManageFiles.NewText(
                    .campaign, "morning", text: text + "# later\n", .unchanged(etag: etag))
                async let released = Self.isDone {
                    _ = try await files.release(id, seen: [ChangeText(id: id, etag: etag)], by: "ben", now: now)
                }
                async let rejected = Self.isDone {
                    _ = try await files.reject(id, seen: nil, reason: nil, by: "carl", now: now)
                }
                async let saved = Self.isDone {
                    // Without a waiting change the same condition holds for the file that was released.
                    let known = try await files.changes().map(\.id)
                    guard known == [id] else { throw CancellationError() }
                    _ = try await files.write([later], mayStart: false, by: Self.edna, now: now)
                }
                let isReleased = await released
                let isRejected = await rejected
                _ = await saved
                #expect(!(isReleased && isRejected), "round \(round)")
                #expect(scene.text(of: "campaigns/morning.yaml") == (isReleased ? text : before), "round \(round)")
                for change in try await files.changes() {
                    _ = try await files.reject(change.id, seen: nil, reason: nil, by: "carl", now: now)
                }
            }
        }
    }

    /// Returns whether the work succeeded.
    private static func isDone(_ work: @Sendable () async throws -> Void) async -> Bool {
        do {
            try await work()
            return true
        } catch {
            return false
        }
    }

    @Test func `a release that a crash interrupted is shown, and released again`() async throws {
        try await Self.with { scene in
            try await Self.save(
                scene, [(.campaign, "morning", Self.changed), (.template, "new-podcast", Self.words)])
            try scene.folder.write(Self.words, to: "templates/new-podcast.yaml")
            let changes = try await scene.webConsole.cases.files.changes()
            #expect(changes.map(\.isWritten) == [nil, true])
            #expect(changes[1].summary.hasSuffix("the file has this text already: release the change to end it"))
            // A rejection would leave the text in force.
            let refused = try await scene.end(changes[0].id, "reject")
            #expect(
                refused.status == 409
                    && refused.problem?.detail.contains("interrupted release or from a person") == true)
            #expect(try await scene.webConsole.cases.files.changes().count == 2)
            #expect(try await scene.end(changes[0].id, "release").status == 200)
            #expect(scene.text(of: "campaigns/morning.yaml") == Self.changed)
            #expect(try await scene.webConsole.cases.files.changes().isEmpty)
        }
    }
}
