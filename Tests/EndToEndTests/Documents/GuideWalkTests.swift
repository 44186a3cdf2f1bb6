import Foundation
import Guide
import TestSupport
import Testing

@testable import fanfare

/// The pages of the guide: their commands, typed word for word, and their links.
@Suite(.ownThread, .timeLimit(.minutes(20))) struct `The guide` {
    /// What is there when a page begins, as its second line says.
    enum Scene: String {
        /// The page has no commands to type.
        case none
        case empty
        /// The folder of a demo that stays up.
        case demo
        /// An empty folder, and the address of an empty database in `STORE`.
        case postgres
    }

    struct Page: CustomTestStringConvertible, Sendable {
        var name: String
        var text: String
        var scene: Scene

        var testDescription: String { name }
    }

    private static let folder = Installation.root.appending(path: "Sources/Guide/Guide.docc")

    static let pages: [Page] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".md") }.sorted().compactMap { name in
            guard let text = try? String(contentsOf: folder.appending(path: name), encoding: .utf8) else { return nil }
            let comment = text.firstMatch(of: #/<!-- scene: (\w+) -->/#)
            return Page(name: name, text: text, scene: comment.flatMap { Scene(rawValue: String($0.1)) } ?? .none)
        }
    }()

    @Test(arguments: pages.filter { $0.scene != .none && $0.scene != .postgres })
    func `does and prints what a page shows`(page: Page) throws {
        let walk = try ConsoleWalk(page.text)
        try #require(!walk.steps.isEmpty)
        guard page.scene == .demo else {
            let folder = try TemporaryDirectory()
            return try withExtendedLifetime(folder) { try walk.type(in: folder.url) }
        }
        let demo = try DemoWithPages()
        try walk.type(in: demo.folder.url.appending(path: "demo"))
        try demo.stop()
    }

    @Test func `types nothing of a page without a scene`() throws {
        try #require(Self.pages.count >= 15)
        for page in Self.pages where page.scene == .none {
            #expect(try ConsoleWalk(page.text).steps.isEmpty, "\(page.name)")
        }
    }

    /// A `sh` block is not typed. Its commands and options exist all the same.
    @Test func `names commands and options that exist`() throws {
        let folder = try TemporaryDirectory()
        var helps: [[String]: String] = [:]
        for page in Self.pages {
            for words in Self.commands(of: page.text) {
                let path = words.prefix { $0.allSatisfy { $0.isLowercase || $0 == "-" } && !$0.hasPrefix("-") }
                let command = Array(path.prefix(2))
                if helps[command] == nil {
                    for length in [2, 1] where helps[command] == nil {
                        let result = try Program.run(Array(path.prefix(length)) + ["--help"], in: folder)
                        if result.output.contains("USAGE: fanfare \(path.prefix(length).joined(separator: " "))") {
                            helps[command] = result.output
                        }
                    }
                }
                let help = helps[command] ?? ""
                #expect(!help.isEmpty, "\(page.name): fanfare \(command.joined(separator: " "))")
                for option in words where option.hasPrefix("--") && option.count > 2 {
                    let name = String(option.prefix { $0 != "=" })
                    #expect(help.contains(name), "\(page.name): fanfare \(words.joined(separator: " "))")
                }
            }
        }
    }

    private static func commands(of text: String) -> [[String]] {
        var isInside = false
        return text.split(separator: "\n").compactMap { line in
            if line.hasPrefix("```") { isInside = line == "```sh" }
            guard isInside, line.hasPrefix("fanfare ") else { return nil }
            return line.split(separator: " ").dropFirst().map(String.init)
        }
    }

    @Test func `links to pages and files that exist`() {
        for page in Self.pages {
            for match in page.text.matches(of: #/\]\(([^)\s]+)\)/#) {
                let target = String(match.1.prefix { $0 != "#" })
                if target.isEmpty || target.hasPrefix("http") { continue }
                let exists =
                    FileManager.default.fileExists(atPath: Self.folder.appending(path: target).path)
                    || GuidePage.name(ofFile: target).flatMap(Guide.complete.page) != nil
                #expect(exists, "\(page.name) links to \(target)")
            }
        }
    }

    @Test func `is written as a site whose pages find their stylesheets and each other`() throws {
        let folder = try TemporaryDirectory()
        #expect(try Program.run(["guide", "--site", "site"], in: folder).status == 0)
        let site = folder.url.appending(path: "site")
        let names = try FileManager.default.contentsOfDirectory(atPath: site.path)
        #expect(names.count { $0.hasSuffix(".html") } == Guide.complete.pages.count)
        for name in names where name.hasSuffix(".html") {
            let text = try String(contentsOf: site.appending(path: name), encoding: .utf8)
            for match in text.matches(of: #/href="([^"#:]+)/#) {
                #expect(names.contains(String(match.1)), "\(name) refers to \(match.1)")
            }
        }
    }

    @Test func `explains every command and every metric of the alerts`() throws {
        func plain(_ name: String) throws -> String {
            MarkdownPlain(width: 1000).text(try #require(Guide.complete.page(named: name)).blocks)
        }
        let commands = try plain("reference-commands")
        for command in try CommandDefinition.fanfare().leaves { #expect(commands.contains("\n\(command.name)\n")) }
        let metrics = try plain("reference-metrics")
        let alerts = try String(contentsOf: Installation.root.appending(path: "systemd/alerts.yml"), encoding: .utf8)
        for match in alerts.matches(of: #/\bfanfare_[a-z_]+/#) {
            let name = match.0.replacing(#/_(bucket|sum|count)$/#, with: "")
            #expect(metrics.contains("`\(name)`"), "\(name)")
        }
    }
}

/// The page about several machines, with a database server.
@Suite(.ownThread, .timeLimit(.minutes(20)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `The guide with PostgreSQL` {
    @Test(arguments: `The guide`.pages.filter { $0.scene == .postgres })
    func `does and prints what a page shows`(page: `The guide`.Page) async throws {
        let folder = try TemporaryDirectory()
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await OwnThread.run {
            try withExtendedLifetime(folder) {
                try ConsoleWalk(page.text).type(in: folder.url, environment: ["STORE": cluster.url(database)])
            }
        }
    }
}
