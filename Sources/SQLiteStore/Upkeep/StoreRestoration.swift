import Foundation
import GRDB
package import Model
import OutputFiles
package import Store

/// A restoration that replaces a store with a backup. The old store is kept beside it.
package struct StoreRestoration: Sendable {
    package struct Summary: Hashable, Sendable {
        package var copy: BackupSummary
        /// The new path of the old store. `nil` if there was none.
        package var setAside: String?
    }

    private let file: String
    private let store: String

    /// - Parameters:
    ///   - file: the path of the backup.
    ///   - store: the path of the store, which may be missing.
    package init(_ file: String, to store: String) {
        self.file = file
        self.store = SQLiteFileStore.behindLink(store)
    }

    /// Copies the backup beside the store, checks the copy, and renames it. The caller ensures that no sender is alive.
    /// Throws ``StoreError/inUse(path:reason:)`` while another process has the store open. Also throws if the store has
    /// moved away.
    ///
    /// The new store has the owner and the group of the old one, or of its folder. It has the old store's mode for the
    /// owner, and no access for other accounts.
    package func run(now: Timestamp) throws -> Summary {
        do {
            try requireOther()
            do {
                try StoreFile(path: file).requireFile(for: .reading)
                try StoreFile(path: file).inspect(for: .writing)
            } catch {
                throw StoreError.translated(error, path: file)
            }
            let part = try OutputPath(store).draft()
            do {
                let copy = try copy(to: part.path, now: now)
                handOver(part.path)
                try StoreCopy.synchronize(part.path)
                return Summary(copy: copy, setAside: try place(part.path, now: now))
            } catch {
                part.remove()
                throw error
            }
        } catch let fault as OutputFault {
            throw StoreError.cannotMake(path: store, reason: fault.description)
        } catch {
            throw StoreError.translated(error, path: StoreCopy.isAboutSource(error) ? file : store)
        }
    }

    private func requireOther() throws {
        let resolved = { (path: String) in URL(fileURLWithPath: path).resolvingSymlinksInPath().path }
        guard resolved(file) != resolved(store) else {
            throw StoreError.inUse(path: store, reason: "it is the file to restore from; name a backup")
        }
    }

    private func copy(to part: String, now: Timestamp) throws -> BackupSummary {
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        let source: DatabaseQueue
        do {
            source = try DatabaseQueue(path: file, configuration: configuration)
        } catch {
            throw StoreError.translated(error, path: file)
        }
        defer { try? source.close() }
        // A file that Fanfare did not copy records no time. Its content is no newer than its last write.
        var facts = stat()
        let written = stat(file, &facts) == 0 ? Timestamp(milliseconds: Int64(facts.st_mtim.tv_sec) * 1000) : now
        var summary = try StoreCopy(source: source, path: store, sourcePath: file).write(part, madeAt: written)
        summary.path = store
        return summary
    }

    private func handOver(_ part: String) {
        var facts = stat()
        if stat(store, &facts) == 0 {
            chmod(part, facts.st_mode & 0o600)
        } else if stat(OutputPath.folder(of: store), &facts) != 0 {
            return
        }
        _ = chown(part, facts.st_uid, facts.st_gid)
    }

    /// Moves the copy to the store's path. Throws if the store has moved away, or if another process has it open.
    private func place(_ part: String, now: Timestamp) throws -> String? {
        let aside = "\(store).before-\(now.iso8601.filter { $0.isNumber || $0 == "T" || $0 == "Z" })"
        let replaced = StoreReplacement(store: store, part: part, aside: aside)
        guard access(store, F_OK) == 0 else {
            // A log whose store is missing must not become the log of the new store.
            try replaced.setLogsAside()
            try replaced.adopt()
            try StoreCopy.synchronize(OutputPath.folder(of: store))
            return nil
        }
        do {
            try replaced.whileHeld { db in
                if try db.tableExists("meta") { try MoveMarks.requireUsable(db, isReading: false) }
                try replaced.exchange()
            }
        } catch let error as DatabaseError where Self.isDamage(error) {
            // A damaged store is a reason to restore: set it aside as it is.
            try replaced.exchangeWithLogs()
        }
        try StoreCopy.synchronize(OutputPath.folder(of: store))
        return aside
    }

    private static func isDamage(_ error: DatabaseError) -> Bool {
        [.SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_IOERR].contains(error.resultCode)
    }
}

/// Replaces the file at a store's path with another file, and keeps the old one under another name.
private struct StoreReplacement {
    /// The number of attempts while another process has the store open, with a pause after each. A command that only
    /// reads finishes in that time.
    private static let triesMax = 50
    private static let pauseMicroseconds: UInt32 = 100_000

    let store: String
    let part: String
    let aside: String

    /// Runs `body` while no other process reads or writes the store. The whole store is then in one file.
    func whileHeld(_ body: (Database) throws -> Void) throws {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(StoreLimits.busyTimeoutSeconds)
        let queue = try DatabaseQueue(path: store, configuration: configuration)
        defer { try? queue.close() }
        for _ in 0..<Self.triesMax {
            let isDone = try queue.writeWithoutTransaction { db in
                guard try leaveLog(db) else { return false }
                var isDone = false
                try db.inTransaction(.exclusive) {
                    // Another process may have opened the store again in the meantime.
                    guard try String.fetchOne(db, sql: "PRAGMA journal_mode") == "delete" else { return .rollback }
                    try body(db)
                    isDone = true
                    return .rollback
                }
                return isDone
            }
            if isDone { return }
            usleep(Self.pauseMicroseconds)
        }
        throw StoreError.inUse(
            path: store,
            reason: "another process has it open; stop that process (`fuser -v \(store)` shows it), then run the same "
                + "command again")
    }

    /// Copies the log into the file. SQLite does this only for the last process that has the store open. Returns
    /// `false` if another process has it open.
    private func leaveLog(_ db: Database) throws -> Bool {
        do {
            return try String.fetchOne(db, sql: "PRAGMA journal_mode = DELETE") == "delete"
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return false
        }
    }

    /// Exchanges the files so that a store exists at every moment: the old one has two names before it loses the first.
    func exchange() throws {
        guard access(aside, F_OK) != 0 else { throw StoreError.cannotMake(path: aside, reason: "it already exists") }
        let isLinked = link(store, aside) == 0
        // Some file systems do not support hard links.
        guard isLinked || rename(store, aside) == 0 else { throw failure(aside, "the old store cannot be set aside") }
        do {
            try adopt()
        } catch {
            guard isLinked ? unlink(aside) == 0 : rename(aside, store) == 0 else {
                throw failure(store, "the old store is now at \(aside): move it back, or restore again")
            }
            throw error
        }
    }

    /// Exchanges the files, and sets aside the logs of a store that SQLite cannot read.
    func exchangeWithLogs() throws {
        try setLogsAside()
        do {
            try exchange()
        } catch {
            for end in Self.logEnds { rename(aside + end, store + end) }
            throw error
        }
    }

    private static let logEnds = ["-wal", "-shm"]

    func setLogsAside() throws {
        for end in Self.logEnds where access(store + end, F_OK) == 0 {
            guard access(aside + end, F_OK) != 0, rename(store + end, aside + end) == 0 else {
                throw failure(aside + end, "the log of the old store cannot be set aside")
            }
        }
    }

    func adopt() throws {
        guard rename(part, store) == 0 else { throw failure(store, "the backup cannot be renamed to the store's name") }
    }

    private func failure(_ path: String, _ what: String) -> StoreError {
        .cannotMake(path: path, reason: "\(what) (\(String(cString: strerror(errno))))")
    }
}
