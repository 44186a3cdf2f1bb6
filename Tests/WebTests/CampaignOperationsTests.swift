import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

@testable import Web

/// Campaign and template files by way of the API.
@Suite(.timeLimit(.minutes(10)))
struct CampaignOperationsTests {
    private static let yaml = ["Content-Type": "application/yaml"]

    private static func tag(_ text: String) -> [String: String] {
        ["Content-Type": "application/yaml", "If-Match": "\"\(text)\""]
    }

    @Test func `campaigns are listed right or wrong, with their templates, what comes next and their last run`()
        async throws
    {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            try scene.folder.write("campaign: broken\ntopik: x\n", to: "campaigns/broken.yaml")
            let list = try await scene.api("GET", "/campaigns", as: .viewer)
                .result(ListPage<CampaignResult>.self).items
            #expect(list.map(\.name) == ["broken", "morning", "new-podcast"])
            #expect(list.map(\.ok) == [false, true, true])
            #expect(list.map(\.startedBy) == ["hand", "schedule", "hand"])
            #expect(list[1].nextOccurrences.count == 3)
            #expect(list[2].lastRun == nil)
            let detail = try await scene.api("GET", "/campaigns/new-podcast", as: .viewer)
            let campaign = try detail.result(CampaignDetailResult.self)
            #expect(campaign.text == WebScene.campaignText)
            #expect(campaign.problems.isEmpty)
            #expect(campaign.templates.map(\.text) == [WebScene.templateText])
            #expect(campaign.editing == false)
            #expect(detail.header("etag") == "\"\(try #require(campaign.etag))\"")
            let template = try await scene.api("GET", "/templates/new-podcast", as: .viewer)
                .result(TemplateDetailResult.self)
            #expect(template.template.locales == ["en", "de"])
            #expect(template.template.campaigns == ["morning", "new-podcast"])
            let none = try await scene.api("GET", "/campaigns/new-podcst", as: .viewer)
            #expect(none.status == 404)
            #expect(none.problem?.detail.hasPrefix("no campaign \"new-podcst\" in ") ?? false)
            let outside = try await scene.api("GET", "/campaigns/..%2Ftemplates%2Fnew-podcast", as: .viewer)
            #expect(outside.status == 404)
        }
    }

    @Test func `a text is checked as if it stood in its file, and nothing is written`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let typo = WebScene.campaignText.replacing("audience:", with: "audiance:")
            let body = try ResultJSON.text(["text": typo])
            let answer = try await scene.api("POST", "/campaigns/new-podcast/validate", as: .author, body: body)
            #expect(answer.status == 200)
            let found = try answer.result(ValidationResult.self)
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == WebScene.campaignText)
            // As the same text is when it is saved.
            let path = try scene.folder.write(typo, to: "campaigns/new-podcast.yaml")
            let saved = try scene.checked(path)
            #expect(found.problems == saved.problems)
            #expect(found.files == saved.files)
            #expect(found.problems.first?.line == 5)
            #expect(found.problems.first?.what == "campaign: unknown key \"audiance\"")
            #expect(try await scene.api("POST", "/campaigns/x/validate", as: .viewer, body: body).status == 403)
            let field = try await scene.api(
                "POST", "/campaigns/x/validate", as: .author, body: "{\"txt\": \"\"}")
            #expect(field.problem?.errors?.map(\.pointer) == ["/txt", "/text"])
            let name = try await scene.api("POST", "/campaigns/a%2Fb/validate", as: .author, body: body)
            #expect(name.status == 422)
            #expect(name.problem?.detail.contains("is not a valid file name") ?? false)
            let large = try ResultJSON.text(["text": String(repeating: "#", count: ManageFiles.bytesMax + 1)])
            #expect(try await scene.api("POST", "/campaigns/x/validate", as: .author, body: large).status == 413)
        }
    }

    @Test func `a template's text is checked with the campaigns that use it`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let body = try ResultJSON.text([
                "text": WebScene.templateText.replacing("{{title}} ist da.", with: "{{titel}} ist da.")
            ])
            let found = try await scene.api("POST", "/templates/new-podcast/validate", as: .author, body: body)
                .result(ValidationResult.self)
            let error = try #require(found.problems.first { $0.severity == "error" })
            #expect(error.path == scene.folder.file("templates/new-podcast.yaml"))
            #expect(error.line == 5)
            #expect(error.what.contains("titel"))
        }
    }

    @Test func `where editing is off nothing is written, and the answer says why`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            let answer = try await scene.api(
                "PUT", "/campaigns/new-podcast", as: .author, body: WebScene.campaignText, headers: Self.yaml)
            #expect(answer.status == 403)
            #expect(answer.problem?.detail.contains("web editing is off") ?? false)
        }
    }

    @Test func `of two who change one file the second is told, and nothing is lost`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let path = "/campaigns/new-podcast"
            let etag = try #require(try await scene.api("GET", path).result(CampaignDetailResult.self).etag)
            chmod(scene.folder.file("campaigns/new-podcast.yaml"), 0o640)
            let first = WebScene.campaignText.replacing("4h", with: "5h")
            let second = WebScene.campaignText.replacing("4h", with: "6h")
            let unsaid = try await scene.api("PUT", path, as: .author, body: first, headers: Self.yaml)
            #expect(unsaid.status == 428)
            #expect(unsaid.header("etag") == "\"\(etag)\"")
            let saved = try await scene.api("PUT", path, as: .author, body: first, headers: Self.tag(etag))
            #expect(saved.status == 200)
            let written = try saved.result(WrittenFileResult.self)
            let late = try await scene.api("PUT", path, as: .author, body: second, headers: Self.tag(etag))
            #expect(late.status == 412)
            #expect(late.header("etag") == "\"\(written.etag)\"")
            #expect(scene.text(of: "campaigns/new-podcast.yaml") == first)
            let mode =
                try FileManager.default.attributesOfItem(
                    atPath: scene.folder.file("campaigns/new-podcast.yaml"))[.posixPermissions] as? Int
            #expect(mode == 0o640)
            #expect(try FileManager.default.contentsOfDirectory(atPath: scene.folder.file("campaigns")).count == 1)
            let event = try #require(try await scene.store.events(run: nil, since: nil, limit: 9).last)
            #expect(event.kind == "file_written")
            #expect(event.actor.name == "author (token)")
            #expect(event.files.values.contains(written.etag))
        }
    }

    @Test func `the document says by which headers a file is replaced or made`() async throws {
        try await WebScene.with { scene in
            let text = try await scene.ask("GET", "/api/v1/openapi.json").text
            let document = try #require(
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            let paths = try #require(document["paths"] as? [String: [String: [String: Any]]])
            for path in ["/campaigns/{campaign}", "/templates/{template}"] {
                let parameters = paths[path]?["put"]?["parameters"] as? [[String: Any]] ?? []
                let headers = parameters.filter { $0["in"] as? String == "header" }
                #expect(headers.map { $0["name"] as? String } == ["If-Match", "If-None-Match"], "\(path)")
                #expect(headers.allSatisfy { $0["required"] as? Bool == false })
            }
        }
    }

    @Test func `what is no text is written over by nobody`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let path = scene.folder.file("campaigns/new-podcast.yaml")
            let latin = Data("campaign: new-podcast # F\u{FC}r alle".unicodeScalars.map { UInt8($0.value) })
            try latin.write(to: URL(fileURLWithPath: path))
            let read = try await scene.api("GET", "/campaigns/new-podcast").result(CampaignDetailResult.self)
            #expect(read.text == nil && read.etag == nil && !read.problems.isEmpty)
            for headers in [Self.tag(try FileHash.hash(of: path)), Self.yaml.merging(["If-None-Match": "*"]) { $1 }] {
                let answer = try await scene.api(
                    "PUT", "/campaigns/new-podcast", as: .author, body: WebScene.campaignText, headers: headers)
                #expect(answer.status == 422)
                #expect(answer.problem?.detail.contains("cannot be read as UTF-8 text") ?? false)
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == latin)
        }
    }

    @Test func `a new file is made where there is none, and never in another's place`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let new = Self.yaml.merging(["If-None-Match": "*"]) { $1 }
            let text = WebScene.campaignText.replacing("campaign: new-podcast", with: "campaign: copy")
            #expect(try await scene.api("PUT", "/campaigns/copy", as: .author, body: text, headers: new).status == 201)
            #expect(scene.text(of: "campaigns/copy.yaml") == text)
            let again = try await scene.api("PUT", "/campaigns/copy", as: .author, body: text, headers: new)
            #expect(again.status == 412)
            #expect(again.problem?.detail.contains("copy.yaml was changed after you opened it") ?? false)
            #expect(
                try await scene.api("PUT", "/campaigns/other", as: .author, body: text, headers: Self.yaml).status
                    == 428)
            #expect(
                try await scene.api("PUT", "/campaigns/other", as: .author, body: text, headers: Self.tag("0")).status
                    == 412)
            for name in ["..%2Fx", ".hidden", "a..b", "a%00b", "x.yaml", "%3Cscript%3E"] {
                let answer = try await scene.api("PUT", "/campaigns/\(name)", as: .author, body: text, headers: new)
                #expect([404, 422].contains(answer.status), "\(name) \(answer.status)")
            }
            let link = scene.folder.file("campaigns/link.yaml")
            let target = scene.folder.file("secret")
            try scene.folder.write("secret", to: "secret")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
            for headers in [new, Self.tag(try FileHash.hash(of: target))] {
                let answer = try await scene.api("PUT", "/campaigns/link", as: .author, body: text, headers: headers)
                #expect(answer.status == 422)
                #expect(answer.problem?.detail.contains("link or not a regular file") ?? false)
            }
            #expect(scene.text(of: "secret") == "secret")
            let large = String(repeating: "#", count: ManageFiles.bytesMax + 1)
            #expect(try await scene.api("PUT", "/campaigns/big", as: .author, body: large, headers: new).status == 413)
        }
    }

    @Test func `a text with errors is not saved, and each is named; one that another file needs neither`() async throws
    {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let campaign = try await scene.api("GET", "/campaigns/new-podcast").result(CampaignDetailResult.self)
            let wrong = WebScene.campaignText.replacing("push_type: alert", with: "push_type: alrt")
            let answer = try await scene.api(
                "PUT", "/campaigns/new-podcast", as: .author, body: wrong,
                headers: Self.tag(try #require(campaign.etag)))
            #expect(answer.status == 422)
            #expect(answer.problem?.errors?.first?.detail.contains("new-podcast.yaml:3:") ?? false)
            // The campaign has no such variable.
            let template = WebScene.templateText.replacing("{{title}}", with: "{{name}}")
            let broken = try await scene.api(
                "PUT", "/templates/new-podcast", as: .author, body: template,
                headers: Self.tag(try #require(campaign.templates[0].etag)))
            #expect(broken.status == 422)
            #expect(scene.text(of: "templates/new-podcast.yaml") == WebScene.templateText)
        }
    }

    @Test func `a start in the past is not saved, and a campaign whose start is over can be edited`() async throws {
        try await WebScene.with({ $0.http.editing = true }) { scene in
            try await scene.addCampaign()
            let path = "/campaigns/morning"
            let past = WebScene.scheduledText.replacing("cron: \"30 2 * * *\"", with: "at: 2020-01-01T00:00")
            let words = "its only start, 2020-01-01 00:00 Europe/Berlin, is over"
            let new = Self.yaml.merging(["If-None-Match": "*"]) { $1 }
            for role in [AccessRole.author, .admin] {
                let refused = try await scene.api("PUT", path, as: role, body: past, headers: new)
                #expect(refused.status == 422)
                #expect(refused.problem?.errors?.first?.detail.contains(words) ?? false, "\(refused.text)")
            }
            let body = try ResultJSON.text(["text": past])
            let checked = try await scene.api("POST", "\(path)/validate", as: .admin, body: body)
            #expect(try checked.result(ValidationResult.self).problems.contains { $0.what.contains(words) })
            // A page names no command of the terminal.
            let problem = try #require(
                try checked.result(ValidationResult.self).problems.first { $0.what.contains(words) })
            let shown = FileEditor.Trouble(problem, in: nil).summary
            #expect(shown.contains("start it with a plan on the campaign’s page"), "\(shown)")
            #expect(scene.text(of: "campaigns/morning.yaml") == nil)
            // Its file was in time.
            try scene.folder.write(past, to: "campaigns/morning.yaml")
            let etag = try #require(try await scene.api("GET", path).result(CampaignDetailResult.self).etag)
            let edited = past.replacing("4h", with: "5h")
            let saved = try await scene.api("PUT", path, as: .admin, body: edited, headers: Self.tag(etag))
            #expect(saved.status == 200, "\(saved.text)")
            let hash = try saved.result(WrittenFileResult.self).etag
            let moved = edited.replacing("2020-01-01", with: "2020-02-02")
            #expect(try await scene.api("PUT", path, as: .admin, body: moved, headers: Self.tag(hash)).status == 422)
            let coming = edited.replacing("2020-01-01", with: "2090-01-01")
            #expect(try await scene.api("PUT", path, as: .admin, body: coming, headers: Self.tag(hash)).status == 200)
            // A template does not answer for the schedules of its campaigns.
            try scene.folder.write(past, to: "campaigns/morning.yaml")
            let template = try await scene.api("GET", "/templates/new-podcast").result(TemplateDetailResult.self)
            let text = WebScene.templateText.replacing("is out", with: "is here")
            let changed = try await scene.api(
                "PUT", "/templates/new-podcast", as: .admin, body: text,
                headers: Self.tag(try #require(template.etag)))
            #expect(changed.status == 200, "\(changed.text)")
        }
    }

    @Test func `whoever is confined to one app neither sees nor changes another's files`() async throws {
        try await WebScene.with(WebScene.editingOfTwoApps) { scene in
            try await scene.addCampaign()
            let other = WebScene.campaignText.replacing("com.example.app", with: "com.example.other")
                .replacing("campaign: new-podcast", with: "campaign: theirs").replacing("4h", with: "3h")
            try scene.folder.write(other, to: "campaigns/theirs.yaml")
            try scene.folder.write("campaign: [", to: "campaigns/unreadable.yaml")
            let own = try await scene.confined(to: "com.example.app")
            let list = try await scene.api("GET", "/campaigns", headers: own).result(ListPage<CampaignResult>.self)
            #expect(list.items.map(\.name) == ["new-podcast"])
            for path in ["/campaigns/theirs", "/campaigns/unreadable", "/campaigns/nothing"] {
                let answer = try await scene.api("GET", path, headers: own)
                #expect(answer.status == 404)
                #expect(answer.problem?.detail == "no campaign \"\(path.dropFirst(11))\"")
            }
            for path in ["plan", "render", "test-send", "runs"] {
                let body = path == "runs" ? #"{"occurrence": "x"}"# : path == "test-send" ? #"{"device": "x"}"# : "{}"
                let answer = try await scene.api("POST", "/campaigns/theirs/\(path)", body: body, headers: own)
                #expect(answer.status == 404, "\(path)")
            }
            let new = own.merging(["If-None-Match": "*"]) { $1 }
            let text = other.replacing("theirs", with: "sneaked")
            #expect(try await scene.api("PUT", "/campaigns/sneaked", body: text, headers: new).status == 403)
            // Both apps send it.
            let etag = try await scene.api("GET", "/templates/new-podcast").result(TemplateDetailResult.self).etag
            let shared = try await scene.api(
                "PUT", "/templates/new-podcast", body: WebScene.templateText,
                headers: own.merging(["If-Match": etag ?? ""]) { $1 })
            #expect(shared.status == 403)
            let template = try await scene.api("GET", "/templates/new-podcast", headers: own)
            #expect(try template.result(TemplateDetailResult.self).template.campaigns == ["new-podcast"])
            let checked = try await scene.api(
                "POST", "/templates/new-podcast/validate", body: try ResultJSON.text(["text": "template: x\n"]),
                headers: own)
            #expect(try checked.result(ValidationResult.self).files.count == 2)
            #expect(!checked.text.contains("theirs"))
        }
    }
}

extension WebScene {
    /// What `fanfare validate PATH` says.
    func checked(_ path: String) throws -> ValidationResult {
        let templates = folder.file("templates")
        return try CheckFiles(
            configuration: configuration, templates: templates, configuredTemplates: { templates }, environment: [:]
        ).check([path]).result
    }

    private var configuration: Configuration { webConsole.cases.configuration() }
}
