import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// The form writes a campaign and its template together or not at all. A schedule could otherwise send the one with
/// an old version of the other.
@Suite(.timeLimit(.minutes(10)))
struct SavingTogetherTests {
    private static let once = [
        "c.start": "once", "c.at.date": "2099-12-01", "c.at.time": "09:00", "c.zone": "UTC",
        "c.variables.title": "x", "c.alert.en.title": "Mine",
    ]

    @Test func `a save that finds one changed file changes none`() async throws {
        try await ComposerTests.with { scene in
            let form = try await ComposerTests.form(scene)
            let theirs = WebScene.templateText + "# theirs\n"
            try scene.folder.write(theirs, to: "templates/new-podcast.yaml")
            let late = try await ComposerTests.post(scene, form, Self.once)
            #expect(late.status == 412 && late.text.contains("Not saved"), "\(late.text)")
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == ComposerTests.commented)
            #expect(scene.text(of: "templates/new-podcast.yaml") == theirs)
            let written = try await scene.store.events(run: nil, since: nil, limit: 99)
            #expect(written.allSatisfy { $0.kind != "file_written" })
        }
    }

    @Test func `texts of one save of an author are released together, and rejected together`() async throws {
        try await ComposerTests.with { scene in
            let fields = Self.once
            let saved = try await ComposerTests.post(
                scene, try await ComposerTests.form(scene, as: .author), fields, as: .author)
            #expect(saved.status == 303 && saved.header("location")?.contains("held=compose") == true, "\(saved.text)")
            #expect(scene.text(of: "templates/new-podcast.yaml") == WebScene.templateText)
            let changes = try await scene.webConsole.cases.files.changes()
            let campaign = try #require(changes.first { $0.kind == "campaign" })
            let template = try #require(changes.first { $0.kind == "template" })
            #expect(campaign.together == [template.id] && template.together == [campaign.id])
            let page = try await scene.page("/changes", as: .sender)
            #expect(page.text.contains("Belongs to change \(template.id)"))
            #expect(page.text.contains("Belongs to change \(campaign.id)"))

            let rejected = try await scene.end(template.id, "reject")
            #expect(rejected.status == 200, "\(rejected.text)")
            #expect(try await scene.webConsole.cases.files.changes().isEmpty)

            for first in ["campaign", "template"] {
                let form = try await ComposerTests.form(scene, as: .author)
                let fields = Self.once.merging(["c.alert.en.title": first]) { $1 }
                #expect(try await ComposerTests.post(scene, form, fields, as: .author).status == 303)
                let change = try #require(
                    try await scene.webConsole.cases.files.changes().first { $0.kind == first })
                let released = try await scene.end(change.id, "release")
                #expect(released.status == 200, "\(released.text)")
                #expect(scene.text(of: "templates/new-podcast.yaml")?.contains(first) == true)
                #expect(scene.text(of: "campaigns/new-podcast.yaml")?.contains("2099-12-01") == true)
                #expect(try await scene.webConsole.cases.files.changes().isEmpty)
                try scene.folder.write(ComposerTests.commented, to: "campaigns/new-podcast.yaml")
            }
        }
    }

    @Test func `a release that finds one changed file releases none`() async throws {
        try await ComposerTests.with { scene in
            let form = try await ComposerTests.form(scene, as: .author)
            #expect(try await ComposerTests.post(scene, form, Self.once, as: .author).status == 303)
            let theirs = WebScene.templateText + "# theirs\n"
            try scene.folder.write(theirs, to: "templates/new-podcast.yaml")
            let changes = try await scene.webConsole.cases.files.changes()
            for change in changes {
                let released = try await scene.end(change.id, "release")
                #expect(released.status == 409, "\(released.text)")
            }
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == ComposerTests.commented)
            #expect(scene.text(of: "templates/new-podcast.yaml") == theirs)
            #expect(try await scene.webConsole.cases.files.changes().count == 2)
        }
    }
}
