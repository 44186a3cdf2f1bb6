import PostgresStore
import Store
import StoreContract
import Synchronization
import TestSupport

/// Whether a store on PostgreSQL keeps a promise, in databases of its own.
func check(_ promise: Promise) async throws {
    let opened = OpenedStores(try await PostgresCluster.shared)
    try await Turns.ofPromises.whileHavingOne {
        do {
            try await promise.check(try await opened.store())
            try opened.closeAll()
        } catch {
            try opened.closeAll()
            throw error
        }
    }
}

/// A store that nothing is in. Its tables take longer to make than to copy.
private enum EmptyStore {
    private static let making = Task {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await PostgresDatabase.open(url: cluster.url(database)).close()
        return database
    }

    /// The copy is a store of its own: it has another namespace.
    static func copy(in cluster: PostgresCluster) async throws -> String {
        let database = try await cluster.makeDatabase(template: try await making.value)
        try await withPool(cluster.url(database), readers: 1) { pool in
            try await pool.session { db in
                try db.run("UPDATE meta SET value = uuid_send(gen_random_uuid()) WHERE key = 'namespace'")
            }
        }
        return database
    }
}

/// So many at a time: each has connections of its own, of which a server has so many.
private actor Turns {
    static let ofPromises = Turns(8)

    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) { free = count }

    func whileHavingOne(_ body: @Sendable () async throws -> Void) async throws {
        if free > 0 { free -= 1 } else { await withCheckedContinuation { waiting.append($0) } }
        defer { if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() } }
        try await body()
    }
}

/// The stores that a promise has opened.
private final class OpenedStores: Sendable {
    private let cluster: PostgresCluster
    private let stores = Mutex<[PostgresDatabase]>([])

    init(_ cluster: PostgresCluster) { self.cluster = cluster }

    func store() async throws -> StoreUnderTest {
        let database = try await EmptyStore.copy(in: cluster)
        let url = cluster.url(database)
        // A process that dies leaves the database as it is at that moment: whoever opens it finds just that.
        return StoreUnderTest(
            open: { isAlive in try await self.open(url, isAlive) },
            openAfterCrash: { isAlive in try await self.open(url, isAlive) },
            another: { try await self.store() },
            admitAnalysts: { try await self.cluster.administer(AdministratorSQL(owner: "postgres"), database) },
            damage: { sql in try await OwnThread.run { _ = try self.cluster.sql(sql, database: database) } })
    }

    private func open(_ url: String, _ isAlive: @escaping OwnerLiveness.IsAlive) async throws -> PostgresDatabase {
        let store = try await PostgresDatabase.open(url: url, isAlive: isAlive, time: .caller)
        stores.withLock { $0.append(store) }
        return store
    }

    func closeAll() throws {
        for store in stores.withLock({ $0 }) { try store.close() }
    }
}

extension PostgresCluster {
    /// Runs it as the cluster's administrator.
    func administer(_ sql: AdministratorSQL, _ database: String) async throws {
        try await OwnThread.run { _ = try self.sql(sql.text, database: database) }
    }
}
