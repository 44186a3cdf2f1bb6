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
            await opened.giveBack()
        } catch {
            try opened.closeAll()
            throw error
        }
    }
}

/// Empty stores. Their tables take longer to make than to copy, and longer to copy than to empty.
private actor EmptyStores {
    static let shared = EmptyStores()

    private let template = Task {
        let cluster = try await PostgresCluster.shared
        let database = try await cluster.makeDatabase()
        try await PostgresDatabase.open(url: cluster.url(database)).close()
        try await OwnThread.run { _ = try cluster.sql(restoration, database: database) }
        return database
    }
    private var used: [String] = []

    /// Returns a database with an empty store. Each has its own namespace.
    func take(in cluster: PostgresCluster) async throws -> String {
        let earlier = used.popLast()
        let database: String
        if let earlier {
            database = earlier
        } else {
            database = try await cluster.makeDatabase(template: try await template.value)
        }
        try await withPool(cluster.url(database), readers: 1) { pool in
            try await pool.session { db in
                if earlier != nil { try db.run("SELECT pristine.restore()") }
                try db.run("UPDATE meta SET value = uuid_send(gen_random_uuid()) WHERE key = 'namespace'")
            }
        }
        return database
    }

    /// Keeps a database for a later promise. Its store has the tables, rights and settings of an empty one.
    func give(_ database: String) { used.append(database) }

    /// Makes a copy of all rows, and a function that restores the rows and sequences and drops what was added.
    private static let restoration = """
        CREATE SCHEMA pristine;
        CREATE TABLE pristine.relation AS
            SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r';
        CREATE TABLE pristine.sequence AS
            SELECT sequencename, coalesce(last_value, start_value) AS value, last_value IS NOT NULL AS is_called
            FROM pg_sequences WHERE schemaname = 'public';
        DO $$
        DECLARE name text;
        BEGIN
            FOR name IN SELECT relname FROM pristine.relation LOOP
                EXECUTE format('CREATE TABLE pristine.%I AS TABLE public.%I', 'of_' || name, name);
            END LOOP;
        END $$;
        CREATE FUNCTION pristine.restore() RETURNS void LANGUAGE plpgsql AS $$
        DECLARE name text;
        BEGIN
            -- Neither the order of tables nor their triggers matter.
            SET LOCAL session_replication_role = replica;
            FOR name IN
                SELECT relname FROM pg_class
                WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
                    AND relname NOT IN (SELECT relname FROM pristine.relation)
            LOOP
                EXECUTE format('DROP TABLE public.%I', name);
            END LOOP;
            FOR name IN SELECT relname FROM pristine.relation LOOP
                EXECUTE format('DELETE FROM public.%I', name);
                EXECUTE format('INSERT INTO public.%I OVERRIDING SYSTEM VALUE TABLE pristine.%I', name, 'of_' || name);
            END LOOP;
            PERFORM setval(format('public.%I', sequencename)::regclass, value, is_called) FROM pristine.sequence;
        END $$;
        """
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
    /// The databases whose tables and rights are still those of an empty store.
    private let clean = Mutex<Set<String>>([])

    init(_ cluster: PostgresCluster) { self.cluster = cluster }

    func store() async throws -> StoreUnderTest {
        let database = try await EmptyStores.shared.take(in: cluster)
        _ = clean.withLock { $0.insert(database) }
        let url = cluster.url(database)
        // A process that dies leaves the database as it is at that moment: whoever opens it finds just that.
        return StoreUnderTest(
            open: { isAlive in try await self.open(url, isAlive) },
            openAfterCrash: { isAlive in try await self.open(url, isAlive) },
            another: { try await self.store() },
            admitAnalysts: {
                self.markChanged(database)
                try await self.cluster.administer(AdministratorSQL(owner: "postgres"), database)
            },
            damage: { sql in
                self.markChanged(database)
                try await OwnThread.run { _ = try self.cluster.sql(sql, database: database) }
            })
    }

    private func markChanged(_ database: String) { _ = clean.withLock { $0.remove(database) } }

    /// Once all stores are closed.
    func giveBack() async {
        for database in clean.withLock({ $0 }) { await EmptyStores.shared.give(database) }
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
