import Foundation
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

@testable import Campaigns

/// Who may not approve of a plan, since they wrote it: in a real git work tree.
@Suite(.timeLimit(.minutes(2)), .enabled(if: FileManager.default.fileExists(atPath: "/usr/bin/git")))
struct `The authors of a plan` {
    private let scene: PipelineScene
    private let rules: ApprovalRules
    private var me: String { "os:\(NSUserName())" }

    init() throws {
        scene = try PipelineScene()
        rules = ApprovalRules(rules: [.init(above: 0, needs: 1)])
        for folder in ["campaigns", "templates"] {
            try FileManager.default.createDirectory(
                atPath: scene.folder.file(folder), withIntermediateDirectories: true)
        }
        try write("campaigns/usual.yaml", "campaign: news\ntopic: com.example.app\ntemplate: hello\n")
        try write("templates/hello.yaml", "template: hello\n")
        try write("templates/other.yaml", "template: other\n")
    }

    private func write(_ file: String, _ text: String) throws { try scene.folder.write(text, to: file) }

    private func git(_ words: String..., by person: String = "anna") throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/git")
        process.arguments =
            ["-C", scene.folder.path, "-c", "user.name=\(person)", "-c", "user.email=\(person)@example.org"] + words
        process.environment = ["GIT_CONFIG_GLOBAL": "/dev/null", "HOME": scene.folder.path]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "git \(words)")
    }

    private func authors() async throws -> Set<String> {
        var rules = rules
        rules.files = ApprovalRules.Files(
            campaigns: scene.folder.file("campaigns"), templates: scene.folder.file("templates"))
        let definition = try scene.definition {
            $0.name = "news"
            $0.template = "hello"
        }
        return try await PlanAuthors(store: scene.store, rules: rules).authors(of: definition)
    }

    @Test func `are who committed the campaign and its templates, and helped to`() async throws {
        try git("init", "--quiet")
        try git("add", ".")
        try git("commit", "--quiet", "-m", "first")
        #expect(try await authors() == ["git:anna@example.org"])
        try write("templates/hello.yaml", "template: hello\n# better\n")
        try git("commit", "--quiet", "-am", "better\n\nCo-authored-by: Carl <carl@example.org>", by: "ben")
        try write("templates/other.yaml", "template: other\n# better\n")
        try git("commit", "--quiet", "-am", "another's", by: "dora")
        #expect(
            try await authors() == ["git:anna@example.org", "git:ben@example.org", "git:carl@example.org"])
    }

    @Test func `are whose a file is that changed and was not committed`() async throws {
        #expect(try await authors() == [me])
        try git("init", "--quiet")
        try git("add", ".")
        try git("commit", "--quiet", "-m", "first")
        try write("templates/hello.yaml", "template: hello\n# by hand\n")
        #expect(try await authors() == ["git:anna@example.org", me])
    }

    @Test func `are who wrote by a page, as long as it says what they wrote`() async throws {
        let text = "template: hello\n# by a page\n"
        try write("templates/hello.yaml", text)
        try git("init", "--quiet")
        try git("add", "campaigns")
        try git("commit", "--quiet", "-m", "first")
        var writer = Actor("eve (signed in)", origin: .page)
        writer.signedInAs = "token:eve"
        try await scene.store.recordEvent(
            kind: .fileWritten, run: nil, actor: writer, detail: "template hello",
            files: [scene.folder.file("templates/hello.yaml"): ContentHash.sha256(Array(text.utf8))],
            now: scene.clock.now)
        #expect(try await authors() == ["git:anna@example.org", "token:eve"])
        try write("templates/hello.yaml", text + "# and by hand\n")
        #expect(try await authors() == ["git:anna@example.org", "token:eve", me])
    }
}
