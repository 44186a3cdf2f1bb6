import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

struct ExampleFileTests {
    private static let folder = CampaignFolder(
        campaigns: Files.project.appending(path: "campaigns").path,
        templates: Files.project.appending(path: "templates").path)

    @Test(arguments: ["new-podcast", "breaking-news", "refresh-episodes"])
    func `an example campaign and its template have no flaw`(name: String) throws {
        let found = Self.folder.load(path: Self.folder.campaignPath(name))
        #expect(found.diagnostics.map(\.description) == [])
        #expect(found.campaign?.name == name)
        #expect(found.template?.name == name)
    }

    @Test func `what the example only mentions is right as well`() throws {
        let text = try Files.text(Self.folder.campaignPath("new-podcast"))
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix("# Further keys of a campaign") })
        var parts: [String] = []
        for line in lines[start...].dropFirst() where line.hasPrefix("# ") {
            let bare = line.dropFirst(2)
            bare.hasPrefix(" ") ? (parts[parts.count - 1] += "\n\(bare)") : parts.append(String(bare))
        }
        #expect(parts.count == 12)
        for part in parts {
            let head = part.hasPrefix("audience") ? CampaignFileTests.bare : CampaignFileTests.head
            let file = head + "variables: {title: \"\", link_url: \"\"}\n" + part + "\n"
            #expect(CampaignFile.read(text: file, path: "a.yaml").1.map(\.description) == [], "\(part)")
        }
    }

    @Test func `the example names every key of a campaign`() throws {
        let text = try Files.text(Self.folder.campaignPath("new-podcast"))
        for key in CampaignKeys.shape.keys { #expect(text.contains("\(key.name):"), "\(key.name)") }
    }

    @Test func `the example of a new episode speaks eight languages`() {
        let (template, _) = TemplateFile.load(path: Self.folder.templatePath("new-podcast"))
        let locales = template?.template.locales.map(\.description) ?? []
        #expect(Set(locales).isSuperset(of: ["en", "de", "pt-BR", "pt-PT", "es", "fr", "ja", "zh-Hant"]))
    }

    @Test func `the example configuration has no flaw`() {
        let path = Files.project.appending(path: "systemd/fanfare.yaml").path
        let (configuration, diagnostics) = ConfigurationFile.load(path: path)
        #expect(diagnostics.map(\.description) == [])
        #expect(configuration?.store == "/var/lib/fanfare/fanfare.sqlite")
    }

    @Test func `a campaign whose template is missing says so at its line`() throws {
        let temporary = try TemporaryDirectory()
        let path = try temporary.write(
            "campaign: a\ntopic: com.example.a\npush_type: alert\ntemplate: nowhere\naudience: everyone\n", to: "a.yaml"
        )
        let folder = CampaignFolder(campaigns: temporary.url.path, templates: temporary.url.path)
        let found = folder.load(path: path)
        #expect(found.campaign == nil)
        #expect(found.diagnostics.map { [$0.line, $0.column] } == [[4, 1]])
        #expect(found.diagnostics.first?.what.contains("no such file") == true)
    }

    @Test func `a copied campaign that kept its name is worth a warning`() throws {
        let temporary = try TemporaryDirectory()
        let path = try temporary.write(
            "campaign: a\ntopic: com.example.a\npush_type: alert\ntemplate: t\naudience: everyone\nexpires_after: 1h\n",
            to: "copy.yaml")
        _ = try temporary.write("template: t\nsound: default\n", to: "t.yaml")
        let folder = CampaignFolder(campaigns: temporary.url.path, templates: temporary.url.path)
        let found = folder.load(path: path)
        #expect(found.campaign?.name == "a")
        #expect(found.diagnostics.map(\.severity) == [.warning])
    }

    @Test func `files that cannot be read say why`() throws {
        let temporary = try TemporaryDirectory()
        let large = try temporary.write(String(repeating: "#\n", count: 600_000), to: "large.yaml")
        let bytes = try temporary.write([0x61, 0xFF, 0xFE], to: "bytes.yaml")
        let rows = [
            (temporary.file("none.yaml"), "no such file"), (temporary.url.path, "is a folder"),
            (large, "is larger than"), (bytes, "is not UTF-8"),
        ]
        for (path, what) in rows {
            #expect(CampaignFile.load(path: path).1.first?.what.hasPrefix(what) == true)
            #expect(TemplateFile.load(path: path).1.first?.what.hasPrefix(what) == true)
            #expect(ConfigurationFile.load(path: path).1.first?.what.hasPrefix(what) == true)
        }
    }
}
