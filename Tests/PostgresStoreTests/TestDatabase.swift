import Model
import PostgresStore
import TestSupport
import Testing

/// A database of its own in the cluster that all suites share, and connections to it; closed again at the end.
func withPool<Value: Sendable>(
    writers: Int = 1, readers: Int = 2, _ body: (PostgresPool) async throws -> Value
) async throws -> Value {
    let cluster = try await PostgresCluster.shared
    let database = try await cluster.makeDatabase()
    return try await withPool(cluster.url(database), writers: writers, readers: readers, body)
}

func withPool<Value: Sendable>(
    _ url: String, writers: Int = 1, readers: Int = 2, _ body: (PostgresPool) async throws -> Value
) async throws -> Value {
    let pool = PostgresPool(try PostgresAddress(url), writers: writers, readers: readers)
    do {
        let value = try await body(pool)
        await pool.close()
        return value
    } catch {
        await pool.close()
        throw error
    }
}

/// What a call throws, where it throws one of ours.
func postgresError(_ body: () async throws -> Void) async -> PostgresError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? PostgresError
    }
}

extension PostgresSession {
    /// The transaction may stand still for as long as its test needs. The server ends one that writes after ten seconds.
    func standStill() throws { try run("SET LOCAL idle_in_transaction_session_timeout = 0") }
}
