import Foundation
import Model
import SQLiteStore
import Store
import StoreContract
import Synchronization
import TestSupport
import Testing

@testable import PostgresStore

/// One tree, two dialects: whoever moves a store reaches the same people.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct AudienceAgreementTests {
    private static let devices = 250

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `random expressions select the same devices of both stores`(seed: UInt64) async throws {
        let folder = try TemporaryDirectory()
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        let server = try await PostgresDatabase.open(url: url, time: .caller)
        let file = try SQLiteFileStore(path: folder.file("store.sqlite"))
        let stores: [any AllRoles] = [server, file]
        var random = RandomAudience(seed: seed)
        let records = try (1...Self.devices).map { try random.device($0) }
        for store in stores {
            _ = try await store.importDevices(records, now: noon)
            for (name, step) in [("fans", 3), ("a\"b'c", 7)] {
                let members = try await store.importSegment(name, mode: .replace)
                try await members.append(
                    stride(from: 1, through: Self.devices, by: step).map { .installation("install-\($0)") })
                _ = try await members.commit(now: noon)
            }
        }
        var selected = 0
        for _ in 0..<400 {
            let expression = random.expression(depth: 4)
            let found = try await Self.selected(expression, server)
            let foundInFile = try await Self.selected(expression, file)
            try #require(found == foundInFile, "\(expression)")
            selected += found.isEmpty || found.count == Self.devices ? 0 : 1
        }
        // Most would say nothing if they selected nobody, or everybody.
        #expect(selected > 100)
        try server.close()
        try file.close()
    }

    private static func selected(_ expression: AudienceExpression, _ store: any AllRoles) async throws -> [String] {
        let found = Mutex<[String]>([])
        _ = try await store.exportDevices(topic: wendercast, matching: expression, now: noon) { batch in
            found.withLock { $0 += batch.map { $0.record.installationID ?? "" } }
        }
        return found.withLock { $0 }
    }
}
