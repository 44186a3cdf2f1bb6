package import Campaigns
@preconcurrency import Dispatch
import Foundation
package import Logging
package import Model
import Store
import Synchronization
import Sending

/// The files the daemon obeys, as they are now or as they were when they were last right.
package final class Reloading: Sendable {
    private struct State {
        var configuration: Configuration
        var configurationMark: FileMark?
        var configurationProblem: DaemonStatus.Problem?
        var catalogue = CampaignCatalogue()
        var marks: [String: FileMark?] = [:]
        /// Of all files, the configuration among them, as they last went on record.
        var recorded: [String: FileMark?] = [:]
    }

    private let source: ConfigurationSource
    private let logger: Logger
    private let state: Mutex<State>

    package init(source: ConfigurationSource, configuration: Configuration, logger: Logger) {
        self.source = source
        self.logger = logger
        state = Mutex(State(configuration: configuration, configurationMark: source.path.flatMap(FileMark.init)))
    }

    package var configuration: Configuration { state.withLock { $0.configuration } }

    /// The folders in which a change matters.
    package var folders: [String] {
        let configuration = configuration
        let own = source.path.map { ($0 as NSString).deletingLastPathComponent }.map { $0.isEmpty ? "." : $0 }
        return [configuration.campaigns, configuration.templates] + [own].compactMap(\.self)
    }

    /// Reads the configuration again; one with errors keeps the old one. True when another one holds now. The store cannot
    /// be changed while it is in use.
    package func readConfiguration() -> Bool {
        guard let path = source.path else { return false }
        let mark = FileMark(path)
        let before = configuration
        do {
            var (new, warnings) = try source.read()
            for warning in warnings {
                logger.warning("configuration has a warning", metadata: .facts([.warning: "\(warning)"]))
            }
            if new.store != before.store {
                logger.warning("the store changes with a restart only", metadata: .facts([.store: "\(before.store)"]))
                new.store = before.store
            }
            state.withLock { state in
                state.configuration = new
                state.configurationMark = mark
                state.configurationProblem = nil
            }
            return new != before
        } catch {
            let messages = (error as? Failure)?.messages ?? ["\(error)"]
            state.withLock { state in
                state.configurationMark = mark
                state.configurationProblem = .init(path: path, messages: messages, keepsOld: true)
            }
            logger.error(
                "configuration not taken over", metadata: .facts([.problems: "\(messages.joined(separator: "; "))"]))
            return false
        }
    }

    /// Reads what has changed of campaigns and templates.
    package func snapshot() -> Scheduler.CampaignSnapshot {
        let (snapshot, read) = state.withLock { state in
            let (campaigns, templates) = (state.configuration.campaigns, state.configuration.templates)
            state.marks = Self.marks(campaigns, templates)
            let read = state.catalogue.refresh(campaigns: campaigns, templates: templates)
            var problems = state.catalogue.problems.map { problem in
                DaemonStatus.Problem(
                    path: problem.path, messages: problem.diagnostics.map(\.description), keepsOld: problem.keepsOld)
            }
            if let problem = state.configurationProblem { problems.append(problem) }
            let snapshot = Scheduler.CampaignSnapshot(
                campaigns: state.catalogue.ready, names: state.catalogue.names, problems: problems,
                hashes: recordChanges(in: &state))
            return (snapshot, read)
        }
        logger.info(
            "files read", metadata: .facts([.changed: "\(read.count)", .campaigns: "\(snapshot.campaigns.count)"]))
        for problem in snapshot.problems where read.contains(problem.path) {
            logger.error(
                "file not taken over",
                metadata: .facts([.path: "\(problem.path)", .problems: "\(problem.messages.joined(separator: "; "))"]))
        }
        return snapshot
    }

    /// What the files hold that have changed since the last call, for the record: `sha256sum`s by path, or `removed`.
    private func recordChanges(in state: inout State) -> [String: String] {
        var current = state.marks
        if let path = source.path { current[path] = state.configurationMark }
        var changes: [String: String] = [:]
        for path in Set(current.keys).union(state.recorded.keys) where current[path] != state.recorded[path] {
            changes[FileHash.absolute(path)] = current[path] == nil ? "removed" : try? FileHash.hash(of: path)
        }
        state.recorded = current
        return changes
    }

    /// Whether a file was changed, added or removed since it was last read.
    package func hasChanged() -> Bool {
        state.withLock { state in
            source.path.flatMap(FileMark.init) != state.configurationMark
                || Self.marks(state.configuration.campaigns, state.configuration.templates) != state.marks
        }
    }

    private static func marks(_ folders: String...) -> [String: FileMark?] {
        let paths = folders.flatMap(YAMLFolder.files)
        return Dictionary(paths.map { ($0, FileMark($0)) }) { first, _ in first }
    }
}

/// Tells that something was written, moved or removed in some folders, by inotify(7); and once a minute in any case, for
/// file systems that do not tell.
package struct FolderWatch {
    private static let lookEvery: DispatchTimeInterval = .seconds(60)

    /// One element for any number of changes; ends when nobody listens any more.
    package let changes: AsyncStream<Void>

    package init(folders: [String]) {
        let file = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        let events = UInt32(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB)
        if file >= 0 { for folder in Set(folders) { inotify_add_watch(file, folder, events) } }
        changes = AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let queue = DispatchQueue(label: "folder-watch")
            let timer = DispatchSource.makeTimerSource(queue: queue)
            timer.schedule(deadline: .now() + Self.lookEvery, repeating: Self.lookEvery, leeway: .seconds(10))
            timer.setEventHandler { continuation.yield() }
            timer.resume()
            guard file >= 0 else {
                continuation.onTermination = { _ in timer.cancel() }
                return
            }
            let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
            let source = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
            source.setEventHandler {
                // What happened is found by looking; the events only need to be taken off.
                _ = handle.availableData
                continuation.yield()
            }
            source.resume()
            continuation.onTermination = { _ in
                timer.cancel()
                source.cancel()
            }
        }
    }
}
