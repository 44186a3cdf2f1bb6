import Foundation
import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(10)))
struct BackupTests {
    @Test func `what is pruned leaves space in the file until it is shrunk`() async throws {
        try await withStore { store in
            _ = try await StoreUpkeepContract.finishedRun(in: store, devices: 20_000)
            _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(60), dryRun: false, now: noon)
            #expect(try await store.size().freeBytes > 0)
            try await store.shrink()
            #expect(try await store.size().freeBytes == 0)
        }
    }

    @Test func `a backup is whole, sound, its owner's alone, and opens as a store`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
            _ = try await store.importDevices(try (1...500).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            _ = try await store.lease(run, limit: 10)
            let copy = folder.appending(path: "copy.sqlite").path
            let summary = try await store.backUp(to: copy)
            #expect(summary.devices == 500 && summary.runs == 1 && summary.version == Schema.version)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("copy") } == [
                    "copy.sqlite"
                ])
            let rights = try FileManager.default.attributesOfItem(atPath: copy)[.posixPermissions] as? Int
            #expect(rights == 0o600)
            let restored = try SQLiteFileStore(path: copy)
            #expect(try await restored.verify(budgets: [:]).isSound)
            #expect(restored.namespace == store.namespace)
            #expect(try await restored.recover(run, now: noon).leases == 1)
            try restored.close()
            try store.close()
        }
    }

    @Test func `a backup holds no provider token`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
            let token = StoredProviderToken(
                token: "bearer \(String(repeating: "secret", count: 30))", signedAt: noon, heldUntil: noon, bootID: "",
                sinceBoot: .zero)
            let key = ProviderKey(teamID: "T", keyID: "K", fingerprint: "F")
            _ = try await store.replaceProviderToken(nil, with: token, of: key)
            let copy = folder.appending(path: "copy.sqlite").path
            _ = try await store.backUp(to: copy)
            #expect(try Data(contentsOf: URL(filePath: copy)).range(of: Data("secretsecret".utf8)) == nil)
            #expect(try await store.providerToken(of: key) == token)
            let restored = try SQLiteFileStore(path: copy)
            #expect(try await restored.providerToken(of: key) == nil)
            try restored.close()
            try store.close()
        }
    }

    @Test func `what is there is kept unless it may be replaced, and the store itself always`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
            let copy = folder.appending(path: "copy.sqlite").path
            _ = try await store.backUp(to: copy)
            let first = try Data(contentsOf: URL(filePath: copy))
            _ = try await store.importDevices([try record(1)], now: noon)
            await #expect(throws: StoreError.backupExists(path: copy)) { try await store.backUp(to: copy) }
            #expect(try Data(contentsOf: URL(filePath: copy)) == first)
            #expect(try await store.backUp(to: copy, overwriting: true).devices == 1)
            for name in ["fanfare.sqlite", "fanfare.sqlite-wal", "."] {
                let path = folder.appending(path: name).path
                let error = await #expect(throws: StoreError.self) {
                    try await store.backUp(to: path, overwriting: true)
                }
                let words = "\(try #require(error))"
                #expect(words.contains(name == "." ? "Is a directory" : "it belongs to the store itself"), "\(words)")
            }
            #expect(try await store.deviceCounts().map(\.count) == [1])
            try store.close()
        }
    }

    @Test func `nothing but a backup is replaced`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
            let other = try SQLiteFileStore(path: folder.appending(path: "other.sqlite").path)
            try other.close()
            try Data("campaign: news\n".utf8).write(to: folder.appending(path: "news.yaml"))
            for name in ["news.yaml", "other.sqlite"] {
                let path = folder.appending(path: name).path
                let before = try Data(contentsOf: URL(filePath: path))
                let error = await #expect(throws: StoreError.self) {
                    try await store.backUp(to: path, overwriting: true)
                }
                #expect("\(try #require(error))".contains("not a backup of a store, and --force replaces nothing else"))
                #expect(try Data(contentsOf: URL(filePath: path)) == before)
            }
            let empty = folder.appending(path: "empty.sqlite").path
            try Data().write(to: URL(filePath: empty))
            for _ in 0..<2 { _ = try await store.backUp(to: empty, overwriting: true) }
            try store.close()
        }
    }

    @Test(arguments: ["device", "provider_token"])
    func `a damaged store is named, and not its good backup`(table: String) async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let copy = folder.appending(path: "keep.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices(try (1...2_000).map { try record($0) }, now: noon)
            _ = try await store.backUp(to: copy)
            try store.close()
            let good = try Data(contentsOf: URL(filePath: copy))
            let queue = try DatabaseQueue(path: path)
            let root = try await queue.read {
                try Int.fetchOne(
                    $0, sql: "SELECT rootpage FROM sqlite_schema WHERE name = :table", arguments: ["table": table]) ?? 0
            }
            try queue.close()
            let file = try FileHandle(forUpdating: URL(filePath: path))
            try file.seek(toOffset: UInt64(root - 1) * 4_096)
            try file.write(contentsOf: Data(repeating: 0x5A, count: 4_096))
            try file.close()
            let damaged = try SQLiteFileStore(path: path)
            let error = await #expect(throws: StoreError.self) {
                try await damaged.backUp(to: copy, overwriting: true)
            }
            let words = "\(try #require(error))"
            #expect(words.contains("the store \(path) is damaged") && !words.contains("keep.sqlite"), "\(words)")
            #expect(try Data(contentsOf: URL(filePath: copy)) == good)
            try damaged.close()
        }
    }

    /// Each writer's transaction changes two rows that must agree in every copy.
    @Test func `a backup taken while others write is of one moment`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
            _ = try await store.importDevices(try (1...3_000).map { try record($0) }, now: noon)
            let isOver = Flag()
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Also if a copy cannot be made: no cancellation ends a write.
                defer { isOver.raise() }
                group.addTask {
                    var number: Int64 = 0
                    while !isOver.isUp {
                        number += 1
                        let badge = number
                        try await store.write { db in
                            for device in [1, 2_999] {
                                try db.execute(
                                    sql: "UPDATE device SET badge = :badge WHERE id = :id",
                                    arguments: ["badge": badge, "id": device])
                            }
                        }
                    }
                }
                for number in 1...5 {
                    let copy = folder.appending(path: "copy-\(number).sqlite").path
                    _ = try await store.backUp(to: copy)
                    let queue = try DatabaseQueue(path: copy)
                    let badges = try await queue.read {
                        try Int.fetchAll($0, sql: "SELECT badge FROM device WHERE id IN (1, 2999)")
                    }
                    #expect(badges.count == 2 && badges[0] == badges[1])
                    try queue.close()
                }
                isOver.raise()
                try await group.waitForAll()
            }
            try store.close()
        }
    }

    @Test func `a store of an older version is copied before it is brought up to date`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices([try record(1)], now: noon)
            let next = Schema.migrations + ["ALTER TABLE segment ADD COLUMN note TEXT"]
            var told: [String] = []
            try Schema.migrate(store.pool, path: path, next) { told.append($0) }
            #expect(told.count == 1 && told.first?.contains("copying it to a backup") == true)
            let version = try await store.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }
            #expect(version == Schema.version + 1)
            #expect(try await store.deviceCounts().map(\.count) == [1])
            let backup = try SQLiteFileStore(path: "\(path).v\(Schema.version).backup")
            #expect(try await backup.verify(budgets: [:]).isSound)
            #expect(try await backup.deviceCounts().map(\.count) == [1])
            try backup.close()
            // Once more: nothing to do, and no further copy.
            try Schema.migrate(store.pool, path: path, next)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.path).count { $0.hasSuffix("backup") } == 1)
            try store.close()
        }
    }

    @Test func `only one process copies and upgrades a store, and a dead one is in no way`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            let next = Schema.migrations + ["ALTER TABLE segment ADD COLUMN note TEXT"]
            let names = { try Set(FileManager.default.contentsOfDirectory(atPath: folder.path)) }
            let before = try names()
            try UpgradeLock.hold(path) {
                let error = #expect(throws: StoreError.self) { try Schema.migrate(store.pool, path: path, next) }
                #expect(error == .upgrading(path))
                #expect(error?.description.contains("another process is upgrading it") == true)
                // No copy is made, and the lock of the other process stays.
                #expect(try names() == before.union(["fanfare.sqlite-upgrade"]))
                // A store that needs no upgrade opens.
                try Schema.migrate(store.pool, path: path)
            }
            #expect(try names() == before)
            // A process that was killed leaves the file, and not the lock.
            try Data().write(to: URL(fileURLWithPath: path + UpgradeLock.suffix))
            try Schema.migrate(store.pool, path: path, next)
            #expect(try names() == before.union(["fanfare.sqlite.v\(Schema.version).backup"]))
            try store.close()
        }
    }

    @Test func `a migration that fails leaves the store as it was`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices([try record(1)], now: noon)
            let broken = Schema.migrations + ["DELETE FROM device; ALTER TABLE nowhere ADD COLUMN note TEXT"]
            #expect(throws: DatabaseError.self) { try Schema.migrate(store.pool, path: path, broken) }
            #expect(throws: DatabaseError.self) { try Schema.migrate(store.pool, path: path, broken) }
            #expect(try await store.deviceCounts().map(\.count) == [1])
            #expect(try await store.verify(budgets: [:]).isSound)
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            let name = "fanfare.sqlite.v\(Schema.version).backup"
            #expect(names.contains(name) && names.contains(name + "-2"))
            try store.close()
        }
    }
}
