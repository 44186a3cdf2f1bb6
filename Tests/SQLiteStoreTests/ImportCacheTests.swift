import Foundation
import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(10)))
struct ImportCacheTests {
    private func cacheKiB(_ store: SQLiteFileStore) async throws -> Int {
        try await store.pool.writeWithoutTransaction { -(try Int.fetchOne($0, sql: "PRAGMA cache_size") ?? 0) }
    }

    @Test func `the writer's cache is larger for the span of an import only`() async throws {
        try await withStore { store in
            #expect(try await cacheKiB(store) == StoreLimits.writerCacheKiB)
            for batch in 0..<2 {
                _ = try await store.importDevices(try (1...10).map { try record(batch * 10 + $0) }, now: noon)
                #expect(try await cacheKiB(store) == StoreLimits.importCacheKiB)
            }
            let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            #expect(try await cacheKiB(store) == StoreLimits.writerCacheKiB)
            // A lease, which waits for the disk, ends an import as well.
            _ = try await store.claim(run, by: "a", now: noon)
            _ = try await store.importDevices([try record(99)], now: noon, dryRun: true)
            #expect(try await cacheKiB(store) == StoreLimits.importCacheKiB)
            _ = try await store.lease(run)
            #expect(try await cacheKiB(store) == StoreLimits.writerCacheKiB)
        }
    }

    @Test func `an import that fails leaves a cache that the next write puts right`() async throws {
        try await withStore { store in
            try await store.pool.write { try $0.execute(sql: "DROP TABLE tag") }
            await #expect(throws: StoreError.self) {
                try await store.importDevices([try record(1) { $0.tags = ["a"] }], now: noon)
            }
            try await store.recordEvent(kind: .devicesImported, run: nil, actor: "test", detail: "", now: noon)
            #expect(try await cacheKiB(store) == StoreLimits.writerCacheKiB)
        }
    }
}

/// A first load of many devices does without the indexes of devices, and makes them at its end.
@Suite(.timeLimit(.minutes(10)))
struct `A first load` {
    private static let indexes = ["device_installation", "device_token", "device_user"]

    private func indexes(_ store: SQLiteFileStore) async throws -> [String] {
        try await store.read { db in
            try String.fetchAll(
                db,
                sql:
                    "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'device' AND sql IS NOT NULL ORDER BY 1"
            )
        }
    }

    private func records(_ range: Range<Int>) throws -> [DeviceRecord] {
        try range.map { number in try record(number) { $0.installationID = "i\(number)" } }
    }

    @Test func `puts the indexes off, and makes them at the end`() async throws {
        try await withStore { store in
            let load = try await store.deviceImport()
            #expect(try await load.register(try records(0..<10_000), now: noon).inserted == 10_000)
            #expect(try await indexes(store) == [])
            #expect(try await load.register(try records(10_000..<10_010), now: noon).inserted == 10)
            #expect(await load.isPuttingOff)
            #expect(try await load.finish(now: noon) == ImportCounts())
            #expect(await !load.isPuttingOff)
            #expect(try await indexes(store) == Self.indexes)
            #expect(try await store.verify(budgets: [:], faultsMax: 5).isSound)
        }
    }

    /// The same batches as any import takes them, in one store and in the other.
    @Test func `comes to what batch by batch comes to`() async throws {
        var batches = [try records(0..<10_000), [], try records(9_990..<10_020)]
        // A new token, then that token elsewhere, then a device without a name.
        batches[1] = [
            try record(20_001) { $0.installationID = "i7" }, try record(20_001) { $0.installationID = "i8" },
            try record(20_002) { $0.installationID = nil }, try record(20_002) { $0.installationID = "i9" },
            try record(5) {
                $0.installationID = "i5"; $0.locale = "de"
            },
        ]
        let given = batches
        try await withStore { plain in
            var expected = ImportCounts()
            for batch in given { expected.add(try await plain.importDevices(batch, now: noon)) }
            try await withStore { store in
                let load = try await store.deviceImport()
                var counts = ImportCounts()
                for batch in given { counts.add(try await load.register(batch, now: noon)) }
                counts.add(try await load.finish(now: noon))
                #expect(counts == expected)
                #expect(expected.merged > 0 && expected.tokensReplaced > 0 && expected.updated > 0)
                for name in ["i5", "i7", "i8", "i9", "i9999", "i10019"] {
                    let (left, right) = (
                        try await store.devices(matching: name), try await plain.devices(matching: name)
                    )
                    #expect(left.map(\.record) == right.map(\.record), "\(name)")
                }
                #expect(try await store.verify(budgets: [:], faultsMax: 5).isSound)
            }
        }
    }

    @Test func `that was killed is put in order by whoever opens the store next, and given again`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let first = try SQLiteFileStore(path: path)
            _ = try await first.deviceImport().register(try records(0..<10_000), now: noon)
            try first.close()
            var told: [String] = []
            let second = try SQLiteFileStore(path: path, access: .writing, tell: { told.append($0) })
            #expect(try await indexes(second) == Self.indexes)
            #expect(
                told.count == 1 && told[0].contains("building the 3 indexes that it had deferred for 10,000 devices"))
            let load = try await second.deviceImport()
            var counts = try await load.register(try records(0..<12_000), now: noon)
            counts.add(try await load.finish(now: noon))
            #expect(counts.unchanged == 10_000 && counts.inserted == 2_000)
            try second.close()
            told = []
            try SQLiteFileStore(path: path, access: .writing, tell: { told.append($0) }).close()
            #expect(told == [])
        }
    }

    @Test func `lets nobody else register devices meanwhile`() async throws {
        try await withStore { store in
            let load = try await store.deviceImport()
            _ = try await load.register(try records(0..<10_000), now: noon)
            let busy = StoreError.busy(path: store.path)
            await #expect(throws: busy) { try await store.importDevices(try records(5..<6), now: noon) }
            let second = try await store.deviceImport()
            await #expect(throws: busy) { try await second.register(try records(0..<10_000), now: noon) }
            #expect(try await indexes(store) == [])
            _ = try await load.finish(now: noon)
            #expect(try await second.register(try records(0..<10_000), now: noon).unchanged == 10_000)
            #expect(try await store.importDevices(try records(5..<6), now: noon).unchanged == 1)
        }
    }

    @Test func `that is begun by two at once is begun by one`() async throws {
        try await withStore { store in
            let batch = try records(0..<10_000)
            let loads = [try await store.deviceImport(), try await store.deviceImport()]
            let begun = await withTaskGroup(of: Bool.self) { group in
                for load in loads {
                    group.addTask { (try? await load.register(batch, now: noon)) != nil }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(begun == 1)
            for load in loads { _ = try await load.finish(now: noon) }
            #expect(try await indexes(store) == Self.indexes)
        }
    }

    @Test func `goes on as any import where somebody has opened the store and made the indexes`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            let load = try await store.deviceImport()
            _ = try await load.register(try records(0..<10_000), now: noon)
            let other = try SQLiteFileStore(path: path, access: .writing)
            _ = try await other.importDevices(try records(10_000..<10_001), now: noon)
            let counts = try await load.register(try records(10_000..<10_002), now: noon)
            #expect(counts.unchanged == 1 && counts.inserted == 1)
            #expect(try await load.finish(now: noon) == ImportCounts())
            #expect(try await store.verify(budgets: [:], faultsMax: 5).isSound)
            try other.close()
            try store.close()
        }
    }

    @Test func `that is cancelled makes its indexes all the same`() async throws {
        try await withStore { store in
            let load = try await store.deviceImport()
            _ = try await load.register(try records(0..<10_000), now: noon)
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await load.finish(now: noon)
            }
            _ = try await task.value
            #expect(try await indexes(store) == Self.indexes)
        }
    }

    @Test func `is none where the store has devices, or the file is small`() async throws {
        try await withStore { store in
            let small = try await store.deviceImport()
            _ = try await small.register(try records(0..<10), now: noon)
            #expect(try await indexes(store) == Self.indexes)
            let second = try await store.deviceImport()
            _ = try await second.register(try records(0..<10_000), now: noon)
            #expect(try await indexes(store) == Self.indexes)
        }
    }
}
