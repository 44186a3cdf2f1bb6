import Campaigns
import Daemon
import Foundation
import Logging
import Model
import Store
import TestSupport
import Testing

/// The folder of the campaigns vanishes under a daemon, as when its file system is not mounted.
@Suite(.timeLimit(.minutes(10))) struct `A campaign folder that vanishes` {
    private let folder: TemporaryDirectory
    private let reloading: Reloading

    init() throws {
        folder = try TemporaryDirectory()
        try folder.write(
            """
            store: a.sqlite
            campaigns: \(folder.path)/campaigns
            templates: \(folder.path)/templates
            apps: [{topic: com.example.a, certificate_path: a.pem}]

            """, to: "fanfare.yaml")
        for name in ["one", "two"] {
            try folder.write(
                """
                campaign: \(name)
                topic: com.example.a
                push_type: alert
                template: t
                audience: everyone

                """, to: "campaigns/\(name).yaml")
        }
        try folder.write(
            "template: t\ndefault_locale: en\nalert: {en: {title: Hello, body: World}}\n", to: "templates/t.yaml")
        let source = ConfigurationSource(named: folder.file("fanfare.yaml"), environment: [:])
        let (configuration, _) = try source.read()
        reloading = Reloading(source: source, configuration: configuration, logger: Logger(label: "test"))
    }

    private func names(isAsked: Bool = false) async throws -> [String] {
        try await reloading.snapshot(isAsked: isAsked).campaigns.map(\.campaign.name)
    }

    private func move(_ from: String, _ to: String) throws {
        try FileManager.default.moveItem(atPath: folder.file(from), toPath: folder.file(to))
    }

    private func makeEmpty() throws {
        try FileManager.default.createDirectory(atPath: folder.file("campaigns"), withIntermediateDirectories: false)
    }

    @Test func `keeps its campaigns, says so, and counts no file as removed`() async throws {
        #expect(try await names() == ["one", "two"])
        try move("campaigns", "away")
        for isAsked in [false, true] {
            let snapshot = try await reloading.snapshot(isAsked: isAsked)
            #expect(snapshot.campaigns.map(\.campaign.name) == ["one", "two"])
            #expect(snapshot.names == ["one", "two"])
            let problem = try #require(snapshot.problems.first)
            #expect(snapshot.problems.count == 1 && problem.keepsOld && problem.path == folder.file("campaigns"))
            #expect(problem.messages[0].contains("No such file or directory"), "\(problem.messages)")
            #expect(problem.messages[0].contains("the 2 campaigns from it stay loaded"))
            #expect(
                problem.messages[0].contains("put the folder back, or create an empty folder"), "\(problem.messages)")
            #expect(snapshot.hashes.isEmpty)
        }
        try move("away", "campaigns")
        let back = try await reloading.snapshot()
        #expect(back.problems.isEmpty && back.campaigns.count == 2)
    }

    @Test func `and is empty keeps them until a person reloads`() async throws {
        #expect(try await names().count == 2)
        try move("campaigns", "away")
        try makeEmpty()
        let snapshot = try await reloading.snapshot()
        #expect(snapshot.campaigns.count == 2)
        #expect(snapshot.problems.first?.messages[0].contains("is now empty") == true)
        #expect(try await names(isAsked: true).isEmpty)
        #expect(try await reloading.snapshot().problems.isEmpty)
    }

    @Test func `is no fault while some of its files are left`() async throws {
        #expect(try await names().count == 2)
        try FileManager.default.removeItem(atPath: folder.file("campaigns/one.yaml"))
        #expect(try await names() == ["two"])
        #expect(try await reloading.snapshot().problems.isEmpty)
    }

    @Test func `was not there at the start is named`() async throws {
        try move("campaigns", "away")
        let problem = try #require(try await reloading.snapshot().problems.first)
        #expect(!problem.keepsOld && problem.messages[0].contains("no campaign is loaded"))
    }
}
