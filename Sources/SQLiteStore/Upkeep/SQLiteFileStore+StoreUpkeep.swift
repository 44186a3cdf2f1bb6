import Foundation
import GRDB
package import Model
import OutputFiles
import RelationalStore
package import Store

/// A copy of a store in another file: one snapshot, complete and checked before it gets its final name.
struct StoreCopy {
    let source: any DatabaseReader
    /// The path of the copy.
    let path: String
    /// The path of the store, for errors about it.
    let sourcePath: String

    /// Makes the copy while senders and importers continue. The copy is on disk when this returns.
    ///
    /// Throws ``StoreError/backupExists(path:)`` unless `overwriting`. With `overwriting`, only a backup is replaced.
    /// An existing file stays until the copy is complete.
    func make(overwriting: Bool) throws -> BackupSummary {
        let target = OutputPath(path)
        do {
            if try target.entry() == .stream { return try stream(to: target) }
            try checkTarget(overwriting: overwriting)
            return try replace(target)
        } catch let fault as OutputFault {
            guard fault.code != EISDIR || overwriting else { throw StoreError.backupExists(path: path) }
            throw StoreError.cannotMake(path: path, reason: fault.description)
        } catch {
            if case StoreError.cannotOpen(_, let reason) = error {
                throw StoreError.cannotMake(path: path, reason: reason)
            }
            throw StoreError.translated(error, path: Self.isAboutSource(error) ? sourcePath : path)
        }
    }

    /// Returns whether the copied file is at fault. The copy itself is a new file that no other process has, so only a
    /// failure to create or to write it belongs to the copy.
    static func isAboutSource(_ error: any Error) -> Bool {
        guard let fault = error as? DatabaseError else { return false }
        switch fault.resultCode {
        case .SQLITE_IOERR: return [.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ].contains(fault.extendedResultCode)
        case .SQLITE_FULL, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH, .SQLITE_CANTOPEN: return false
        default: return true
        }
    }

    private func replace(_ target: OutputPath) throws -> BackupSummary {
        // Only the owner may read the tokens in the copy, from the first byte on.
        let part = try target.draft()
        do {
            var summary = try write(part.path, madeAt: Timestamp(Date()))
            try Self.synchronize(part.path)
            try target.adopt(part, .closedToOthers)
            summary.path = path
            return summary
        } catch {
            part.remove()
            throw error
        }
    }

    /// Makes the copy beside the store, and then writes it to a device or a pipe.
    private func stream(to target: OutputPath) throws -> BackupSummary {
        let part = try OutputPath(sourcePath + ".backup").draft()
        defer { part.remove() }
        var summary = try write(part.path, madeAt: Timestamp(Date()))
        guard let copy = FileHandle(forReadingAtPath: part.path) else {
            throw StoreError.cannotMake(path: path, reason: String(cString: strerror(errno)))
        }
        let writer = try target.open()
        while let bytes = try copy.read(upToCount: Self.streamBytes), !bytes.isEmpty { try writer.write(bytes) }
        try writer.finish()
        summary.path = path
        return summary
    }

    private static let streamBytes = 1 << 20

    private var folder: String { URL(fileURLWithPath: path).deletingLastPathComponent().path }

    private func checkTarget(overwriting: Bool) throws {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw StoreError.cannotMake(path: path, reason: "its folder does not exist")
        }
        guard FileManager.default.fileExists(atPath: path) else { return }
        guard overwriting else { throw StoreError.backupExists(path: path) }
        let resolved = { (path: String) in URL(fileURLWithPath: path).resolvingSymlinksInPath().path }
        if ["", "-wal", "-shm"].contains(where: { resolved(path) == resolved(sourcePath + $0) }) {
            throw StoreError.cannotMake(path: path, reason: "it belongs to the store itself")
        }
        guard isReplaceable else {
            throw StoreError.cannotMake(
                path: path, reason: "it is not a backup of a store, and --force replaces nothing else")
        }
    }

    /// Whether the file at the path is empty, or a copy of a store that has not been opened as a store.
    private var isReplaceable: Bool {
        guard OutputPath(path).holdsData else { return true }
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        guard let queue = try? DatabaseQueue(path: path, configuration: configuration) else { return false }
        defer { try? queue.close() }
        let isBackup = try? queue.read { db in
            try Int.fetchOne(db, sql: "PRAGMA application_id") == StoreFile.applicationID
                && BackupMarks.mark(db) != nil
        }
        return isBackup ?? false
    }

    /// Writes and checks the copy.
    ///
    /// - Parameter madeAt: the time of the content. If the source is itself marked as a copy, its own time stays.
    func write(_ part: String, madeAt: Timestamp) throws -> BackupSummary {
        let copy = try DatabaseQueue(path: part)
        try source.backup(to: copy)
        let summary = try copy.writeWithoutTransaction { db in
            try Self.forgetProviderTokens(db)
            try BackupMarks.set(BackupMark(madeAt: madeAt), db)
            // Make it a single file. It returns to WAL mode when it is opened as a store.
            try db.execute(sql: "PRAGMA journal_mode = DELETE")
            let faults = try String.fetchAll(db, sql: "PRAGMA integrity_check(5)").filter { $0 != "ok" }
            guard faults.isEmpty else {
                throw StoreError.corrupt(path: sourcePath, reason: faults.joined(separator: "; "))
            }
            return BackupSummary(
                path: part, version: try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0,
                bytes: try Int.fetchOne(
                    db, sql: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
                    ?? 0,
                devices: try Int.fetchOne(db, sql: "SELECT count(*) FROM device") ?? 0,
                runs: try Int.fetchOne(db, sql: "SELECT count(*) FROM run") ?? 0)
        }
        try copy.close()
        return summary
    }

    /// Deletes the provider tokens, because a copy is stored elsewhere and kept longer than a token is useful.
    private static func forgetProviderTokens(_ db: Database) throws {
        guard try db.tableExists("provider_token") else { return }
        try db.execute(sql: "PRAGMA secure_delete = ON")
        try db.execute(sql: "DELETE FROM provider_token")
    }

    /// Syncs a file to disk, or a folder with the names in it.
    static func synchronize(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw StoreError.cannotMake(path: path, reason: String(cString: strerror(errno)))
        }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw StoreError.failed(
                path: path, reason: "it cannot be flushed to disk: \(String(cString: strerror(errno)))")
        }
    }
}

extension SQLiteFileStore {
    package func backUp(to path: String, overwriting: Bool) async throws -> BackupSummary {
        let copy = StoreCopy(source: pool, path: path, sourcePath: self.path)
        return try await withCheckedThrowingContinuation { continuation in
            // Copying blocks its thread while the disk works, so do not use a thread that tasks share.
            DispatchQueue.global(qos: .utility).async {
                continuation.resume(with: Result { try copy.make(overwriting: overwriting) })
            }
        }
    }

    package func observation(now: Timestamp) async throws -> StoreObservation {
        let logBytes = try? FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int
        return try await read(.short) { db in
            let states = try Row.fetchAll(
                db, sql: "SELECT state, count(*) FROM run WHERE is_test = 0 GROUP BY state")
            let runs = states.compactMap { row in RunState(rawValue: row[0]).map { ($0, row[1] as Int) } }
            let environments = PushEnvironment.allCases.map { "SELECT \($0.code) AS code" }
                .joined(separator: " UNION ALL ")
            let queues = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, campaign, pending, leased,
                        (SELECT min(first) FROM (
                            SELECT (
                                SELECT min(not_before) FROM delivery INDEXED BY delivery_waiting
                                WHERE run_id = run.id AND environment = environments.code
                                    AND state = \(DeliveryState.pending.rawValue) AND not_before IS NOT NULL
                            ) AS first
                            FROM (\(environments)) AS environments
                        ))
                    FROM run WHERE state IN (\(SQLConstants.list(RunState.unfinished))) ORDER BY id
                    """
            ).map { row in
                let due = NotBefore.moment(row[4])
                return StoreObservation.Queue(
                    run: row[0], campaign: row[1], pending: row[2], leased: row[3],
                    overdue: due.map { $0 < now ? now - $0 : .zero } ?? .zero)
            }
            var observation = StoreObservation(
                runs: Dictionary(uniqueKeysWithValues: runs), queues: queues, logBytes: (logBytes ?? nil) ?? 0)
            observation.unreadableRuns = try RunClauses.unreadable(db).count
            try Self.observeWaits(&observation, db)
            return observation
        }
    }

    /// Counts what waits for a person or another server. Each statement reads an index or a small table.
    private static func observeWaits(_ observation: inout StoreObservation, _ db: Database) throws {
        let halts = try Row.fetchAll(
            db,
            sql: """
                SELECT halt, count(*) FROM run INDEXED BY run_halted
                WHERE state = 'paused' AND paused_by IS NULL AND is_test = 0 GROUP BY halt
                """)
        observation.countHalts(halts.map { (halt: $0[0] as String?, count: $0[1] as Int) })
        observation.openApprovals =
            try Int.fetchOne(
                db, sql: "SELECT count(*) FROM approval WHERE state = '\(ApprovalRequest.State.open.rawValue)'") ?? 0
        if let row = try Row.fetchOne(
            db, sql: "SELECT count(*), min(at) FROM webhook_message WHERE url IN (SELECT url FROM webhook)")
        {
            observation.webhookMessages = row[0]
            observation.oldestWebhookMessage = Timestamp(stored: row[1] as Int64?)
        }
        observation.failingFeeds =
            try Int.fetchOne(db, sql: "SELECT count(*) FROM feed WHERE failures > 0") ?? 0
        observation.backedUpAt = Timestamp(
            stored: try Int64.fetchOne(
                db,
                sql: "SELECT at FROM event WHERE kind = '\(EventKind.backedUp.rawValue)' ORDER BY id DESC LIMIT 1"))
        observation.beganAt = Timestamp(
            stored: try Int64.fetchOne(db, sql: "SELECT at FROM event ORDER BY id LIMIT 1"))
    }

    /// Releases free pages in slices, one per transaction, so that senders continue. A store created before version 3
    /// is rewritten completely the first time, which blocks writers.
    package func shrink() async throws {
        do {
            if try await pool.read({ try Int.fetchOne($0, sql: "PRAGMA auto_vacuum") }) == Schema.incrementalVacuum {
                while try await pool.read({ try Int.fetchOne($0, sql: "PRAGMA freelist_count") ?? 0 }) > 0 {
                    try await pool.writeWithoutTransaction { db in
                        try db.execute(sql: "PRAGMA incremental_vacuum(\(StoreLimits.shrinkBatchPages))")
                    }
                }
            } else {
                try await pool.writeWithoutTransaction { db in
                    try db.execute(sql: "PRAGMA auto_vacuum = \(Schema.incrementalVacuum)")
                }
                try await pool.vacuum()
            }
            _ = try await pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        } catch {
            throw StoreError.translated(error, path: path)
        }
    }

    package func audienceSQLObstacle() async throws -> AudienceSQLFault? { nil }

    package func size() async throws -> StoreSize {
        try await read(.short) { db in
            let pageBytes = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            let free = try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0
            return StoreSize(bytes: pages * pageBytes, freeBytes: free * pageBytes)
        }
    }

    package func integrity() async throws -> [String] {
        try await read { db in
            let faults = try String.fetchAll(db, sql: "PRAGMA quick_check(20)").filter { $0 != "ok" }
            let orphans = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").prefix(20)
            return faults + orphans.map { "foreign key: \($0)" }
        }
    }

    package func close() throws {
        do { try pool.close() } catch { throw StoreError.translated(error, path: path) }
    }
}
