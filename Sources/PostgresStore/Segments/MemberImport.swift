import Model
import Store
import Synchronization
import RelationalStore

/// An import of members in progress. Its changes become visible together, at ``commit(now:)``.
///
/// The devices are collected in memory and vanish with the import. A temporary table would not work, because behind
/// a pooler no connection belongs to one client. Only one task at a time may use an import.
final class MemberImport: SegmentImport {
    private let store: PostgresDatabase
    private let name: String
    private let mode: SegmentImportMode
    private let topic: String?
    private let gathered = Mutex(Gathered())

    private struct Gathered {
        var counts = SegmentImportCounts()
        var devices = DeviceSet()
    }

    init(store: PostgresDatabase, name: String, mode: SegmentImportMode, topic: String?) {
        self.store = store
        self.name = name
        self.mode = mode
        self.topic = topic
    }

    package func append(_ keys: [SegmentMemberKey]) async throws {
        let topic = topic
        let (devices, matched) = try await store.read { db in try MemberKeys(db, topic: topic).devices(keys) }
        gathered.withLock { gathered in
            for device in devices { gathered.devices.insert(device) }
            gathered.counts.read += keys.count
            gathered.counts.unmatched += keys.count - matched
        }
    }

    /// Applies the change in one transaction.
    package func commit(
        now: Timestamp, event: (@Sendable (SegmentImportCounts) -> SegmentEvent)?
    ) async throws -> SegmentImportCounts {
        let (name, mode) = (name, mode)
        let (devices, counts) = gathered.withLock { ($0.devices, $0.counts) }
        return try await store.write(.quick.within(.seconds(3600))) { db in
            let catalog = SegmentCatalog(db)
            let segment = mode == .remove ? try catalog.requireStatic(name) : try catalog.make(name, now: now)
            let members = SegmentMembers(db, segment)
            try members.begin(now: now)
            let counts = try members.change(mode, devices, counts)
            if let event = event?(counts) { try db.record(.segmentChanged, by: event.actor, event.detail, now: now) }
            return counts
        }
    }
}

/// Finds the devices that the keys of an import name.
private struct MemberKeys {
    private let db: PostgresSession
    private let topic: String?

    init(_ db: PostgresSession, topic: String?) {
        self.db = db
        self.topic = topic
    }

    /// Returns the devices of the keys, and the number of keys that have one.
    func devices(_ keys: [SegmentMemberKey]) throws -> (devices: [Int64], matched: Int) {
        var (installations, users, tokens): ([String], [String], [[UInt8]]) = ([], [], [])
        for key in keys {
            switch key {
            case .installation(let id) where StorableText.isWhole(id): installations.append(id)
            case .user(let id) where StorableText.isWhole(id): users.append(id)
            case .token(let token): tokens.append(token.bytes)
            // No device has such an id, because it contains a NUL.
            case .installation, .user: break
            }
        }
        let found = [
            try find("installation_id", "text", installations), try find("user_id", "text", users),
            try find("token", "bytea", tokens),
        ]
        return (found.flatMap(\.devices), found.reduce(0) { $0 + $1.matched })
    }

    private func find<Key: PostgresElement>(
        _ column: String, _ type: String, _ keys: [Key]
    ) throws -> (devices: [Int64], matched: Int) {
        guard !keys.isEmpty else { return ([], 0) }
        var devices: [Int64] = []
        var matched: Set<Int64> = []
        let rows = try db.rows(
            """
            SELECT given.number, found.id FROM unnest($1::\(type)[]) WITH ORDINALITY AS given (key, number),
                LATERAL (
                    SELECT id FROM device
                    WHERE \(column) = given.key
                        AND ($2::text IS NULL OR topic_id = (SELECT id FROM topic WHERE name = $2))
                    OFFSET 0
                ) AS found
            """, keys, topic)
        for row in rows {
            matched.insert(try row.int64(0))
            devices.append(try row.int64(1))
        }
        return (devices, matched.count)
    }
}

/// Changes the members of a static segment.
private struct SegmentMembers {
    private static let batchRows = 50_000

    private let db: PostgresSession
    private let segment: Int64

    init(_ db: PostgresSession, _ segment: Int64) {
        self.db = db
        self.segment = segment
    }

    /// Locks the segment. Until the transaction ends, no other transaction changes the segment or deletes a device.
    func begin(now: Timestamp) throws {
        try db.execute("UPDATE segment SET updated_at = $2 WHERE id = $1", segment, now)
    }

    /// - Parameter counts: the counts so far.
    func change(
        _ mode: SegmentImportMode, _ devices: DeviceSet, _ counts: SegmentImportCounts
    ) throws -> SegmentImportCounts {
        var counts = counts
        var (joining, leaving) = (devices, DeviceSet())
        try db.each("SELECT device_id FROM segment_member WHERE segment_id = $1", segment) { row in
            let member = try row.int64(0)
            let isGiven = devices.contains(member)
            if isGiven { joining.remove(member) }
            if mode == .remove ? isGiven : mode == .replace && !isGiven { leaving.insert(member) }
        }
        if mode != .remove {
            counts.alreadyIn = devices.count - joining.count
            counts.added = try join(joining)
        }
        counts.removed = try removeMembers(leaving)
        let members = try db.first(
            """
            UPDATE segment SET members = counted.members, members_digest = counted.members || ' ' || counted.hash
            FROM (
                SELECT count(*) AS members, encode(
                    sha256(coalesce(string_agg(int8send(device_id), ''::bytea ORDER BY device_id), '')), 'hex') AS hash
                FROM segment_member WHERE segment_id = $1
            ) AS counted
            WHERE id = $1 RETURNING segment.members
            """, segment
        ) { try $0.int(0) }
        if mode == .remove { counts.alreadyIn = members ?? 0 }
        return counts
    }

    /// Adds the devices that are still stored.
    private func join(_ devices: DeviceSet) throws -> Int {
        var count = 0
        try devices.forEachBatch(of: Self.batchRows) { batch in
            count += try db.execute(
                "INSERT INTO segment_member (segment_id, device_id) SELECT $1, id FROM device WHERE id = ANY ($2)",
                segment, batch)
        }
        return count
    }

    private func removeMembers(_ devices: DeviceSet) throws -> Int {
        var count = 0
        try devices.forEachBatch(of: Self.batchRows) { batch in
            count += try db.execute(
                "DELETE FROM segment_member WHERE segment_id = $1 AND device_id = ANY ($2)", segment, batch)
        }
        return count
    }
}
