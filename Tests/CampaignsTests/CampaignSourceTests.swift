import Foundation
import Model
import Platform
import TestSupport
import Testing

@testable import Campaigns

/// The hashes that a start records and that a signature covers: those of the texts that the start read.
struct CampaignSourceTests {
    private let folder: TemporaryDirectory
    private let configuration: Configuration

    init() throws {
        folder = try TemporaryDirectory()
        configuration = Configuration(
            store: "s", campaigns: "\(folder.path)/campaigns", templates: "\(folder.path)/templates", apps: [])
        for name in ["a", "b", "fixed"] { try write("templates/\(name).yaml", Self.template(name, "Hello")) }
        try write("campaigns/news.yaml", Self.campaign("a"))
    }

    private static func template(_ name: String, _ title: String) -> String {
        "template: \(name)\nalert: {en: {title: \(title)}}\n"
    }

    private static func campaign(_ template: String) -> String {
        """
        campaign: news
        topic: com.example.a
        push_type: alert
        template: \(template)
        correction: fixed
        expires_after: 1h
        audience: everyone

        """
    }

    @discardableResult private func write(_ file: String, _ text: String) throws -> String {
        try folder.write(text, to: file)
    }

    private func hashes(_ texts: [String: String]) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: texts.map {
                (FileHash.absolute(folder.file($0.key)), Digest.sha256Hex(Array($0.value.utf8)))
            })
    }

    private func read(_ template: String = "a") -> [String: String] {
        hashes([
            "campaigns/news.yaml": Self.campaign(template),
            "templates/\(template).yaml": Self.template(template, "Hello"),
            "templates/fixed.yaml": Self.template("fixed", "Hello"),
        ])
    }

    @Test func `a save after the files were read changes neither the texts of the start nor their hashes`() throws {
        let source = try CampaignSource.load("news", configuration)
        for name in ["a", "fixed"] { try write("templates/\(name).yaml", Self.template(name, "Changed")) }
        try write("campaigns/news.yaml", Self.campaign("b"))
        #expect(source.campaign.template == "a")
        #expect(source.hashes == read())
        #expect(try CampaignSource.load("news", configuration).hashes != read())
    }

    @Test func `the hashes are those of the files' bytes, a byte order mark included`() throws {
        let text = "\u{FEFF}" + Self.campaign("a")
        let path = try write("campaigns/news.yaml", text)
        let source = try CampaignSource.load("news", configuration)
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        #expect(source.hashes[FileHash.absolute(path)] == Digest.sha256Hex(bytes))
        // Equal characters in other bytes are another text.
        try write("templates/a.yaml", Self.template("a", "u\u{308}"))
        let first = try CampaignSource.load("news", configuration).hashes
        try write("templates/a.yaml", Self.template("a", "\u{fc}"))
        #expect(try CampaignSource.load("news", configuration).hashes != first)
    }

    @Test func `a scheduled campaign names the files that it was read from, and no template that it no longer uses`()
        throws
    {
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        #expect(catalogue.ready.map(\.files) == [read()])
        try write("campaigns/news.yaml", Self.campaign("b"))
        try FileManager.default.removeItem(atPath: folder.file("templates/a.yaml"))
        catalogue.refresh(configuration, isAsked: true)
        #expect(catalogue.ready.map(\.files) == [read("b")])
    }
}
