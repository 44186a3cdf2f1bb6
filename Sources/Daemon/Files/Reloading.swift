package import Campaigns
@preconcurrency package import Dispatch
import Foundation
package import Logging
package import Model
import Platform
import Sending
import Store
import Synchronization

/// The files that the daemon uses: their current version, or the last version without errors.
///
/// Files are read one after another on a thread of their own. A network folder that does not respond delays the reading
/// of files, and nothing else. The last version read is available to every caller immediately.
package final class Reloading: Sendable {
    /// State that only the reading thread uses.
    private struct Files {
        var configurationMark: FileMark?
        var configurationProblem: DaemonStatus.Problem?
        var catalogue = CampaignCatalogue()
        var marks: [String: FileMark?] = [:]
        /// All files, including the configuration, as last recorded.
        var recorded: [String: (mark: FileMark?, hash: String?)] = [:]
    }

    private let source: ConfigurationSource
    private let logger: Logger
    private let queue: DispatchQueue
    private let held: Mutex<Configuration>
    private let files: Mutex<Files>

    /// - Parameter queue: the serial queue on which the files are read.
    package init(
        source: ConfigurationSource, configuration: Configuration, logger: Logger,
        queue: DispatchQueue = DispatchQueue(label: "files")
    ) {
        self.source = source
        self.logger = logger
        self.queue = queue
        held = Mutex(configuration)
        // The configuration was already read. A later change gives the file another mark.
        files = Mutex(Files(configurationMark: source.path.flatMap(FileMark.init)))
    }

    package var configuration: Configuration { held.withLock { $0 } }

    /// The folders to watch for changes.
    package var folders: [String] {
        let configuration = configuration
        let own = source.path.map { ($0 as NSString).deletingLastPathComponent }.map { $0.isEmpty ? "." : $0 }
        return [configuration.campaigns, configuration.templates] + [own].compactMap(\.self)
    }

    /// Reads the configuration again. Keeps the old configuration if the new one has errors, and always keeps the old
    /// store's address. Returns whether another configuration is now in force. Throws ``CancellationError`` if the
    /// task is cancelled.
    package func readConfiguration() async throws -> Bool { try await reading { $0.takeConfiguration() } }

    /// Reads the changes of campaigns and templates.
    ///
    /// - Parameter isAsked: whether a person requested the reading. If so, the campaigns of a folder that has become
    ///   empty are removed.
    package func snapshot(isAsked: Bool = false) async throws -> Scheduler.CampaignSnapshot {
        try await reading { $0.takeSnapshot(isAsked: isAsked) }
    }

    /// Returns whether a file was changed, added or removed since it was last read.
    package func hasChanged() async throws -> Bool {
        try await reading { reloading in
            let configuration = reloading.configuration
            return reloading.files.withLock { files in
                reloading.source.path.flatMap(FileMark.init) != files.configurationMark
                    || Self.marks(configuration.campaigns, configuration.templates) != files.marks
            }
        }
    }

    /// Waits for the reading thread, or until the task is cancelled. A folder that does not respond therefore cannot
    /// prevent a stop.
    private func reading<Value: Sendable>(
        _ body: @escaping @Sendable (Reloading) -> Value
    ) async throws -> Value {
        let (values, value) = AsyncStream.makeStream(of: Value.self)
        queue.async {
            value.yield(body(self))
            value.finish()
        }
        for await value in values { return value }
        throw CancellationError()
    }

    private func takeConfiguration() -> Bool {
        guard let path = source.path else { return false }
        let mark = FileMark(path)
        let before = configuration
        do {
            var (new, warnings) = try source.read()
            for warning in warnings {
                logger.warning("configuration has a warning", metadata: .facts([.warning: "\(warning)"]))
            }
            if new.store != before.store {
                logger.warning(
                    "a changed store needs a restart: systemctl restart fanfare",
                    metadata: .facts([.store: "\(StoreAddress(before.store))"])
                )
                new.store = before.store
            }
            let fixed = [
                ("http.listen", new.http.listen != before.http.listen), ("log", new.log != before.log),
                ("feeds", new.feeds != before.feeds),
            ]
            for (key, _) in fixed.filter(\.1) {
                logger.warning(
                    "a changed key needs a restart: systemctl restart fanfare",
                    metadata: .facts([.reason: "\(key) has changed in the file"]))
            }
            held.withLock { $0 = new }
            files.withLock { files in
                files.configurationMark = mark
                files.configurationProblem = nil
            }
            return new != before
        } catch {
            let messages = (error as? Failure)?.messages ?? ["\(error)"]
            files.withLock { files in
                files.configurationMark = mark
                files.configurationProblem = .init(path: path, messages: messages, keepsOld: true)
            }
            logger.error(
                "configuration not reloaded", metadata: .facts([.problems: "\(messages.joined(separator: "; "))"]))
            return false
        }
    }

    private func takeSnapshot(isAsked: Bool) -> Scheduler.CampaignSnapshot {
        let configuration = configuration
        let (snapshot, read, loss) = files.withLock { files in
            let (campaigns, templates) = (configuration.campaigns, configuration.templates)
            files.marks = Self.marks(campaigns, templates)
            let read = files.catalogue.refresh(configuration, isAsked: isAsked)
            let loss = files.catalogue.loss
            var problems = ([loss].compactMap(\.self) + files.catalogue.problems).map { problem in
                DaemonStatus.Problem(path: problem.path, messages: problem.messages, keepsOld: problem.keepsOld)
            }
            if let problem = files.configurationProblem { problems.append(problem) }
            let snapshot = Scheduler.CampaignSnapshot(
                campaigns: files.catalogue.ready, names: files.catalogue.names, problems: problems,
                hashes: recordChanges(in: &files), filesHash: Self.hash(campaigns, templates))
            return (snapshot, read, loss?.text)
        }
        ServiceMetrics.campaignFolder(isLost: loss != nil)
        if let loss { logger.error("campaign folder cannot be used", metadata: .facts([.problems: "\(loss)"])) }
        logger.info(
            "files read", metadata: .facts([.changed: "\(read.count)", .campaigns: "\(snapshot.campaigns.count)"]))
        for problem in snapshot.problems where read.contains(problem.path) {
            logger.error(
                "file not reloaded",
                metadata: .facts([.path: "\(problem.path)", .problems: "\(problem.messages.joined(separator: "; "))"]))
        }
        return snapshot
    }

    /// Returns the file changes to record since the last call: for each path the SHA-256 hash, or `removed`. A file
    /// with another mark and the same content has not changed, for example after a `chown`.
    private func recordChanges(in files: inout Files) -> [String: String] {
        // If campaign files were lost, the campaigns stay in force, so record no removal.
        if files.catalogue.loss != nil { return [:] }
        var current = files.marks
        if let path = source.path { current[path] = files.configurationMark }
        var changes: [String: String] = [:]
        for path in files.recorded.keys where current[path] == nil {
            files.recorded[path] = nil
            changes[FileHash.absolute(path)] = "removed"
        }
        for (path, mark) in current {
            let known = files.recorded[path]
            guard known == nil || known?.mark != mark else { continue }
            let hash = try? FileHash.hash(of: path)
            files.recorded[path] = (mark, hash ?? known?.hash)
            if let hash, hash != known?.hash { changes[FileHash.absolute(path)] = hash }
        }
        return changes
    }

    /// Returns a hash that is equal on all machines with equal files, whatever their folders are. An unreadable file
    /// contributes only its name.
    private static func hash(_ folders: String...) -> String {
        let lines = folders.enumerated().flatMap { index, folder in
            YAMLFolder.files(in: folder).map { path in
                "\(index)/\((path as NSString).lastPathComponent) \((try? FileHash.hash(of: path)) ?? "")"
            }
        }
        return Digest.sha256Hex(Array(lines.sorted().joined(separator: "\n").utf8))
    }

    private static func marks(_ folders: String...) -> [String: FileMark?] {
        let paths = folders.flatMap(YAMLFolder.files)
        return Dictionary(paths.map { ($0, FileMark($0)) }) { first, _ in first }
    }
}
