import Foundation
import Model
import Platform
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

@testable import Campaigns

/// Who may not approve of a plan, since they wrote it: in a real git work tree.
@Suite(.timeLimit(.minutes(10)), .enabled(if: FileManager.default.fileExists(atPath: "/usr/bin/git")))
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

    /// The hashes of files as they are now, by path.
    private func hashes(_ files: String...) throws -> [String: String] {
        try files.map { scene.folder.file($0) }.reduce(into: [:]) { hashes, path in
            hashes[FileHash.absolute(path)] = try FileHash.hash(of: path)
        }
    }

    private func write(_ file: String, _ text: String) throws { try scene.folder.write(text, to: file) }

    private func git(
        _ words: String..., by person: String = "anna", at date: String = "2026-11-01T12:00:00Z", in folder: String = ""
    ) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/git")
        process.arguments =
            ["-C", scene.folder.file(folder), "-c", "user.name=\(person)", "-c", "user.email=\(person)@example.org"]
            + words
        process.environment = [
            "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": scene.folder.path, "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        ]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        process.waitForEnd()
        try #require(process.terminationStatus == 0, "git \(words)")
    }

    private func definition(audience: AudienceExpression? = nil) throws -> RunDefinition {
        try scene.definition {
            $0.name = "news"
            $0.template = "hello"
            if let audience { $0.audience = Audience(source: "", expression: audience) }
        }
    }

    /// The campaign as its files are now, carried to its end.
    private func send(_ occurrence: String = "one", isSigned: Bool = true) async throws {
        let files = try hashes("campaigns/usual.yaml", "templates/hello.yaml")
        let run = try await make(occurrence, files, isSigned: isSigned)
        _ = try await scene.store.claim(run.id, by: "a", now: scene.clock.now)
        _ = try await scene.store.freeze(run.id, by: "a", now: scene.clock.now) { _ in }
        try await scene.store.release(run.id, by: "a", state: .finished, reason: nil, now: scene.clock.now)
    }

    private func make(_ occurrence: String, _ files: [String: String], isSigned: Bool) async throws -> Run {
        let definition = try definition()
        let now = scene.clock.now
        guard isSigned else {
            return try await scene.store.createRun(
                definition, occurrence: occurrence, now: now, by: "a", notes: [], files: files
            ).run
        }
        // Signed by as many as it needs.
        let policy = ApprovalPolicy(rule: .init(above: 0, needs: 0), reach: 0, authors: [])
        let request = ApprovalRequest(
            definition: definition, occurrence: occurrence, plan: "p", digest: occurrence, reach: 0, needs: 0,
            authors: [], askedBy: "a", askedAt: now)
        return try await scene.store.createApprovedRun(
            definition, occurrence: occurrence, now: now, by: "a", notes: [], files: files,
            demand: ApprovalDemand(policy: policy, people: People(), request: request)
        ).run
    }

    private func commit(_ template: String, by person: String, at date: String = "2026-11-01T12:00:00Z") throws {
        try write("templates/hello.yaml", "template: hello\n# \(template)\n")
        try git("commit", "--quiet", "-am", template, by: person, at: date)
    }

    private func repository() throws {
        try git("init", "--quiet", "--initial-branch", "main")
        // And not the store, which a checkout would put back.
        try git("add", "campaigns", "templates")
        try git("commit", "--quiet", "-m", "first")
    }

    private func authors(audience: AudienceExpression? = nil) async throws -> Set<String> {
        var rules = rules
        rules.files = ApprovalRules.Files(
            campaigns: scene.folder.file("campaigns"), templates: scene.folder.file("templates"))
        let definition = try definition(audience: audience)
        return try await ContributorLookup(store: scene.store, rules: rules).authors(of: definition)
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
            files: [scene.folder.file("templates/hello.yaml"): Digest.sha256Hex(Array(text.utf8))],
            now: scene.clock.now)
        #expect(try await authors() == ["git:anna@example.org", "token:eve"])
        try write("templates/hello.yaml", text + "# and by hand\n")
        #expect(try await authors() == ["git:anna@example.org", "token:eve", me])
    }

    @Test func `are those since it was sent, whatever date a commit has and wherever it was made`() async throws {
        try repository()
        // Written before it was sent, on a branch that is merged afterwards.
        try git("checkout", "--quiet", "-b", "older")
        try git("checkout", "--quiet", "main")
        try commit("as it was sent", by: "ben", at: "2026-11-03T12:00:00Z")
        try await send()
        #expect(try await authors().isEmpty)
        try git("checkout", "--quiet", "older")
        try commit("from a branch", by: "dora", at: "2026-11-02T12:00:00Z")
        try git("checkout", "--quiet", "main")
        try git("merge", "--quiet", "-X", "theirs", "-m", "merge", "older", by: "ben", at: "2026-11-04T12:00:00Z")
        #expect(try await authors() == ["git:dora@example.org"])
        try commit("and another", by: "eve", at: "2020-01-01T00:00:00Z")
        #expect(try await authors() == ["git:dora@example.org", "git:eve@example.org"])
        try commit("as it was sent", by: "carl")
        #expect(try await authors().isEmpty)
        // What is not in the history any more was by anybody in it.
        try commit("one", by: "carl")
        try write("templates/hello.yaml", "template: hello\n# by hand\n")
        try await send("two")
        try commit("two", by: "carl")
        #expect(try await authors().isSuperset(of: ["anna", "ben", "carl", "dora"].map { "git:\($0)@example.org" }))
    }

    @Test func `are not forgotten by a run that nobody had to sign`() async throws {
        try repository()
        try await send(isSigned: false)
        #expect(try await authors() == ["git:anna@example.org"])
        try await send("two")
        #expect(try await authors().isEmpty)
    }

    @Test func `are those of the text that is to be sent, and not of the next one`() async throws {
        try repository()
        try commit("this", by: "ben")
        let hashes = try hashes("templates/hello.yaml")
        try commit("next week's", by: "dora")
        var rules = rules
        rules.files = ApprovalRules.Files(
            campaigns: scene.folder.file("campaigns"), templates: scene.folder.file("templates"))
        let plans = ContributorLookup(store: scene.store, rules: rules)
        #expect(
            try await plans.authors(of: definition(), files: hashes) == ["git:anna@example.org", "git:ben@example.org"])
        // Whoever puts it back where it is read has a hand in it.
        try write("templates/hello.yaml", "template: hello\n# this\n")
        #expect(try await authors().contains(me))
    }

    @Test func `are the owner of a file, and somebody unknown where others may write to it`() async throws {
        let path = scene.folder.file("templates/hello.yaml")
        try FileManager.default.setAttributes([.posixPermissions: 0o664], ofItemAtPath: path)
        #expect(try await authors() == [me, "unknown: who changed \(path)"])
    }

    @Test func `are found where folder and file are links, and under an older name`() async throws {
        try FileManager.default.createDirectory(atPath: scene.folder.file("tree"), withIntermediateDirectories: true)
        for name in ["campaigns", "templates"] {
            try FileManager.default.moveItem(
                atPath: scene.folder.file(name), toPath: scene.folder.file("tree/\(name)"))
            try FileManager.default.createSymbolicLink(
                atPath: scene.folder.file(name), withDestinationPath: scene.folder.file("tree/\(name)"))
        }
        try FileManager.default.moveItem(
            atPath: scene.folder.file("tree/templates/hello.yaml"), toPath: scene.folder.file("tree/templates/old.yaml")
        )
        try git("init", "--quiet", in: "tree")
        try git("add", ".", in: "tree")
        try git("commit", "--quiet", "-m", "first", in: "tree")
        try git("mv", "templates/old.yaml", "templates/new.yaml", in: "tree")
        try git("commit", "--quiet", "-m", "renamed", by: "ben", in: "tree")
        try FileManager.default.createSymbolicLink(
            atPath: scene.folder.file("tree/templates/hello.yaml"), withDestinationPath: "new.yaml")
        // The link itself is nobody's commit.
        #expect(try await authors() == ["git:anna@example.org", "git:ben@example.org", me])
        try git("add", ".", in: "tree")
        try git("commit", "--quiet", "-m", "linked", by: "dora", in: "tree")
        #expect(
            try await authors() == ["git:anna@example.org", "git:ben@example.org", "git:dora@example.org"])
    }

    @Test func `are somebody unknown where that cannot be known`() async throws {
        try write(".git", "gitdir: /nowhere\n")
        let broken = try await authors()
        #expect(
            broken.contains(me) && broken.count { $0.hasPrefix("unknown: the author of the commits to") } == 2,
            "\(broken)")
        try FileManager.default.removeItem(atPath: scene.folder.file(".git"))
        try repository()
        try write(".gitignore", "templates\n")
        try git("rm", "--quiet", "--cached", "templates/hello.yaml")
        try git("commit", "--quiet", "-m", "ignored")
        #expect(try await authors() == ["git:anna@example.org", me])
        try FileManager.default.removeItem(atPath: scene.folder.file("campaigns/usual.yaml"))
        #expect(try await authors() == ["unknown: no file of campaign news"])
    }

    @Test func `are more than are looked at, of a file that was committed very often`() async throws {
        try repository()
        for number in 0..<51 { try commit("\(number)", by: "ben") }
        let authors = try await authors()
        let template = scene.folder.file("templates/hello.yaml")
        #expect(
            authors.subtracting(["unknown: the authors of earlier commits to \(template)"]).count == authors.count - 1)
        #expect(authors.isSuperset(of: ["git:anna@example.org", "git:ben@example.org"]) && authors.count == 3)
    }

    @Test func `are who defined the segments that the audience names, and those that these name`() async throws {
        let segments = ManageSegments(store: scene.store)
        for (name, source, person) in [
            ("inner", "country = \"DE\"", "eve"), ("outer", "segment(\"inner\")", "dora"),
            ("other", "everyone", "carl"),
        ] {
            _ = try await segments.define(name, expression: source, by: Actor(person), now: scene.clock.now)
        }
        let audience = try ExpressionText.parse("segment(\"outer\")", named: "audience")
        #expect(try await authors(audience: audience).isSuperset(of: ["name:dora", "name:eve"]))
        scene.clock.advance(by: .seconds(60))
        try await send()
        #expect(try await authors(audience: audience).isEmpty)
        _ = try await segments.define("inner", expression: "country = \"FR\"", by: "eve", now: scene.clock.now)
        #expect(try await authors(audience: audience) == ["name:eve"])
        #expect(try await authors().isEmpty)
    }

    @Test func `approve of no stage of it either, nor does who started it`() async throws {
        try await send()
        try await scene.addDevices(0..<3)
        try write("templates/hello.yaml", "template: hello\n# better\n")
        let run = try await scene.store.createRun(
            definition(), occurrence: "two", now: scene.clock.now, by: "carl", notes: [],
            files: try hashes("templates/hello.yaml")
        ).run
        _ = try await scene.store.claim(run.id, by: "a", now: scene.clock.now)
        _ = try await scene.store.freeze(run.id, by: "a", now: scene.clock.now) { _ in }
        let frozen = try #require(try await scene.store.run(run.id))
        func refusal(
            _ actor: Actor, notByAuthor: Bool = true, people: [String: [String]] = [:]
        ) async throws -> String {
            var rules = rules
            rules.rules = [.init(above: 0, needs: 1, notByAuthor: notByAuthor)]
            rules.people = ConfiguredPeople(people)
            rules.files = ApprovalRules.Files(
                campaigns: scene.folder.file("campaigns"), templates: scene.folder.file("templates"))
            let control = ControlRun(
                store: scene.store, clock: scene.clock.clock, isAlive: { _ in false },
                plans: ApprovePlans(store: scene.store, rules: rules))
            return try await #require(throws: Failure.self) { try await control.approve(frozen, stage: 1, by: actor) }
                .messages.joined()
        }
        var writer = Actor("me", origin: .page)
        writer.signedInAs = me
        #expect(try await refusal(writer).contains("worked on run 2"))
        #expect(try await refusal("carl").contains("or started it"))
        #expect(try await refusal("carl", people: ["ben": ["os:ben"]]).contains("has no entry in"))
        // Nothing but the stage that does not wait is in their way.
        #expect(try await refusal("dora").contains("does not wait for the approval"))
        #expect(try await refusal("carl", notByAuthor: false).contains("does not wait for the approval"))
    }

    @Test func `are asked of git without what the environment says of another repository`() {
        let given = ["GIT_DIR": "/nowhere", "GIT_CONFIG_COUNT": "1", "HOME": "/root"]
        let environment = ContributorLookup.gitEnvironment(given)
        #expect(environment["GIT_DIR"] == nil && environment["GIT_CONFIG_COUNT"] == nil)
        #expect(environment["HOME"] == "/root")
    }
}
