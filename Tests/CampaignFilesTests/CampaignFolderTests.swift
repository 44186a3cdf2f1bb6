import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

struct CampaignFolderTests {
    private static let head = "campaign: spring\ntopic: com.example.a\npush_type: alert\ntemplate: long\n"
    private static let end = "expires_after: 1h\naudience: everyone\n"

    /// The campaign and templates `long` and `short` in a new folder.
    private func load(_ lines: String, short: String = "alert: {en: {title: \"{{title}}\"}}") throws -> LoadedCampaign {
        let temporary = try TemporaryDirectory()
        let path = try temporary.write(Self.head + lines + Self.end, to: "spring.yaml")
        _ = try temporary.write("template: long\nalert: {en: {title: A, body: B}}\n", to: "long.yaml")
        _ = try temporary.write("template: short\n\(short)\n", to: "short.yaml")
        return CampaignFolder(campaigns: temporary.url.path, templates: temporary.url.path).loadWhole(path: path)
    }

    private static let variants = """
        variables: {title: ""}
        variants:
          a: {weight: 50, template: long}
          b: {weight: 30, template: short}
          c: {weight: 20, template: short}

        """

    @Test func `every variant comes with its template`() throws {
        let loaded = try load(Self.variants)
        #expect(loaded.diagnostics.map(\.description) == [])
        #expect(loaded.campaign?.variants.map(\.name) == ["a", "b", "c"])
        #expect(loaded.template?.name == "long")
        #expect(loaded.variantTemplates.mapValues(\.name) == ["a": "long", "b": "short", "c": "short"])
    }

    @Test func `without variants there are no templates of variants`() throws {
        let loaded = try load("")
        #expect(loaded.template?.name == "long")
        #expect(loaded.variantTemplates.isEmpty)
    }

    @Test(arguments: [
        ("alert: {en: {title: \"{{titel}}\"}}", "short.yaml", 2), ("custom: {a: \"{{title}}\"}", "short.yaml", 1),
        ("event: end\nsound: a\ncustom: {a: \"{{title}}\"}", "short.yaml", 2),
        ("alert: {en: {title: \"{{title}}\"}}\nbadge: +1", "spring.yaml", 6),
    ])
    func `a variant's template is checked like the campaign's own, once`(short: String, file: String, line: Int) throws
    {
        let loaded = try load(Self.variants, short: short)
        let errors = loaded.diagnostics.filter { $0.severity == .error }
        #expect(errors.count == 1)
        #expect(errors.first?.path.hasSuffix("/\(file)") == true)
        #expect(errors.first?.line == line)
        #expect(loaded.campaign == nil && loaded.template == nil && loaded.variantTemplates.isEmpty)
        #expect(loaded.source?.campaign.name == "spring")
    }

    @Test func `a variant whose template is missing says so at its line`() throws {
        let loaded = try load("variants:\n  a: {weight: 1, template: long}\n  b: {weight: 1, template: none}\n")
        #expect(loaded.diagnostics.map { [$0.line, $0.column] } == [[7, 3]])
        #expect(loaded.campaign == nil)
    }

    @Test func `a variant's template under a wrong name is an error`() throws {
        let temporary = try TemporaryDirectory()
        let lines = "variants:\n  a: {weight: 1, template: long}\n  b: {weight: 1, template: short}\n"
        let path = try temporary.write(Self.head + lines + Self.end, to: "spring.yaml")
        for name in ["long", "short"] {
            _ = try temporary.write("template: long\nsound: default\n", to: "\(name).yaml")
        }
        let folder = CampaignFolder(campaigns: temporary.url.path, templates: temporary.url.path)
        let loaded = folder.loadWhole(path: path)
        #expect(loaded.diagnostics.map { "\(($0.path as NSString).lastPathComponent):\($0.line)" } == ["short.yaml:1"])
    }

    @Test func `files are read as they are now, and each by its own path, also where such a text was read before`()
        throws
    {
        let temporary = try TemporaryDirectory()
        let path = try temporary.write(Self.head + Self.end, to: "spring.yaml")
        let template = try temporary.write("template: long\nsound: default\n", to: "long.yaml")
        let folder = CampaignFolder(campaigns: temporary.url.path, templates: temporary.url.path)
        for _ in 1...2 { #expect(folder.loadWhole(path: path).isRight) }
        _ = try temporary.write("template: long\nsond: default\n", to: "long.yaml")
        #expect(folder.loadWhole(path: path).diagnostics.map(\.path).contains(template))
        _ = try temporary.write("template: long\nsound: default\n", to: "long.yaml")
        #expect(folder.loadWhole(path: path).isRight)
        let other = try temporary.write("template: long\nsond: default\n", to: "other.yaml")
        #expect(TemplateFile.load(path: other).1.map(\.path).contains(other))
        // What is not saved stands in no file.
        let draft = CampaignFolder(
            campaigns: folder.campaigns, templates: folder.templates, drafts: [path: "campaign: x\n"])
        #expect(!draft.loadWhole(path: path).isRight && folder.loadWhole(path: path).isRight)
    }

    @Test func `the old form gives the same without variants`() throws {
        let temporary = try TemporaryDirectory()
        let path = try temporary.write(Self.head + Self.end, to: "spring.yaml")
        _ = try temporary.write("template: long\nsound: default\n", to: "long.yaml")
        let folder = CampaignFolder(campaigns: temporary.url.path, templates: temporary.url.path)
        let found = folder.load(path: path)
        #expect(found.campaign == folder.loadWhole(path: path).campaign)
        #expect(found.template?.name == "long")
        #expect(found.diagnostics.isEmpty)
    }
}
