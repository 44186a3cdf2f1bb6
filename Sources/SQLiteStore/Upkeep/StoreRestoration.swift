import Foundation
import GRDB
package import Model
import OutputFiles
package import Store

/// Puts a backup in the place of a store. The store that was there is kept beside it.
package struct StoreRestoration: Sendable {
    package struct Summary: Hashable, Sendable {
        package var copy: BackupSummary
        /// Where the store that was there is now. `nil` if there was none.
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

    /// Copies the backup beside the store, checks the copy, and renames. The caller makes sure that no sender lives.
    ///
    /// The new store has the owner, the group and the mode of the old one, or of its folder.
    package func run(now: Timestamp) throws -> Summary {
        do {
            try requireOther()
            do {
                try StoreFile(path: file).requireFile(for: .reading)
                try StoreFile(path: file).inspect(for: .writing)
            } catch {
                throw StoreError.translated(error, path: file)
            }
            let part = try OutputPath(store).draftPath()
            do {
                try StoreFile.makeEmpty(part)
                let copy = try copy(to: part, now: now)
                handOver(part)
                try StoreCopy.synchronize(part)
                return Summary(copy: copy, setAside: try place(part, now: now))
            } catch {
                for end in ["", "-journal", "-wal", "-shm"] { unlink(part + end) }
                throw error
            }
        } catch let fault as OutputFault {
            throw StoreError.cannotMake(path: store, reason: fault.description)
        } catch {
            throw StoreError.translated(error, path: Self.isAboutContent(error) ? file : store)
        }
    }

    /// Whether the backup itself is wrong. All else that a copy meets, such as a full disk, belongs to the store.
    private static func isAboutContent(_ error: any Error) -> Bool {
        guard let fault = error as? DatabaseError else { return false }
        return [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(fault.resultCode)
            || [.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ].contains(fault.extendedResultCode)
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
        // A file that was copied by other means does not say when: it was last written at the latest then.
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

    /// The old log must not stay beside the new file: SQLite would take it for the new file's.
    private func place(_ part: String, now: Timestamp) throws -> String? {
        let hadStore = access(store, F_OK) == 0
        let aside = "\(store).before-\(now.iso8601.filter { $0.isNumber || $0 == "T" || $0 == "Z" })"
        for end in ["", "-wal", "-shm"] where access(store + end, F_OK) == 0 {
            guard access(aside + end, F_OK) != 0, rename(store + end, aside + end) == 0 else {
                throw StoreError.cannotMake(path: aside + end, reason: "the old store cannot be set aside")
            }
        }
        guard rename(part, store) == 0 else {
            throw StoreError.cannotMake(path: store, reason: String(cString: strerror(errno)))
        }
        try StoreCopy.synchronize(OutputPath.folder(of: store))
        return hadStore ? aside : nil
    }
}
