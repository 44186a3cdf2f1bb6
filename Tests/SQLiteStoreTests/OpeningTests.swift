import Foundation
import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(10)))
struct OpeningTests {
    @Test func `the name space is made once per store and differs between stores`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "a.sqlite").path
            let first = try SQLiteFileStore(path: path)
            let namespace = first.namespace
            try first.close()
            let again = try SQLiteFileStore(path: path)
            #expect(again.namespace == namespace)
            try again.close()
            let other = try SQLiteFileStore(path: folder.appending(path: "b.sqlite").path)
            #expect(other.namespace != namespace)
            try other.close()
        }
    }

    @Test func `a store written by a newer version is refused and left as it is`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "new.sqlite").path
            try SQLiteFileStore(path: path).close()
            let queue = try DatabaseQueue(path: path)
            try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 99") }
            try queue.close()
            let before = try Data(contentsOf: URL(filePath: path))
            #expect(throws: StoreError.newerVersion(path: path, found: 99, known: Schema.version)) {
                try SQLiteFileStore(path: path)
            }
            #expect(try Data(contentsOf: URL(filePath: path)) == before)
        }
    }

    /// The files of a process that was killed within a transaction, before the store had a write-ahead log.
    @Test(arguments: [StoreAccess.writing, .reading])
    func `a store with the journal of a killed process opens, without what was not finished`(
        access: StoreAccess
    ) async throws {
        try await withFolder { folder in
            let (path, killed) = (folder.appending(path: "a.sqlite").path, folder.appending(path: "b.sqlite").path)
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices([try record(1)], now: noon)
            try store.close()
            let queue = try DatabaseQueue(path: path)
            try await queue.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN IMMEDIATE")
                try db.execute(sql: "DELETE FROM device; CREATE TABLE filler (bytes BLOB)")
                for _ in 0..<50 { try db.execute(sql: "INSERT INTO filler VALUES (randomblob(4000))") }
                for end in ["", "-journal"] {
                    try FileManager.default.copyItem(atPath: path + end, toPath: killed + end)
                }
                try db.execute(sql: "ROLLBACK")
            }
            try queue.close()
            // Such a store has no write-ahead log yet.
            let opened = try SQLiteFileStore(path: killed, access: access)
            #expect(try await opened.deviceCounts().map(\.count) == [1])
            #expect(!FileManager.default.fileExists(atPath: killed + "-journal"))
            try opened.close()
        }
    }

    @Test func `a store brought up to date under a process takes nothing more from that process`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "a.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 1)
            let queue = try DatabaseQueue(path: path)
            try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 99") }
            try queue.close()
            let newer = StoreError.newerVersion(path: path, found: 99, known: Schema.version)
            await #expect(throws: newer) { try await store.lease(run, limit: 1) }
            await #expect(throws: newer) { try await store.heartbeat(run, owner: "a", now: noon) }
            await #expect(throws: newer) {
                try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            #expect(try await store.run(run)?.counts.leased == 1)
            #expect(!newer.isPassing)
            try store.close()
        }
    }

    @Test func `a store of an older version is left as it is while a sender uses it`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "old.sqlite").path
            let queue = try DatabaseQueue(path: path)
            try await queue.writeWithoutTransaction { db in
                for sql in Schema.migrations.dropLast() { try db.execute(sql: sql) }
                try db.execute(
                    sql: "REPLACE INTO meta (key, value) VALUES ('namespace', zeroblob(16))")
                try db.execute(sql: "PRAGMA user_version = \(Schema.version - 1)")
                try db.execute(sql: "PRAGMA application_id = \(StoreFile.applicationID)")
            }
            try queue.close()
            let refusal = StoreError.migrating(path, under: "sender 16 (fanfare serve)")
            #expect(throws: refusal) {
                try SQLiteFileStore(path: path, access: .writing, livingSender: { "sender 16 (fanfare serve)" })
            }
            try SQLiteFileStore(path: path, access: .writing, livingSender: { nil }).close()
            // Up to date, it is shared with whoever sends.
            try SQLiteFileStore(path: path, access: .writing, livingSender: { "sender 16 (fanfare serve)" }).close()
        }
    }

    @Test func `a file that is no database is refused and left as it is`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "notes.txt").path
            let text = Data(String(repeating: "not a database ", count: 100).utf8)
            try text.write(to: URL(filePath: path))
            #expect(throws: StoreError.notADatabase(path: path)) { try SQLiteFileStore(path: path) }
            #expect(try Data(contentsOf: URL(filePath: path)) == text)
        }
    }

    @Test func `another program's database is refused and left as it is`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "other.sqlite").path
            let queue = try DatabaseQueue(path: path)
            try await queue.write { try $0.execute(sql: "CREATE TABLE theirs (id INTEGER)") }
            try queue.close()
            let before = try Data(contentsOf: URL(filePath: path))
            #expect(throws: StoreError.notAStore(path: path)) { try SQLiteFileStore(path: path) }
            #expect(try Data(contentsOf: URL(filePath: path)) == before)
        }
    }

    private func modes(_ path: String) throws -> [String: Int] {
        var modes: [String: Int] = [:]
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
            modes[suffix] = try FileManager.default.attributesOfItem(atPath: path + suffix)[.posixPermissions] as? Int
        }
        return modes
    }

    @Test func `the files of a store are for their owner only`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices([try record(1)], now: noon)
            #expect(store.exposure == nil)
            #expect(try modes(path) == ["": 0o600, "-wal": 0o600, "-shm": 0o600])
            // As an earlier version left them, one of them in use.
            for suffix in ["", "-wal", "-shm"] { chmod(path + suffix, 0o664) }
            let second = try SQLiteFileStore(path: path)
            #expect(try modes(path) == ["": 0o600, "-wal": 0o600, "-shm": 0o600])
            #expect(second.exposure?.contains("mode 664); it is 600 now") == true)
            // Both still work: no lock was lost over it.
            _ = try await second.importDevices([try record(2)], now: noon)
            _ = try await store.importDevices([try record(3)], now: noon)
            #expect(try await store.deviceCounts().map(\.count) == [3])
            try store.close()
            try second.close()
        }
    }

    @Test func `a missing folder is named`() {
        let path = "/nowhere-\(UUID().uuidString)/fanfare.sqlite"
        #expect(throws: StoreError.noFolder(path: path)) { try SQLiteFileStore(path: path) }
    }

    @Test func `a folder that takes no files cannot hold a store`() {
        // Nobody may create files there, not even root.
        let path = "/proc/self/fanfare.sqlite"
        #expect { try SQLiteFileStore(path: path) } throws: { error in
            if case StoreError.cannotOpen(path, _) = error { true } else { false }
        }
    }

    @Test func `a store opened for reading is read and refuses writes`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices([try record(1)], now: noon)
            let reader = try SQLiteFileStore(path: path, access: .reading)
            #expect(try await reader.deviceCounts().map(\.count) == [1])
            await #expect(throws: StoreError.readOnly(path: path)) {
                try await reader.recordEvent(kind: .backedUp, run: nil, actor: "test", detail: "", now: noon)
            }
            try reader.close()
            try store.close()
        }
    }

    @Test func `a link leads to the store with its log, also for who only reads`() async throws {
        try await withFolder { folder in
            let (path, link) = (folder.appending(path: "real.sqlite").path, folder.appending(path: "link.sqlite").path)
            let writing = try SQLiteFileStore(path: path)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "real.sqlite")
            _ = try await writing.importDevices([try record(1)], now: noon)
            let reading = try SQLiteFileStore(path: link, access: .reading)
            #expect(try await reading.deviceCounts().map(\.count) == [1])
            try reading.close()
            try writing.close()
        }
    }

    @Test func `a full disk loses the transaction and nothing else`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices(try (0..<100).map { try record($0) }, now: noon)
            try await store.pool.writeWithoutTransaction { db in
                let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
                try db.execute(sql: "PRAGMA max_page_count = \(pages + 4)")
            }
            await #expect(throws: StoreError.diskFull(path: path)) {
                try await store.importDevices(try (100..<5000).map { try record($0) }, now: noon)
            }
            try store.close()
            let again = try SQLiteFileStore(path: path)
            #expect(try await again.deviceCounts().map(\.count) == [100])
            #expect(try await again.integrity() == [])
            let counts = try await again.importDevices(try (100..<5000).map { try record($0) }, now: noon)
            #expect(counts.inserted == 4900)
            try again.close()
        }
    }

    @Test func `two stores on one file see each other's work`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let left = try SQLiteFileStore(path: path)
            let right = try SQLiteFileStore(path: path)
            _ = try await left.importDevices([try record(1)], now: noon)
            _ = try await right.importDevices([try record(2)], now: noon)
            #expect(try await left.deviceCounts().map(\.count) == [2])
            try left.close()
            try right.close()
        }
    }

    @Test func `no message holds a whole token`() async throws {
        try await withStore { store in
            let device = try record(1)
            _ = try await store.importDevices([device], now: noon)
            let stored = try #require(try await store.devices(matching: device.token.hex).first)
            #expect(!"\(stored.record.token)".contains(device.token.hex))
        }
    }
}
