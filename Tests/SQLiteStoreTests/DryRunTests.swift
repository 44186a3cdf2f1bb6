import Model
import SQLiteStore
import Store
import Testing

@Suite(.timeLimit(.minutes(10)))
struct DryRunTests {
    @Test func `a dry run counts what the import then does, and writes nothing`() async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let before = try await export(store)
            let records = [
                try record(1),
                try record(2) { $0.country = "DE" },
                try record(30, installation: "install-3"),
                try record(4, installation: "install-1"),
                try record(50, topic: "new.topic") { $0.tags = ["beta"] },
                try record(50, topic: "new.topic"),
            ]
            let dry = try await store.importDevices(records, now: noon, dryRun: true)
            #expect(try await export(store) == before)
            #expect(try await store.deviceCounts().map(\.topic) == [wendercast])
            let real = try await store.importDevices(records, now: noon)
            #expect(dry == real && dry.sum == records.count)
            #expect(real.inserted == 1 && real.tokensReplaced == 1 && real.merged == 1 && real.updated == 1)
        }
    }

    private func export(_ store: SQLiteFileStore) async throws -> [StoredDevice] {
        let found = Collected<StoredDevice>()
        _ = try await store.exportDevices(topic: nil, matching: .everyone, now: noon) { found.add($0) }
        return found.all
    }
}
