import CampaignFiles
import Foundation
import Model
import Store

/// Who wrote what a plan is made of since its campaign was sent the last time, so that none of them approves of it: who
/// wrote by pages and API as the audit has it, who committed where the files stand in a git work tree, and whose a file is
/// that changed otherwise.
struct PlanAuthors: Sendable {
    private static let writesMax = 1000

    let store: any RunLog
    let rules: ApprovalRules

    /// Accounts, see ``Actor/identity``; of a commit `git:anna@example.org`.
    func authors(of definition: RunDefinition) async throws -> Set<String> {
        guard let files = rules.files else { return [] }
        let folder = CampaignFolder(campaigns: files.campaigns, templates: files.templates)
        let campaign = definition.campaign
        let since = try await store.latestRun(campaign: campaign.name, state: .finished)?.createdAt
        let own = YAMLFolder.files(in: files.campaigns).filter {
            folder.source(path: $0)?.campaign.name == campaign.name
        }
        let templates = ([campaign.template] + campaign.variants.map(\.template)).map(folder.templatePath)
        var authors: Set<String> = []
        let writes = try await writes(since: since)
        for paths in [own, templates] {
            let paths = Set(paths.map(FileHash.absolute))
            let tree = try await GitWorkTree(of: paths)
            authors.formUnion(try await tree?.authors(of: paths, since: since) ?? [])
            for path in paths {
                let known = writes.filter { $0.files[path] != nil }
                authors.formUnion(known.map(\.actor.identity))
                let isWritten = known.last.map { $0.files[path] == (try? FileHash.hashes(of: [path]))?[path] } ?? false
                guard !isWritten, tree?.hasChanged(path) ?? true else { continue }
                authors.formUnion(Self.owner(of: path, since: since).map { ["os:\($0)"] } ?? [])
            }
        }
        return authors
    }

    /// Oldest first.
    private func writes(since: Timestamp?) async throws -> [StoreEvent] {
        let filter = EventFilter(kind: EventKind.fileWritten.rawValue, since: since)
        return try await store.events(filter, before: nil, limit: Self.writesMax).events.reversed()
    }

    /// Of a file that has changed since.
    private static func owner(of path: String, since: Timestamp?) -> String? {
        guard let facts = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
        if let since, let changed = facts[.modificationDate] as? Date, Timestamp(changed) < since { return nil }
        return facts[.ownerAccountName] as? String
    }
}

/// What git knows of files. A repository's own settings run nothing here.
private struct GitWorkTree {
    private static let commitsMax = 500
    /// Nobody looks at signatures, pages or fetches, and the folder may be another account's.
    private static let settings = [
        "safe.directory=*", "core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false",
        "core.pager=cat",
    ]

    private let root: String
    /// From the root: not committed as they are.
    private let changed: Set<String>

    /// Nil: they are in none, or there is no git.
    init?(of paths: Set<String>) async throws {
        guard let first = paths.first, let root = Self.root(of: first) else { return nil }
        // Each entry is two letters, a blank, and the path from the root.
        guard
            let status = try await Self.git(
                root, ["status", "--porcelain", "-z", "--no-renames", "--"] + paths.sorted())
        else { return nil }
        self.root = root
        changed = Set(status.split(separator: "\0").map { String($0.dropFirst(3)) })
    }

    func hasChanged(_ path: String) -> Bool {
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        return !path.hasPrefix(root + "/") || changed.contains(String(path.dropFirst(root.count + 1)))
    }

    func authors(of paths: Set<String>, since: Timestamp?) async throws -> Set<String> {
        var words = ["log", "--max-count=\(Self.commitsMax)"]
        words.append("--format=%ae%n%(trailers:key=Co-authored-by,valueonly)")
        if let since { words.append("--since=@\(since.milliseconds / 1000)") }
        let text = try await Self.git(root, words + ["--"] + paths.sorted()) ?? ""
        let addresses = text.split(separator: "\n").map { line in
            line.firstMatch(of: /<([^<>]+)>\s*$/).map { String($0.1) } ?? String(line)
        }
        return Set(addresses.filter { !$0.isEmpty }.map { "git:\($0)" })
    }

    private static func root(of path: String) -> String? {
        var folder = URL(fileURLWithPath: path).resolvingSymlinksInPath().deletingLastPathComponent()
        while folder.path != "/" {
            if FileManager.default.fileExists(atPath: folder.appending(path: ".git").path) { return folder.path }
            folder.deleteLastPathComponent()
        }
        return nil
    }

    /// What it prints; nil: it failed, or is not installed.
    private static func git(_ root: String, _ words: [String]) async throws -> String? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["git", "-C", root] + settings.flatMap { ["-c", $0] } + words
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self) : nil
    }
}
