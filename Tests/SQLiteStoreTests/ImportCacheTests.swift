import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(2)))
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
