import GRDB
import Synchronization

/// Another program that holds the store's write lock.
final class WriteLock: Sendable {
    private let connection: Mutex<DatabaseQueue?> = Mutex(nil)
    private let path: String

    init(_ path: String) { self.path = path }

    func take() throws {
        var configuration = GRDB.Configuration()
        configuration.busyMode = .timeout(30)
        configuration.allowsUnsafeTransactions = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE") }
        connection.withLock { $0 = queue }
    }

    func release() throws {
        let queue = connection.withLock { $0.take() }
        try queue?.inDatabase { try $0.execute(sql: "ROLLBACK") }
        try queue?.close()
    }
}
