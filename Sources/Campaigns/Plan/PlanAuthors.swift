import CampaignFiles
import Foundation
import Model
import Sending
import Store

/// Who made what a plan is made of since its campaign was sent the last time with signatures, so that none of them approves of it: who
/// wrote its files by pages and API as the audit has it, who committed them where they stand in a git work tree, whose a
/// file is that changed otherwise, and who defined the segments that it names.
///
/// A file that is as it was sent then has no authors: the run has its hash on record. What went to so few that nobody had
/// to sign it was seen by nobody else. What cannot be known is no nobody, but somebody unknown, for whoever signs to see.
struct PlanAuthors: Sendable {
    private static let eventsMax = 1000
    private static let unknownPrefix = "unknown: "

    let store: any RunLog & DeviceRegistry & ApprovalLog
    let rules: ApprovalRules

    /// Accounts, see ``Actor/identity``; of a commit `git:anna@example.org`; and `unknown: ` with what is not known.
    ///
    /// - Parameter files: SHA-256 in hex of those that the definition was read from, by path; empty: they are looked for
    ///   in the folders of the configuration.
    func authors(of definition: RunDefinition, files: [String: String] = [:]) async throws -> Set<String> {
        guard let folders = rules.files else { return [] }
        let campaign = definition.campaign
        let last = try await store.latestSignedRun(campaign: campaign.name)
        let sent = try await filesSent(with: last)
        var authors = try await whoDefinedSegments(of: campaign, since: last?.createdAt)
        let files = files.isEmpty ? Self.files(of: campaign, in: folders) : files
        if files.isEmpty { authors.insert(Self.unknown("no file of campaign \(campaign.name)")) }
        let writes = try await events(.fileWritten)
        for (path, hash) in files where hash.isEmpty || sent[path] != hash {
            let known = writes.all.filter { $0.files[path] != nil }
            // Newest first; what stood there before the last run was sent with it.
            let since = known.prefix { sent[path] == nil || $0.files[path] != sent[path] }
            authors.formUnion(since.map(\.actor.identity))
            if writes.isCut, since.count == known.count { authors.insert(Self.unknown("who wrote \(path) before")) }
            let isWritten = !hash.isEmpty && known.first?.files[path] == hash
            let sentHash = sent[path]
            authors.formUnion(
                await GitThread.run {
                    Self.whoCommitted(path, hash: hash, sent: sentHash, isWritten: isWritten)
                })
        }
        return authors
    }

    /// Without what a hook says that started this, or somebody who would show another repository.
    static func gitEnvironment(_ environment: [String: String]) -> [String: String] {
        environment.filter { !$0.key.hasPrefix("GIT_") }.merging(
            ["GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"]) { $1 }
    }

    private static func unknown(_ what: String) -> String { unknownPrefix + what }

    /// Hashes by path; of a file that cannot be read an empty one.
    private static func files(of campaign: Campaign, in folders: ApprovalRules.Files) -> [String: String] {
        let folder = CampaignFolder(campaigns: folders.campaigns, templates: folders.templates)
        let own = YAMLFolder.files(in: folders.campaigns).filter {
            folder.source(path: $0)?.campaign.name == campaign.name
        }
        guard !own.isEmpty else { return [:] }
        let templates = campaign.templatesNamed.map(folder.templatePath)
        let paths = Set((own + templates).map(FileHash.absolute))
        return Dictionary(uniqueKeysWithValues: paths.map { ($0, (try? FileHash.hash(of: $0)) ?? "") })
    }

    private func filesSent(with run: Run?) async throws -> [String: String] {
        guard let run else { return [:] }
        let filter = EventFilter(run: run.id, kind: EventKind.runCreated.rawValue)
        return try await store.events(filter, before: nil, limit: 1).events.first?.files ?? [:]
    }

    /// Newest first.
    private func events(
        _ kind: EventKind, since: Timestamp? = nil
    ) async throws -> (all: [StoreEvent], isCut: Bool) {
        let filter = EventFilter(kind: kind.rawValue, since: since)
        let events = try await store.events(filter, before: nil, limit: Self.eventsMax).events
        return (events, events.count == Self.eventsMax)
    }

    /// Of the segments that an audience names, and those that these name; of all where it is SQL.
    private func whoDefinedSegments(of campaign: Campaign, since: Timestamp?) async throws -> Set<String> {
        var names = (campaign.stages ?? []).reduce(into: campaign.audience.expression.segments) { names, stage in
            names.formUnion(stage.seeds?.segments ?? [])
        }
        guard !names.isEmpty || campaign.audienceSQL != nil else { return [] }
        let segments = try await store.segments(now: nil)
        if campaign.audienceSQL != nil { names.formUnion(segments.map(\.name)) }
        var open = names
        while let name = open.popFirst() {
            // All that have the name, in whichever form its letters are composed.
            let named = segments.lazy.filter { $0.name == name }.reduce(into: Set<String>()) { named, segment in
                guard case .dynamic(let source) = segment.kind else { return }
                named.formUnion((try? ExpressionText.parse(source, named: "expression"))?.segments ?? [])
            }
            open.formUnion(named.subtracting(names))
            names.formUnion(named)
        }
        var authors: Set<String> = []
        for kind in [EventKind.segmentDefined, .segmentChanged] {
            let changes = try await events(kind, since: since)
            let own = changes.all.filter { event in names.contains { event.detail.hasPrefix("\($0): ") } }
            authors.formUnion(own.map(\.actor.identity))
            if changes.isCut { authors.insert(Self.unknown("who changed segments before")) }
        }
        return authors
    }
}

extension PlanAuthors {
    /// Who committed a file since it was sent; its owner where it is not as it was committed, nor as somebody wrote it.
    ///
    /// - Parameters:
    ///   - hash: of what is to be sent; empty: nobody can read it.
    ///   - sent: of what was sent the last time.
    private static func whoCommitted(
        _ path: String, hash: String, sent: String?, isWritten: Bool
    ) -> Set<String> {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        var authors: Set<String> = []
        var isCommitted = false
        if let file = GitFile(target) {
            if let history = file.history(since: sent, of: hash) {
                authors.formUnion(history.people)
                if !history.isWhole { authors.insert(unknown("who committed \(path) before")) }
                isCommitted = history.hasContent
            } else {
                authors.insert(unknown("who committed \(path), since git cannot be asked"))
            }
        }
        if !isWritten, !isCommitted { authors.formUnion(writers(of: target)) }
        authors.formUnion(whoLinked(path, to: target))
        return authors
    }

    /// Of a file that is a symbolic link, who made it point where it does.
    private static func whoLinked(_ path: String, to target: String) -> Set<String> {
        guard let text = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { return [] }
        let url = URL(fileURLWithPath: path)
        let link = url.deletingLastPathComponent().resolvingSymlinksInPath().appending(path: url.lastPathComponent).path
        let content = ContentHash.sha256(Array(text.utf8))
        guard let history = GitFile(link)?.history(since: nil, of: content), history.hasContent else {
            return writers(of: link)
        }
        return history.people
    }

    /// Its owner, and somebody unknown where others may write to it as well.
    private static func writers(of path: String) -> Set<String> {
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        guard let owner = facts?[.ownerAccountName] as? String else { return [unknown("whose \(path) is")] }
        let isLink = facts?[.type] as? FileAttributeType == .typeSymbolicLink
        let isOpen = (facts?[.posixPermissions] as? Int).map { $0 & 0o022 != 0 } ?? true
        return isOpen && !isLink ? ["os:\(owner)", unknown("who changed \(path)")] : ["os:\(owner)"]
    }
}

/// One file as git knows it. A repository's own settings run nothing here, and neither do those of the environment.
private struct GitFile {
    struct History {
        /// Whether it was committed as it is to be sent.
        var hasContent = false
        var people: Set<String> = []
        /// False: there are more commits than were looked at, or the repository has not all of them.
        var isWhole = true
    }

    /// A change of it, newest first.
    private struct Change {
        var commit: String
        var blob = ""
        var names: [String] = []
    }

    private static let commitsMax = 50
    /// Nobody looks at signatures, pages or fetches, and the folder may be another account's.
    private static let settings = [
        "safe.directory=*", "core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false",
        "core.pager=cat", "core.quotePath=false",
    ]

    private let root: String
    /// From the root.
    private let path: String

    /// Nil: it is in no work tree.
    ///
    /// - Parameter file: without links in its folder.
    init?(_ file: String) {
        var folder = URL(fileURLWithPath: file).deletingLastPathComponent()
        while !FileManager.default.fileExists(atPath: folder.appending(path: ".git").path) {
            guard folder.path != "/" else { return nil }
            folder.deleteLastPathComponent()
        }
        root = folder.path
        path = String(file.dropFirst(root == "/" ? 1 : root.count + 1))
    }

    /// Author, committer and co-authors of each commit up to the latest with the content that is to be sent that is not part
    /// of the one which has the content that was: so those of an older branch that was merged since are among them, and those
    /// of next week's text are not. All of the latest where none has it. Nil: git cannot be asked.
    ///
    /// - Parameters:
    ///   - sent: SHA-256 in hex; nil: nothing is on record.
    ///   - content: the same, of what is to be sent.
    func history(since sent: String?, of content: String) -> History? {
        guard let shallow = text(["rev-parse", "--is-shallow-repository"]) else { return nil }
        guard let head = git(["cat-file", "blob", "HEAD:\(path)"]) else { return History() }
        guard let changes = changes() else { return nil }
        let top = changes.firstIndex { hash(of: $0) == content }
        let base = changes.firstIndex { change in sent.map { hash(of: change) == $0 } ?? false }
        // An older one that stands there again was put there by somebody.
        var history = History(
            hasContent: ContentHash.sha256(Array(head)) == content || top != nil && !isOnDisk(content))
        let end = top.map { changes[$0].commit } ?? "HEAD"
        let range = base.map { "\(changes[$0].commit)..\(end)" } ?? end
        let names = Set([path] + changes[...max(base ?? changes.count - 1, top ?? 0)].flatMap(\.names)).sorted()
        history.isWhole = base != nil || shallow != "true\n"
        // Of merges only those that made something of their own.
        for which in [["--full-history", "--no-merges"], ["--merges"]] {
            guard let people = people(range, which, names) else { return nil }
            history.people.formUnion(people.accounts)
            history.isWhole = history.isWhole && people.isWhole
        }
        return history
    }

    /// SHA-256 in hex of the file as a change has left it; nil: it was removed, or cannot be read.
    private func hash(of change: Change) -> String? {
        change.blob.isEmpty ? nil : git(["cat-file", "blob", change.blob]).map { ContentHash.sha256(Array($0)) }
    }

    private func isOnDisk(_ content: String) -> Bool {
        (try? FileHash.hash(of: URL(fileURLWithPath: root).appending(path: path).path)) == content
    }

    private func changes() -> [Change]? {
        let words = ["log", "--follow", "--format=%H", "--raw", "--no-abbrev", "--max-count=\(Self.commitsMax)"]
        guard let log = text(words + ["--", path]) else { return nil }
        var changes: [Change] = []
        for line in log.split(separator: "\n") {
            guard line.first == ":" else {
                changes.append(Change(commit: String(line)))
                continue
            }
            // `:100644 100644 <before> <after> M`, then a name, or two of a renamed file.
            let fields = line.split(separator: "\t").map(String.init)
            let facts = fields[0].split(separator: " ")
            guard facts.count == 5, let last = changes.indices.last else { return nil }
            changes[last].blob = String(facts[3])
            changes[last].names = Array(fields.dropFirst())
        }
        return changes.isEmpty ? nil : changes
    }

    private func people(
        _ range: String, _ which: [String], _ names: [String]
    ) -> (accounts: Set<String>, isWhole: Bool)? {
        let words = ["log", "--max-count=\(Self.commitsMax + 1)", range] + which
        let format = "--format=%x00%ae%n%ce%n%(trailers:key=Co-authored-by,valueonly)"
        guard let log = text(words + [format, "--"] + names) else { return nil }
        let commits = log.split(separator: "\0")
        var isWhole = commits.count <= Self.commitsMax
        var accounts: Set<String> = []
        for commit in commits {
            let lines = commit.split(separator: "\n", omittingEmptySubsequences: false)
            if lines[0].isEmpty { isWhole = false }
            for line in lines where !line.isEmpty {
                let mail = line.firstMatch(of: /<([^<>]+)>\s*$/).map { String($0.1) } ?? String(line)
                // A set holds one of two spellings: the one that `people` may name.
                accounts.insert("git:" + mail.precomposedStringWithCanonicalMapping)
            }
        }
        return (accounts, isWhole)
    }

    private func text(_ words: [String]) -> String? {
        git(words).map { String(decoding: $0, as: UTF8.self) }
    }

    /// What it prints; nil: it failed, takes too long, or is not installed.
    private func git(_ words: [String]) -> Data? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["timeout", "10", "git", "--no-replace-objects", "--literal-pathspecs", "-C", root]
            + Self.settings.flatMap { ["-c", $0] }
            + words
        process.environment = PlanAuthors.gitEnvironment(ProcessInfo.processInfo.environment)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let data = (try? output.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? data : nil
    }
}

/// The bridge between a task and git: a thread of its own, because git may take 10 s for each question. On a machine with
/// two processors one such wait would hold half of the threads that tasks share, which also send pushes.
private enum GitThread {
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread {
                Thread.current.name = "git"
                continuation.resume(returning: body())
            }
            .start()
        }
    }
}
