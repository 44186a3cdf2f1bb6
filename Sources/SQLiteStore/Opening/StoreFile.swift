import Foundation
import GRDB
import Store

/// The file of a store before anything is written to it: what it is, and whether this version may open it.
struct StoreFile {
    /// `application_id` of the file header, "FNFR": other programs' databases are left alone.
    static let applicationID = 0x464E_4652

    let path: String

    /// Looks at the file through a connection that cannot write. Throws for anything that is not an empty file, no
    /// file, or a store of a known version.
    func inspect(readOnly: Bool) throws {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw StoreError.noFolder(path: path)
        }
        guard FileManager.default.fileExists(atPath: path) else {
            if readOnly { throw StoreError.cannotOpen(path: path, reason: "there is no such file") }
            return
        }
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(StoreLimits.busyTimeoutSeconds)
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.read { try checkIdentity($0, readOnly: readOnly) }
    }

    private func checkIdentity(_ db: Database, readOnly: Bool) throws {
        let application = try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        let tables = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
        guard application == Self.applicationID || tables == 0 else { throw StoreError.notAStore(path: path) }
        guard version <= Schema.version else {
            throw StoreError.newerVersion(path: path, found: version, known: Schema.version)
        }
        guard readOnly else { return }
        // Nothing can be made of it without writing.
        guard application == Self.applicationID else { throw StoreError.notAStore(path: path) }
        guard version == Schema.version else {
            throw StoreError.olderVersion(path: path, found: version, known: Schema.version)
        }
    }
}
