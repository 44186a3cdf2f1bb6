import GRDB
import Model
package import Store

/// An import of many devices.
///
/// Rows of devices are stored in sequence, but their tokens, installations and users have no order. Each new row
/// therefore changes a random page in three indexes. The larger the indexes are, the more each device costs.
///
/// The first load of a store therefore drops these indexes and creates them at the end, by sorting. The cost of
/// sorting per device hardly grows with their number. Until then, a filter in memory finds the devices that are
/// certainly new. The few other records are set aside. They are registered normally at the end, in their original
/// order.
///
///     undecided   -> loading (the store has no device, and the first batch is a large one) | plain
///     loading     -> plain (the end, too many set aside, or another process has created the indexes)
///     plain       each batch as ``DeviceRegistry/importDevices(_:now:dryRun:)`` does it
///
/// During the load, another caller that registers devices gets the error that the store is busy. The reason is that
/// only the indexes prevent duplicate tokens, and that a look-up would read all rows.
///
/// Every batch is a transaction. If the process exits during the load, the next process that opens the store for
/// writing creates the indexes; see ``DeferredIndexes``. Until then everything works, but finds devices slowly.
actor BulkImport: DeviceImport {
    /// The minimum size of the first batch. Smaller imports cost little either way.
    private static let firstBatchMin = 10_000
    /// The maximum number of records that are set aside in memory, because their devices may already be stored.
    private static let asideMax = 100_000

    private enum Phase {
        case undecided, plain
        /// - Parameter last: the id of the last device that this load has created.
        case loading(KeyFilter, last: Int64)
    }

    private let store: SQLiteFileStore
    private var phase = Phase.undecided
    private var aside: [DeviceRecord] = []

    init(_ store: SQLiteFileStore) {
        self.store = store
    }

    func register(_ records: [DeviceRecord], now: Timestamp) async throws -> ImportCounts {
        if case .undecided = phase { try await decide(records.count) }
        guard case .loading(let filter, let last) = phase else {
            return try await store.importDevices(records, now: now)
        }
        var fresh: [DeviceRecord] = []
        fresh.reserveCapacity(records.count)
        var later: [DeviceRecord] = []
        for record in records {
            if filter.add(record) { fresh.append(record) } else { later.append(record) }
        }
        let added = fresh
        let made: Int64? = try await store.writeImporting { db in
            // If another process has opened the store and created the indexes, other callers may have registered
            // devices.
            guard try Self.lastDevice(db) == last, try !DeferredIndexes(db).names().isEmpty else { return nil }
            var registration = try DeviceRegistration(db, now: now)
            for record in added { _ = try registration.insert(record) }
            try registration.finish()
            return try Self.lastDevice(db)
        }
        guard let made else {
            // These records may name devices that those callers have registered.
            var counts = try await finish(now: now)
            counts.add(try await store.importDevices(records, now: now))
            return counts
        }
        aside += later
        phase = .loading(filter, last: made)
        var counts = ImportCounts()
        counts.inserted = added.count
        if aside.count > Self.asideMax { counts.add(try await finish(now: now)) }
        return counts
    }

    var isPuttingOff: Bool { if case .loading = phase { true } else { false } }

    func finish(now: Timestamp) async throws -> ImportCounts {
        guard case .loading = phase else { return ImportCounts() }
        phase = .plain
        // Do this even if the import is cancelled. Until the indexes exist, the store is slow, and no other caller can
        // register a device.
        try await Task { [store] in try await store.makeDeferredIndexes() }.value
        let records = aside
        aside = []
        return records.isEmpty ? ImportCounts() : try await store.importDevices(records, now: now)
    }

    private func decide(_ count: Int) async throws {
        guard count >= Self.firstBatchMin else { return phase = .plain }
        let path = store.path
        let begun: Int64? = try await store.writeImporting { db in
            guard try Int.fetchOne(db, sql: "SELECT 1 FROM device LIMIT 1") == nil else { return nil }
            let indexes = DeferredIndexes(db)
            guard try indexes.names().isEmpty else { throw StoreError.busy(path: path) }
            try indexes.putOff()
            return try Self.lastDevice(db)
        }
        phase = begun.map { .loading(KeyFilter(), last: $0) } ?? .plain
    }

    private static func lastDevice(_ db: Database) throws -> Int64 {
        try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT seq FROM sqlite_sequence WHERE name = 'device'")) ?? 0
    }
}

/// The indexes of devices that a first load drops and creates later.
struct DeferredIndexes {
    private let db: Database

    init(_ db: Database) { self.db = db }

    func putOff() throws {
        try db.execute(
            sql: """
                INSERT OR IGNORE INTO put_off_index (name, sql)
                SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'device' AND sql IS NOT NULL
                """)
        for name in try names() { try db.execute(sql: "DROP INDEX \(name.quotedDatabaseIdentifier)") }
    }

    func names() throws -> [String] {
        try String.fetchAll(db.cachedStatement(sql: "SELECT name FROM put_off_index ORDER BY name"))
    }

    /// Creates the index. Does nothing if another process has created it.
    func make(_ name: String) throws {
        let sql = try String.fetchOne(
            db, sql: "SELECT sql FROM put_off_index WHERE name = :name", arguments: ["name": name])
        guard let sql else { return }
        try db.execute(sql: sql)
        try db.execute(sql: "DELETE FROM put_off_index WHERE name = :name", arguments: ["name": name])
    }
}

extension SQLiteFileStore {
    package func deviceImport() async throws -> any DeviceImport { BulkImport(self) }

    /// Creates each index in a separate transaction, so that other writers wait for one index at most.
    fileprivate func makeDeferredIndexes() async throws {
        for name in try await read(.short, { try DeferredIndexes($0).names() }) {
            try await writeImporting { try DeferredIndexes($0).make(name) }
        }
    }

    /// Creates the dropped indexes when the store is opened.
    static func makeDeferredIndexes(_ pool: DatabasePool, _ tell: (String) -> Void) throws {
        let (names, devices) = try pool.read { db in
            let names = try DeferredIndexes(db).names()
            // Devices of a first load have consecutive ids.
            return (names, names.isEmpty ? 0 : try Int.fetchOne(db, sql: "SELECT max(id) FROM device") ?? 0)
        }
        guard !names.isEmpty else { return }
        tell(
            "a first import of devices is running or was interrupted: building the \(names.count) indexes that it had "
                + "deferred for \(devices.grouped) devices so far; that takes some seconds for each million")
        for name in names { try pool.write { try DeferredIndexes($0).make(name) } }
    }
}

/// A Bloom filter that finds devices that are certainly new. It may treat a new device as known, but never a known
/// one as new. Among ten million keys, it treats about fifty new keys as known. Among fifty million keys, it treats
/// up to one new key in a hundred as known.
///
/// Used by one task.
final class KeyFilter {
    private static let bits = 1 << 29
    private static let probes = 4

    private var blocks = [UInt64](repeating: 0, count: bits / 64)

    /// Adds the token and the installation of a record. Returns `false` if one of them may have been added before.
    func add(_ record: DeviceRecord) -> Bool {
        var token = Hasher()
        token.combine(record.token.bytes)
        token.combine(record.environment.code)
        token.combine(record.topic)
        let isTokenNew = put(UInt64(bitPattern: Int64(token.finalize())))
        guard let name = record.installationID else { return isTokenNew }
        var installation = Hasher()
        installation.combine(name)
        installation.combine(record.topic)
        // Add both keys, whatever the result for the token.
        return put(UInt64(bitPattern: Int64(installation.finalize()))) && isTokenNew
    }

    private func put(_ hash: UInt64) -> Bool {
        var isNew = false
        var probe = hash
        for _ in 0..<Self.probes {
            let bit = Int(probe >> 35)
            let (word, mask) = (bit >> 6, UInt64(1) << UInt64(bit & 63))
            if blocks[word] & mask == 0 {
                isNew = true
                blocks[word] |= mask
            }
            probe = (probe ^ probe >> 31) &* 0x9e37_79b9_7f4a_7c15
        }
        return isNew
    }
}
