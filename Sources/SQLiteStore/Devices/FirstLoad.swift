import GRDB
import Model
package import Store

/// An import of many devices.
///
/// Rows of devices lie one behind the other, but their tokens, installations and users come in no order, so that each new
/// row changes a page anywhere in three indexes: the larger they are, the more each device costs. So the first load of a
/// store puts these indexes off and makes them at the end, by sorting, which costs the same for each device however many
/// there are. Until then a filter in memory tells devices that are new for certain; the others, few, are put aside and
/// registered at the end as any are, in the order they came in.
///
///     undecided   -> loading (the store has no device, and the first batch is a large one) | plain
///     loading     -> plain (the end, too many put aside, or somebody has made the indexes)
///     plain       each batch as ``DeviceRegistry/importDevices(_:now:dryRun:)`` does it
///
/// Meanwhile nobody else registers devices: without the indexes nothing would keep a token from being there twice, and each
/// look-up would read all rows. Whoever tries is told that the store is busy.
///
/// Every batch is a transaction, as ever. Where the process ends in the middle, whoever opens the store next for writing
/// makes the indexes, see ``PutOffIndexes``; until then everything works, and finds devices slowly.
actor FirstLoad: DeviceImport {
    /// Smaller ones cost little either way.
    private static let firstBatchMin = 10_000
    /// Records kept in memory, of those that may be about a device met before.
    private static let asideMax = 100_000

    private enum Phase {
        case undecided, plain
        /// - Parameter last: the id of the last device that this load has made.
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
            // Somebody has opened the store and made them: from here on others may register devices.
            guard try Self.lastDevice(db) == last, try !PutOffIndexes(db).names().isEmpty else { return nil }
            var registration = try DeviceRegistration(db, now: now)
            for record in added { _ = try registration.insert(record) }
            try registration.finish()
            return try Self.lastDevice(db)
        }
        guard let made else {
            // Theirs may be among these.
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
        // Also when the import is cancelled: without them everything is slow, and nobody else can register a device.
        try await Task { [store] in try await store.makePutOffIndexes() }.value
        let records = aside
        aside = []
        return records.isEmpty ? ImportCounts() : try await store.importDevices(records, now: now)
    }

    private func decide(_ count: Int) async throws {
        guard count >= Self.firstBatchMin else { return phase = .plain }
        let path = store.path
        let begun: Int64? = try await store.writeImporting { db in
            guard try Int.fetchOne(db, sql: "SELECT 1 FROM device LIMIT 1") == nil else { return nil }
            let indexes = PutOffIndexes(db)
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

/// The indexes of devices that a first load does without.
struct PutOffIndexes {
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

    /// Does nothing where somebody else has made it.
    func make(_ name: String) throws {
        let sql = try String.fetchOne(
            db, sql: "SELECT sql FROM put_off_index WHERE name = :name", arguments: ["name": name])
        guard let sql else { return }
        try db.execute(sql: sql)
        try db.execute(sql: "DELETE FROM put_off_index WHERE name = :name", arguments: ["name": name])
    }
}

extension SQLiteFileStore {
    package func deviceImport() async throws -> any DeviceImport { FirstLoad(self) }

    /// Each in a transaction of its own, since others wait meanwhile.
    fileprivate func makePutOffIndexes() async throws {
        for name in try await read(.short, { try PutOffIndexes($0).names() }) {
            try await writeImporting { try PutOffIndexes($0).make(name) }
        }
    }

    /// When the store is opened.
    static func makePutOffIndexes(_ pool: DatabasePool, _ tell: (String) -> Void) throws {
        let (names, devices) = try pool.read { db in
            let names = try PutOffIndexes(db).names()
            // Devices of a first load have their numbers in a row.
            return (names, names.isEmpty ? 0 : try Int.fetchOne(db, sql: "SELECT max(id) FROM device") ?? 0)
        }
        guard !names.isEmpty else { return }
        tell(
            "a first import of devices is under way, or was cut short: making the \(names.count) indexes that it had put "
                + "off, of \(devices.grouped) devices so far; that takes some seconds for each million")
        for name in names { try pool.write { try PutOffIndexes($0).make(name) } }
    }
}

/// Tells a device that was not met before from one that may have been: never wrong about the first (a Bloom filter).
/// Of ten million devices it takes some hundred for known that are not, of fifty million one in a hundred.
///
/// Used by one task.
final class KeyFilter {
    private static let bits = 1 << 29
    private static let probes = 4

    private var words = [UInt64](repeating: 0, count: bits / 64)

    /// Puts down the token and the installation of a record; false: one of them may have been put down before.
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
        // Both are put down, whatever the first one says.
        return put(UInt64(bitPattern: Int64(installation.finalize()))) && isTokenNew
    }

    private func put(_ hash: UInt64) -> Bool {
        var isNew = false
        var probe = hash
        for _ in 0..<Self.probes {
            let bit = Int(probe >> 35)
            let (word, mask) = (bit >> 6, UInt64(1) << UInt64(bit & 63))
            if words[word] & mask == 0 {
                isNew = true
                words[word] |= mask
            }
            probe = (probe ^ probe >> 31) &* 0x9e37_79b9_7f4a_7c15
        }
        return isNew
    }
}
