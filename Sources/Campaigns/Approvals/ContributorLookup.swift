import CampaignFiles
import Foundation
import Model
import Platform
import Store

/// The people who changed any part of a plan since its campaign was last sent with signatures. None of them may approve
/// the plan. These people are listed:
///
/// - the authors of its files who wrote them through pages and API, according to the audit log
/// - the authors of its files' commits, if the files are in a git work tree
/// - the owners of files that were changed in another way
/// - the people who defined the segments that it names
///
/// A file that has not changed since that run has no authors: the lookup compares its hash with the one recorded
/// with the run. A run without signatures does not count as that run, because no second person saw it. If authorship
/// cannot be determined, an author "unknown" is listed, so that approvers see it.
struct ContributorLookup: Sendable {
    private static let eventsMax = 1000
    private static let unknownPrefix = "unknown: "

    let store: any RunLog & AuditLog & DeviceRegistry & ApprovalLog
    let rules: ApprovalRules

    /// Returns accounts, see ``Actor/identity``. The author of a commit has the form `git:anna@example.org`. An unknown
    /// author has the form `unknown: ` with a description of what is not known.
    ///
    /// - Parameter files: the SHA-256 in hex of the files that the definition was read from, by path. If empty, the
    ///   files are searched for in the configured folders.
    func authors(of definition: RunDefinition, files: [String: String] = [:]) async throws -> Set<String> {
        guard let folders = rules.files else { return [] }
        let campaign = definition.campaign
        let last = try await store.latestSignedRun(campaign: campaign.name)
        let creation = try await self.creation(of: last)
        let sent = creation?.files ?? [:]
        var authors = try await whoDefinedSegments(of: campaign, since: last?.createdAt)
        let files = files.isEmpty ? Self.files(of: campaign, in: folders) : files
        if files.isEmpty { authors.insert(Self.unknown("no file of campaign \(campaign.name)")) }
        let writes = try await events(.fileWritten)
        for (path, hash) in files where hash.isEmpty || sent[path] != hash {
            let known = writes.all.filter { $0.files[path] != nil }
            // The writes are newest first. Stop at the content that the last run sent: earlier authors do not count. A
            // later write of the same content may have failed, after another one.
            let since = known.prefix { write in
                sent[path] == nil || write.files[path] != sent[path] || write.id > creation.map(\.id) ?? 0
            }
            authors.formUnion(since.map(\.actor.identity))
            if writes.isCut, since.count == known.count {
                authors.insert(Self.unknown("the authors of earlier versions of \(path)"))
            }
            let isWritten = !hash.isEmpty && known.first?.files[path] == hash
            let sentHash = sent[path]
            authors.formUnion(
                await BlockingThread.run("git") {
                    Self.whoCommitted(path, hash: hash, sent: sentHash, isWritten: isWritten)
                })
        }
        return authors
    }

    /// Returns the environment without git's variables. A git hook that started this process may have set them, or a
    /// person may have set them to point git at another repository.
    static func gitEnvironment(_ environment: [String: String]) -> [String: String] {
        environment.filter { !$0.key.hasPrefix("GIT_") }.merging(
            ["GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"]) { $1 }
    }

    private static func unknown(_ what: String) -> String { unknownPrefix + what }

    /// Returns the hashes by path. The hash of a file that cannot be read is empty.
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

    private func creation(of run: Run?) async throws -> StoreEvent? {
        guard let run else { return nil }
        let filter = EventFilter(run: run.id, kind: EventKind.runCreated.rawValue)
        return try await store.events(filter, before: nil, limit: 1).events.first
    }

    /// Returns the events, newest first.
    private func events(
        _ kind: EventKind, since: Timestamp? = nil
    ) async throws -> (all: [StoreEvent], isCut: Bool) {
        let filter = EventFilter(kind: kind.rawValue, since: since)
        let events = try await store.events(filter, before: nil, limit: Self.eventsMax).events
        return (events, events.count == Self.eventsMax)
    }

    /// Returns the people who changed a segment that the audience or a stage names, directly or through another
    /// segment. For an SQL audience, all segments count.
    private func whoDefinedSegments(of campaign: Campaign, since: Timestamp?) async throws -> Set<String> {
        var names = (campaign.stages ?? []).reduce(into: campaign.audience.expression.segments) { names, stage in
            names.formUnion(stage.seeds?.segments ?? [])
        }
        guard !names.isEmpty || campaign.audienceSQL != nil else { return [] }
        let segments = try await store.segments(now: nil)
        if campaign.audienceSQL != nil { names.formUnion(segments.map(\.name)) }
        var open = names
        while let name = open.popFirst() {
            // Take all segments with this name, in any Unicode normalization form.
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
            if changes.isCut { authors.insert(Self.unknown("the authors of earlier segment changes")) }
        }
        return authors
    }
}

extension ContributorLookup {
    /// Returns the people who committed a file since it was sent. Includes the file's owner if its content was neither
    /// committed nor written by a known person.
    ///
    /// - Parameters:
    ///   - hash: the hash of the content to be sent; empty if the file cannot be read.
    ///   - sent: the hash of the content that was sent the last time.
    private static func whoCommitted(
        _ path: String, hash: String, sent: String?, isWritten: Bool
    ) -> Set<String> {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        var authors: Set<String> = []
        var isCommitted = false
        if let file = GitFile(target) {
            if let history = file.history(since: sent, of: hash) {
                authors.formUnion(history.people)
                if !history.isWhole { authors.insert(unknown("the authors of earlier commits to \(path)")) }
                isCommitted = history.hasContent
            } else {
                authors.insert(unknown("the author of the commits to \(path), because git cannot be run"))
            }
        }
        if !isWritten, !isCommitted { authors.formUnion(writers(of: target)) }
        authors.formUnion(whoLinked(path, to: target))
        return authors
    }

    /// Returns the people who made a symbolic link point to its target; empty for a file that is not a link.
    private static func whoLinked(_ path: String, to target: String) -> Set<String> {
        guard let text = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { return [] }
        let url = URL(fileURLWithPath: path)
        let link = url.deletingLastPathComponent().resolvingSymlinksInPath().appending(path: url.lastPathComponent).path
        let content = Digest.sha256Hex(Array(text.utf8))
        guard let history = GitFile(link)?.history(since: nil, of: content), history.hasContent else {
            return writers(of: link)
        }
        return history.people
    }

    /// Returns the owner of a file, and an unknown author if other accounts may write to it as well.
    private static func writers(of path: String) -> Set<String> {
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        guard let owner = facts?[.ownerAccountName] as? String else { return [unknown("whose \(path) is")] }
        let isLink = facts?[.type] as? FileAttributeType == .typeSymbolicLink
        let isOpen = (facts?[.posixPermissions] as? Int).map { $0 & 0o022 != 0 } ?? true
        return isOpen && !isLink ? ["os:\(owner)", unknown("who changed \(path)")] : ["os:\(owner)"]
    }
}

/// One file as git knows it. Neither the repository's settings nor the environment can make git run another program.
private struct GitFile {
    struct History {
        /// Whether the content to be sent was committed.
        var hasContent = false
        var people: Set<String> = []
        /// `false` if there are more commits than were read, or the repository does not have all of them.
        var isWhole = true
    }

    /// One change of the file. Lists of changes are newest first.
    private struct Change {
        var commit: String
        var blob = ""
        var names: [String] = []
    }

    private static let commitsMax = 50
    /// Settings that turn off signatures, pagers, hooks and fetches, and accept a folder of another account.
    private static let settings = [
        "safe.directory=*", "core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false",
        "core.pager=cat", "core.quotePath=false",
    ]

    private let root: String
    /// The file's path relative to the root of the work tree.
    private let path: String

    /// Returns `nil` if the file is in no work tree.
    ///
    /// - Parameter file: the path of the file. No folder in the path is a symbolic link.
    init?(_ file: String) {
        var folder = URL(fileURLWithPath: file).deletingLastPathComponent()
        while !FileManager.default.fileExists(atPath: folder.appending(path: ".git").path) {
            guard folder.path != "/" else { return nil }
            folder.deleteLastPathComponent()
        }
        root = folder.path
        path = String(file.dropFirst(root == "/" ? 1 : root.count + 1))
    }

    /// Returns the author, committer and co-authors of the commits since the file was sent; `nil` if git cannot be
    /// queried.
    ///
    /// The range of commits ends with the latest commit that has the content to be sent, or with `HEAD` if there is
    /// none. The range excludes the commit with the content sent the last time, and the history of that commit. It
    /// therefore includes an older branch that was merged since, and excludes later commits that prepare another run.
    ///
    /// - Parameters:
    ///   - sent: the SHA-256 in hex of the content sent the last time; `nil` if none is recorded.
    ///   - content: the SHA-256 in hex of the content to be sent.
    func history(since sent: String?, of content: String) -> History? {
        guard let shallow = text(["rev-parse", "--is-shallow-repository"]) else { return nil }
        guard let head = git(["cat-file", "blob", "HEAD:\(path)"]) else { return History() }
        guard let changes = changes() else { return nil }
        let top = changes.firstIndex { hash(of: $0) == content }
        let base = changes.firstIndex { change in sent.map { hash(of: change) == $0 } ?? false }
        // If the file on disk has the content of an older commit, a person put it back: the content does not count as
        // committed.
        var history = History(
            hasContent: Digest.sha256Hex(Array(head)) == content || top != nil && !isOnDisk(content))
        let end = top.map { changes[$0].commit } ?? "HEAD"
        let range = base.map { "\(changes[$0].commit)..\(end)" } ?? end
        let names = Set([path] + changes[...max(base ?? changes.count - 1, top ?? 0)].flatMap(\.names)).sorted()
        history.isWhole = base != nil || shallow != "true\n"
        // Include a merge only if it changed something itself.
        for which in [["--full-history", "--no-merges"], ["--merges"]] {
            guard let people = people(range, which, names) else { return nil }
            history.people.formUnion(people.accounts)
            history.isWhole = history.isWhole && people.isWhole
        }
        return history
    }

    /// Returns the SHA-256 in hex of the file after a change; `nil` if the change removed it, or it cannot be read.
    private func hash(of change: Change) -> String? {
        change.blob.isEmpty ? nil : git(["cat-file", "blob", change.blob]).map { Digest.sha256Hex(Array($0)) }
    }

    private func isOnDisk(_ content: String) -> Bool {
        (try? FileHash.hash(of: URL(fileURLWithPath: root).appending(path: path).path)) == content
    }

    private func changes() -> [Change]? {
        let arguments = ["log", "--follow", "--format=%H", "--raw", "--no-abbrev", "--max-count=\(Self.commitsMax)"]
        guard let log = text(arguments + ["--", path]) else { return nil }
        var changes: [Change] = []
        for line in log.split(separator: "\n") {
            guard line.first == ":" else {
                changes.append(Change(commit: String(line)))
                continue
            }
            // `:100644 100644 <before> <after> M`, then a name, or two names for a renamed file.
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
        let arguments = ["log", "--max-count=\(Self.commitsMax + 1)", range] + which
        let format = "--format=%x00%ae%n%ce%n%(trailers:key=Co-authored-by,valueonly)"
        guard let log = text(arguments + [format, "--"] + names) else { return nil }
        let commits = log.split(separator: "\0")
        var isWhole = commits.count <= Self.commitsMax
        var accounts: Set<String> = []
        for commit in commits {
            let lines = commit.split(separator: "\n", omittingEmptySubsequences: false)
            if lines[0].isEmpty { isWhole = false }
            for line in lines where !line.isEmpty {
                let mail = line.firstMatch(of: /<((?>[^<>]+))>\s*$/).map { String($0.1) } ?? String(line)
                // A set keeps only one of two equal Unicode forms, so normalize to the composed form, which `people`
                // may name.
                accounts.insert("git:" + mail.precomposedStringWithCanonicalMapping)
            }
        }
        return (accounts, isWhole)
    }

    private func text(_ arguments: [String]) -> String? {
        git(arguments).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns what git prints; `nil` if git fails, takes too long, or is not installed.
    private func git(_ arguments: [String]) -> Data? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["timeout", "10", "git", "--no-replace-objects", "--literal-pathspecs", "-C", root]
            + Self.settings.flatMap { ["-c", $0] }
            + arguments
        process.environment = ContributorLookup.gitEnvironment(ProcessInfo.processInfo.environment)
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
