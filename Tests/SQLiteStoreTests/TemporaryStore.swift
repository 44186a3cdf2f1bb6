import Foundation
import GRDB
import SQLiteStore
import Store
import StoreContract
import Synchronization

/// A store in a folder of its own, closed and removed after `body`.
@discardableResult
func withStore<Value>(_ body: (SQLiteFileStore) async throws -> Value) async throws -> Value {
    try await withFolder { folder in
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        let result = await attempt { try await body(store) }
        try store.close()
        return try result.get()
    }
}

@discardableResult
func withFolder<Value>(_ body: (URL) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let result = await attempt { try await body(folder) }
    try FileManager.default.removeItem(at: folder)
    return try result.get()
}

private func attempt<Value>(_ body: () async throws -> Value) async -> Result<Value, any Error> {
    do { return .success(try await body()) } catch { return .failure(error) }
}

/// Whether a store of SQLite keeps a promise, in a folder of its own.
func check(_ promise: Promise) async throws {
    try await withFolder { folder in
        let opened = OpenedStores()
        let result = await attempt { try await promise.check(opened.store(in: folder)) }
        try opened.closeAll()
        try result.get()
    }
}

/// The stores that a promise has opened.
private final class OpenedStores: Sendable {
    private let stores = Mutex<[SQLiteFileStore]>([])

    func store(in folder: URL) -> StoreUnderTest {
        let path = folder.appending(path: "\(UUID().uuidString).sqlite").path
        return StoreUnderTest(
            open: { isAlive in try self.open(path, isAlive) },
            openAfterCrash: { isAlive in try self.open(try Self.copy(path), isAlive) },
            another: { self.store(in: folder) },
            damage: { sql in
                var configuration = GRDB.Configuration()
                configuration.busyMode = .timeout(30)
                let queue = try DatabaseQueue(path: path, configuration: configuration)
                try await queue.write { try $0.execute(sql: sql) }
                try queue.close()
            })
    }

    private func open(_ path: String, _ isAlive: @escaping OwnerLiveness.IsAlive) throws -> SQLiteFileStore {
        let store = try SQLiteFileStore(path: path, isAlive: isAlive)
        stores.withLock { $0.append(store) }
        return store
    }

    /// The files of a store as they are on disk at this moment.
    private static func copy(_ path: String) throws -> String {
        let copy = "\(path)-crashed-\(UUID().uuidString)"
        for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: path + suffix) {
            try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
        }
        return copy
    }

    func closeAll() throws {
        for store in stores.withLock({ $0 }) { try store.close() }
    }
}

/// Tells other tasks of a test that it is over.
final class Flag: Sendable {
    private let state = Mutex(false)

    var isUp: Bool { state.withLock { $0 } }

    func raise() { state.withLock { $0 = true } }
}
