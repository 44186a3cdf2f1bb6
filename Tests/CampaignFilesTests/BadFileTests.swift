import CampaignFiles
import Foundation
import Model
import Testing

/// Broken files in `Fixtures/bad`, each with the messages it must give in a file `.expected` beside it. Those called
/// `whole-…` are campaigns that are checked together with their templates in `Fixtures/bad/templates`.
struct BadFileTests {
    static var names: [String] {
        get throws {
            try Files.paths(in: Files.fixtures.appending(path: "bad"), ending: ".yaml").map {
                URL(fileURLWithPath: $0).deletingPathExtension().lastPathComponent
            }
        }
    }

    private func messages(of name: String) throws -> [String] {
        let bad = Files.fixtures.appending(path: "bad").path
        let path = "\(bad)/\(name).yaml"
        if name.hasPrefix("whole") {
            let loaded = CampaignFolder(campaigns: bad, templates: "\(bad)/templates").loadWhole(path: path)
            #expect((loaded.campaign == nil) == loaded.diagnostics.contains { $0.severity == .error })
            #expect((loaded.template == nil) == (loaded.campaign == nil))
            return loaded.diagnostics.map { $0.description.replacing("\(bad)/", with: "") }
        }
        let text = try Files.text(path)
        let file = "\(name).yaml"
        let (isRead, diagnostics) =
            if name.hasPrefix("campaign") {
                read(CampaignFile.read(text: text, path: file))
            } else if name.hasPrefix("template") {
                read(TemplateFile.read(text: text, path: file))
            } else {
                read(ConfigurationFile.read(text: text, path: file))
            }
        let hasErrors = diagnostics.contains { $0.severity == .error }
        #expect(isRead == !hasErrors)
        return diagnostics.map(\.description)
    }

    private func read<Value>(_ result: (Value?, [Diagnostic])) -> (Bool, [Diagnostic]) {
        (result.0 != nil, result.1)
    }

    @Test(arguments: try names) func `a broken file gives the messages beside it`(name: String) throws {
        let messages = try messages(of: name)
        let expected = try Files.text(Files.fixtures.appending(path: "bad/\(name).expected").path)
        #expect(messages.joined(separator: "\n") + "\n" == expected)
    }

    @Test(arguments: try names) func `a message names no type of the program`(name: String) throws {
        let types = [
            "Optional(", "LocaleTag", "TemplateText", "PushType", "DiagnosticCollector", "FileNode", "Swift", "Model.",
        ]
        for message in try messages(of: name) {
            for type in types { #expect(!message.contains(type)) }
        }
    }

    @Test func `there are broken files of every kind`() throws {
        let names = try Self.names
        #expect(names.count >= 75)
        for kind in ["campaign", "template", "configuration", "whole"] {
            #expect(names.contains { $0.hasPrefix(kind) })
        }
    }
}
