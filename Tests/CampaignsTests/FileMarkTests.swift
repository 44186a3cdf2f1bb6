import Campaigns
import Foundation
import Model
import TestSupport
import Testing

/// When the catalogue reads a file again.
struct FileMarkTests {
    private let folder: TemporaryDirectory
    private let configuration: Configuration

    init() throws {
        folder = try TemporaryDirectory()
        configuration = Configuration(
            store: "s", campaigns: "\(folder.path)/campaigns", templates: "\(folder.path)/templates")
        try write("campaigns/spring.yaml", template: "spring")
        _ = try folder.write("template: spring\nalert: {en: {title: Old}}\n", to: "templates/spring.yaml")
    }

    private func write(_ path: String, template: String) throws {
        _ = try folder.write(
            "campaign: spring\ntopic: com.example.a\npush_type: alert\ntemplate: \(template)\nexpires_after: 1h\n"
                + "audience: everyone\n", to: path)
    }

    /// Makes the file a symbolic link to a file outside the folders, as a deployment does.
    private func link(_ path: String) throws {
        let target = folder.file("released-" + path.replacing("/", with: "-"))
        try FileManager.default.moveItem(atPath: folder.file(path), toPath: target)
        try FileManager.default.createSymbolicLink(atPath: folder.file(path), withDestinationPath: target)
    }

    @Test func `a changed target of a symbolic link is read again`() throws {
        try link("campaigns/spring.yaml")
        try link("templates/spring.yaml")
        var catalogue = CampaignCatalogue()
        #expect(catalogue.refresh(configuration).count == 1)
        #expect(catalogue.refresh(configuration).isEmpty)
        let before = try #require(catalogue.ready.first)
        _ = try folder.write(
            "template: spring\nalert: {en: {title: A newer one}}\n", to: "released-templates-spring.yaml")
        #expect(catalogue.refresh(configuration).count == 1)
        #expect(catalogue.ready.first?.template != before.template)
        let text = try String(contentsOfFile: folder.file("released-campaigns-spring.yaml"), encoding: .utf8)
        _ = try folder.write(text + "priority: 5\n", to: "released-campaigns-spring.yaml")
        #expect(catalogue.refresh(configuration).count == 1)
        #expect(catalogue.ready.first?.campaign != before.campaign)
    }

    @Test func `changed permissions are another mark`() throws {
        let path = folder.file("campaigns/spring.yaml")
        let before = try #require(FileMark(path))
        #expect(before == FileMark(path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let closed = try #require(FileMark(path))
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        #expect(closed != FileMark(path))
        #expect(before.changedAt == FileMark(path)?.changedAt)
    }

    /// A link that is new names a version that is new here, however old its file is.
    @Test func `a link counts as changed when it or its target was last written`() throws {
        try link("campaigns/spring.yaml")
        let (path, target) = (folder.file("campaigns/spring.yaml"), folder.file("released-campaigns-spring.yaml"))
        let linked = try #require(FileMark(path)).changedAt
        for (shift, expected) in [(-86_400.0, linked), (86_400, linked + .seconds(86_400))] {
            let written = Date(timeIntervalSince1970: Double(linked.milliseconds) / 1000 + shift)
            try FileManager.default.setAttributes([.modificationDate: written], ofItemAtPath: target)
            let found = try #require(FileMark(path)).changedAt
            #expect(abs((found - expected).components.seconds) < 60, "\(found.iso8601), not \(expected.iso8601)")
        }
        try FileManager.default.removeItem(atPath: target)
        #expect(FileMark(path) == nil)
    }

    /// The cause may lie elsewhere, for example in a disk that works again.
    @Test func `a file with an error is read again without a change of its own`() throws {
        try write("campaigns/spring.yaml", template: "springs")
        var catalogue = CampaignCatalogue()
        for _ in 0..<2 { #expect(catalogue.refresh(configuration).count == 1) }
        #expect(catalogue.problems.count == 1)
    }

    @Test func `a person who asks for it has all files read again`() throws {
        var catalogue = CampaignCatalogue()
        catalogue.refresh(configuration)
        #expect(catalogue.refresh(configuration).isEmpty)
        #expect(catalogue.refresh(configuration, isAsked: true).count == 1)
    }
}
