import CampaignFiles
import Foundation
import Model
import Testing

@Suite struct `Example files` {
    private static func files(in folder: String) throws -> [String] {
        let path = `Tidiness`.root.appending(path: folder).path
        return try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".yaml") }
            .map { "\(path)/\($0)" }
    }

    @Test func `every campaign is read without a word, and fits its template`() throws {
        let files = try Self.files(in: "campaigns")
        #expect(files.count >= 3)
        let root = `Tidiness`.root.path
        let folder = CampaignFolder(campaigns: "\(root)/campaigns", templates: "\(root)/templates")
        for path in files {
            let (campaign, template, problems) = folder.load(path: path)
            #expect(problems.isEmpty, "\(problems)")
            #expect(campaign != nil && template != nil)
        }
    }

    @Test func `every template is read without a word`() throws {
        for path in try Self.files(in: "templates") {
            let (template, problems) = TemplateFile.load(path: path)
            #expect(template != nil)
            #expect(problems.isEmpty, "\(problems)")
        }
    }

    @Test func `the example configuration is read without a word`() throws {
        let (configuration, problems) = ConfigurationFile.load(
            path: `Tidiness`.root.appending(path: "systemd/fanfare.yaml").path)
        #expect(configuration != nil)
        #expect(problems.isEmpty, "\(problems)")
    }

    /// Active or behind a `#`, and never without words beside it.
    @Test func `the example configuration names every key there is`() throws {
        let text = try String(contentsOf: `Tidiness`.root.appending(path: "systemd/fanfare.yaml"), encoding: .utf8)
        var shapes = [ConfigurationKeys.shape]
        while let shape = shapes.popLast() {
            for key in shape.keys {
                #expect(text.contains("\(key.name):"), "\(shape.name).\(key.name)")
                switch key.value {
                case .object(let inner), .list(.object(let inner)): shapes.append(inner)
                default: break
                }
            }
        }
    }
}
