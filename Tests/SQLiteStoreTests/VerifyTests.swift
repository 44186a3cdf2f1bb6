import Foundation
import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

/// A real store with work behind it and work in flight, and one promise broken by hand at a time.
@Suite(.timeLimit(.minutes(10)))
struct VerifyTests {
    static let budget = Model.Configuration.SilentBudget()

    /// Run 1 has a lease in flight; run 2 is background, with one lease settled and one in flight; run 3 is finished; run 4
    /// is under a frequency cap, with one lease settled and one in flight.
    private func withBusyStore(_ body: (SQLiteFileStore) async throws -> Void) async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...40).map { try record($0) }, now: noon)
            _ = try await store.importDevices(
                [try record(101, installation: "install-40") { $0.registeredAt = noon }], now: noon)
            let segment = try await store.importSegment("fans", mode: .add)
            _ = try await segment.append((1...5).map { .installation("install-\($0)") })
            _ = try await segment.commit(now: noon)
            let alert = try await store.startRun(try definition())
            try await settle(try await store.lease(alert, limit: 10), of: alert, .accepted, store)
            _ = try await store.lease(alert, limit: 5)
            let silent = try await store.startRun(try definition("refresh", pushType: .background))
            for isSettled in [true, false] {
                let lease = try await store.lease(
                    LeaseRequest(
                        run: silent, environment: .production, limit: 7, now: noon, owner: "a",
                        silentBudget: Self.budget))
                if isSettled { try await settle(lease, of: silent, .accepted, store) }
            }
            let done = try await store.startRun(try definition("done") { $0.holdoutPercent = 20 })
            let half = try await store.lease(done, limit: 5)
            try await settle(half, of: done, .rejected, status: 410, gone: noon, store)
            try await settle(try await store.lease(done), of: done, .accepted, store)
            try await store.release(done, by: "a", state: .finished, reason: nil, now: noon)
            try await store.summarizeOutcomes(run: done)
            let capped = try await store.startRun(try definition("capped"))
            let cap = [FrequencyCap(limit: 1, window: .seconds(3600))]
            try await settle(try await store.capped(capped, cap, limit: 6), of: capped, .accepted, store)
            _ = try await store.capped(capped, cap, limit: 2)
            try await body(store)
        }
    }

    private func settle(
        _ lease: Lease, of run: Int64, _ verdict: Settlement.Verdict, status: Int = 200, gone: Timestamp? = nil,
        _ store: SQLiteFileStore
    ) async throws {
        let effect = gone.map { Settlement.DeviceEffect.gone(since: $0) } ?? .none
        let reason = status == 200 ? nil : "Unregistered"
        _ = try await store.settleAndMark(
            run: run, lease.settlements(verdict, status: status, reason: reason, effect: effect), now: noon)
    }

    @Test func `a store at work is sound, read from outside as well`() async throws {
        try await withBusyStore { store in
            let sound = try await store.verify(budgets: [wendercast: Self.budget])
            #expect(sound.isSound, "\(sound.checks.filter { $0.faultCount > 0 })")
            #expect(sound.checks.count > 15)
            #expect(sound["silent_ledger"]?.compared == 7)
            #expect(sound["frequency_caps"]?.compared == 8)
            #expect(sound["cap_ledger"]?.compared == 6)
            let reader = try SQLiteFileStore(path: store.path, access: .reading)
            let seen = try await reader.verify(budgets: [wendercast: Self.budget])
            #expect(seen == sound)
            try reader.close()
        }
    }

    @Test func `a store without a run is sound, also with something on record`() async throws {
        try await withStore { store in
            try await store.recordEvent(kind: .devicesImported, run: nil, actor: "test", detail: "", now: noon)
            let found = try await store.verify(budgets: [:])
            #expect(found.isSound, "\(found.checks.filter { $0.faultCount > 0 })")
        }
    }

    @Test(arguments: [
        ("replace(definition, '\"pushType\"', '\"pushKind\"')", "campaign.pushType is missing"),
        ("replace(definition, '\"pushType\":\"alert\"', '\"pushType\":\"alarm\"')", "campaign.pushType is not known"),
        ("replace(definition, '\"pushType\":\"alert\"', '\"pushType\":[1]')", "campaign.pushType has the wrong type"),
        ("'{'", "it is not JSON"),
    ])
    func `a definition that cannot be read is said in words`(value: String, words: String) async throws {
        try await withBusyStore { store in
            try await store.pool.write { try $0.execute(sql: "UPDATE run SET definition = \(value) WHERE id = 1") }
            let faults = try await store.verify(budgets: [:]).checks.flatMap(\.faults).map(\.what)
            #expect(faults.contains { $0.contains("run 1 cannot be read") && $0.contains(words) }, "\(faults)")
            for type in ["Error", "CodingKey", "PushType", "RunDefinition", "Swift", "Optional("] {
                #expect(!faults.contains { $0.contains(type) }, "\(faults)")
            }
        }
    }

    /// What is done by hand, and the promise that must be named.
    static let corruptions: [(check: String, sql: String)] = [
        ("sums", "UPDATE run SET accepted = accepted + 1 WHERE id = 3"),
        ("sums", "UPDATE run SET accepted = accepted - 1, unknown = unknown + 1 WHERE id = 3"),
        ("sums", "DELETE FROM delivery WHERE run_id = 3 AND device_id = 8"),
        ("sums", "UPDATE delivery SET state = 1, status = 200, attempt = 1 WHERE run_id = 1 AND device_id = 30"),
        ("sums", "UPDATE run SET definition = replace(definition, 'com.example', 'org.example') WHERE id = 1"),
        ("sums", "UPDATE run SET definition = '{' WHERE id = 1"),
        (
            "silent_budget",
            """
            INSERT INTO silent_ledger (device_id, run_id, lease_number, reserved_at, settled_at)
            SELECT 1, 2, value, 1800000000000 + value, 1800000000000 + value
            FROM (SELECT 2 AS value UNION SELECT 3 UNION SELECT 4)
            """
        ),
        ("silent_ledger", "DELETE FROM silent_ledger WHERE device_id = 1"),
        ("silent_ledger", "UPDATE silent_ledger SET settled_at = NULL WHERE device_id = 2"),
        // What is read out of the definition by key is not found: there seems to be no background run at all.
        (
            "silent_ledger",
            """
            UPDATE run SET definition = replace(definition, '"pushType":"background"', '"pushKind":"background"')
            WHERE id = 2
            """
        ),
        ("cap_ledger", "DELETE FROM cap_ledger"),
        ("cap_ledger", "UPDATE cap_ledger SET pushes = substr(pushes, 49)"),
        ("cap_ledger", "DELETE FROM cap_rule"),
        ("frequency_caps", "DELETE FROM cap_rule"),
        ("frequency_caps", "UPDATE lease SET is_capped = 0"),
        (
            "budget_slots",
            "UPDATE delivery SET attempt = 0, state = 4, reason = 'expired' WHERE run_id = 2 AND device_id = 1"
        ),
        ("deliveries", "UPDATE delivery SET leases = 1, attempt = 3 WHERE run_id = 3 AND state = 1"),
        ("deliveries", "UPDATE delivery SET excused = attempt + 1 WHERE run_id = 3 AND state = 1"),
        ("leases", "UPDATE delivery SET leases = leases + 1 WHERE run_id = 1 AND device_id = 12"),
        ("accepted_once", "UPDATE delivery SET state = 1, status = 200 WHERE run_id = 1 AND device_id = 12"),
        (
            "accepted_once",
            """
            INSERT INTO lease (run_id, owner, leased_at, environment, open, unproven, is_silent, fresh_until, entries)
            SELECT run_id, owner, leased_at, environment, open, unproven, is_silent, fresh_until, entries
            FROM lease WHERE run_id = 1
            """
        ),
        ("leases", "UPDATE run SET owner = NULL WHERE id = 1"),
        ("leases", "UPDATE lease SET owner = 'ghost' WHERE run_id = 1"),
        ("leases", "UPDATE lease SET open = open + 1 WHERE run_id = 1"),
        ("leases", "UPDATE lease SET entries = substr(entries, 1, 40) WHERE run_id = 1"),
        ("leases", "UPDATE run SET finished_at = 1800000000000 WHERE id = 1"),
        ("orphans", "UPDATE lease SET run_id = 99 WHERE run_id = 1"),
        ("orphans", "UPDATE delivery SET run_id = 99 WHERE run_id = 3 AND device_id = 8"),
        ("foreign_keys", "INSERT INTO tag (device_id, name) VALUES (999, 'vip')"),
        ("foreign_keys", "UPDATE device SET topic_id = 77 WHERE id = 9"),
        (
            "tokens",
            "DROP INDEX device_token; UPDATE device SET token = (SELECT token FROM device WHERE id = 6) WHERE id = 7"
        ),
        (
            "installations",
            "DROP INDEX device_installation; UPDATE device SET installation_id = 'install-6' WHERE id = 7"
        ),
        ("schema", "DROP INDEX device_token"),
        ("schema", "CREATE TRIGGER theirs AFTER INSERT ON tag BEGIN DELETE FROM tag; END"),
        ("device_status", "UPDATE device SET registered_at = status_at + 1 WHERE status = 2"),
        ("device_status", "UPDATE device SET status = 1, status_at = NULL WHERE id = 20"),
        ("token_history", "UPDATE device SET token_generation = 1 WHERE id = 40"),
        ("token_history", "INSERT INTO proven_token (device_id, token_generation) VALUES (8, 7)"),
        ("token_history", "INSERT INTO proven_token (device_id, token_generation) VALUES (999, 2)"),
        ("token_history", "INSERT INTO proven_first (block, bits) VALUES (7, 1)"),
        ("token_history", "UPDATE proven_first SET bits = bits | 1 << 41 WHERE block = 0"),
        ("token_history", "UPDATE proven_first SET bits = bits | 1 << 63 WHERE block = 0"),
        ("segments", "UPDATE segment SET members = 4"),
        ("run_states", "UPDATE run SET state = 'asleep' WHERE id = 1"),
        ("run_states", "UPDATE run SET state = 'finished' WHERE id = 1"),
        ("run_states", "UPDATE run SET finished_at = NULL WHERE id = 3"),
        ("deliveries", "UPDATE delivery SET status = 0 WHERE run_id = 3 AND state = 1"),
        ("deliveries", "UPDATE delivery SET reason = 'forgotten' WHERE run_id = 3 AND state = 4"),
        ("deliveries", "UPDATE delivery SET doubts = 2 WHERE run_id = 3 AND device_id = 3"),
        ("deliveries", "UPDATE delivery SET not_before = 1 WHERE run_id = 3 AND state = 1"),
        ("run_states", "UPDATE run SET state = 'running' WHERE id = 3"),
        ("recorded_states", "UPDATE run SET state = 'running', finished_at = NULL WHERE id = 3"),
        ("recorded_states", "UPDATE run SET state = 'paused' WHERE id = 1"),
        ("values", "PRAGMA ignore_check_constraints = ON; UPDATE device SET environment = 7 WHERE id = 6"),
        ("values", "PRAGMA ignore_check_constraints = ON; UPDATE device SET token = x'00' WHERE id = 6"),
        ("badges", "UPDATE device SET badge = -1 WHERE id = 6"),
        ("events", "DELETE FROM event WHERE id = 3"),
        ("events", "DELETE FROM event WHERE id = (SELECT max(id) FROM event)"),
        ("events", "UPDATE event SET actor = 'nobody' WHERE id = 2"),
        ("events", "INSERT INTO event (at, kind, actor, detail) VALUES (1800000000000, 'run_paused', 'amy', '')"),
        ("proven_tokens", "UPDATE proven_first SET bits = bits & ~(1 << 8) WHERE block = 0"),
        ("proven_tokens", "DELETE FROM proven_first"),
        // A rejected delivery and an accepted one change places: every count stays as it was.
        (
            "sums",
            """
            CREATE TEMP TABLE swap AS SELECT
                (SELECT min(device_id) FROM delivery WHERE run_id = 3 AND state = 2) AS refused,
                (SELECT min(device_id) FROM delivery WHERE run_id = 3 AND state = 1) AS taken;
            UPDATE delivery SET device_id = -1 WHERE run_id = 3 AND device_id = (SELECT refused FROM swap);
            UPDATE delivery SET device_id = (SELECT refused FROM swap)
            WHERE run_id = 3 AND device_id = (SELECT taken FROM swap);
            UPDATE delivery SET device_id = (SELECT taken FROM swap) WHERE run_id = 3 AND device_id = -1
            """
        ),
        (
            "ledger_times",
            """
            UPDATE silent_ledger SET reserved_at = reserved_at - 7200000, settled_at = settled_at - 7200000
            WHERE device_id = 1
            """
        ),
        (
            "ledger_times",
            """
            UPDATE silent_ledger SET reserved_at = reserved_at + 7200000, settled_at = settled_at + 7200000
            WHERE device_id = 1
            """
        ),
        ("ledger_times", "UPDATE silent_ledger SET settled_at = settled_at + 7200000 WHERE device_id = 1"),
        // Only its beginning: what the budget was judged by, before there was a run.
        ("ledger_times", "UPDATE silent_ledger SET reserved_at = reserved_at - 7200000 WHERE device_id = 1"),
        ("deliveries", "UPDATE delivery SET device_id = 5000 WHERE run_id = 3 AND device_id = 8"),
    ]

    @Test(arguments: corruptions.indices)
    func `a broken promise is found by name`(index: Int) async throws {
        let corruption = Self.corruptions[index]
        try await withBusyStore { store in
            try await store.pool.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA foreign_keys = OFF")
                try db.execute(sql: corruption.sql)
            }
            let found = try await store.verify(budgets: [wendercast: Self.budget])
            let check = try #require(found[corruption.check])
            #expect(check.faultCount > 0, "\(corruption.sql): \(found.checks.filter { $0.faultCount > 0 })")
        }
    }

    @Test(arguments: [
        ("run_states", "UPDATE run SET state = 'running' WHERE id = 3", "it is running, and was over at "),
        ("ledger_times", "UPDATE silent_ledger SET settled_at = settled_at + 7200000 WHERE device_id = 1", " from "),
        (
            "device_status", "UPDATE device SET registered_at = status_at + 1 WHERE status = 2",
            "the device was registered at "
        ),
    ])
    func `what is said of a fault has times as people read them`(
        check: String, sql: String, before: String
    ) async throws {
        try await withBusyStore { store in
            try await store.pool.write { try $0.execute(sql: sql) }
            let found = try await store.verify(budgets: [wendercast: Self.budget])
            let what = try #require(found[check]?.faults.first?.what)
            let rest = try #require(what.split(separator: before, maxSplits: 1).last)
            #expect(rest.prefixMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil, "\(what)")
        }
    }

    @Test func `a writer that comes in the middle is told, and is no fault of the store`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let made = try SQLiteFileStore(path: path)
            _ = try await made.startRun(try definition())
            try made.close()
            // Whoever writes and closes last takes the log into the file.
            let last = try DatabaseQueue(path: path)
            try await last.write { try $0.execute(sql: "UPDATE run SET heartbeat_at = 0") }
            try last.close()
            let reader = try SQLiteFileStore(path: path, access: .reading)
            let hasWritten = Flag()
            // One of the checks asks for it: it stands for the moment in which somebody writes.
            let function = DatabaseFunction("json_extract", argumentCount: 2) { _ in
                guard !hasWritten.isUp else { return nil }
                hasWritten.raise()
                let writer = try DatabaseQueue(path: path)
                try writer.write { try $0.execute(sql: "UPDATE run SET heartbeat_at = 1") }
                try writer.close()
                return nil
            }
            try await reader.pool.read { $0.add(function: function) }
            await #expect(throws: StoreError.changedMeanwhile(path: path)) {
                try await reader.verify(budgets: [:])
            }
            #expect(hasWritten.isUp)
            try reader.close()
        }
    }

    @Test func `a slot that an answer made longer after a recovery is no fault`() async throws {
        try await withBusyStore { store in
            try await store.recordEvent(kind: .runRecovered, run: 2, actor: "b", detail: "", now: noon)
            try await store.pool.write {
                try $0.execute(sql: "UPDATE silent_ledger SET settled_at = settled_at + 7200000 WHERE device_id = 1")
            }
            let found = try await store.verify(budgets: [wendercast: Self.budget])
            #expect(found.isSound, "\(found.checks.filter { $0.faultCount > 0 })")
        }
    }

    @Test func `a page of the file overwritten is found as damage`() async throws {
        try await withFolder { folder in
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path)
            _ = try await store.importDevices(try (1...2_000).map { try record($0) }, now: noon)
            let page = try await store.read {
                try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_schema WHERE name = 'device_token'")
            }
            _ = try await store.pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try store.close()
            let file = try FileHandle(forUpdating: URL(filePath: path))
            try file.seek(toOffset: UInt64((try #require(page) - 1) * 4096))
            try file.write(contentsOf: Data(repeating: 0x5A, count: 4096))
            try file.close()
            let damaged = try SQLiteFileStore(path: path, access: .reading)
            let found = try await damaged.verify(budgets: [:])
            #expect(found["structure"]?.faultCount ?? 0 > 0)
            #expect(found["sums"]?.faultCount == 0)
            try damaged.close()
        }
    }

    @Test func `all faults are counted, some are listed, with the end of the token only`() async throws {
        try await withBusyStore { store in
            try await store.pool.write { db in
                try db.execute(sql: "UPDATE delivery SET status = 0 WHERE run_id = 3 AND state = 1")
            }
            let check = try #require(try await store.verify(budgets: [:], faultsMax: 3)["deliveries"])
            #expect(check.faults.count == 3)
            #expect(check.faultCount > 20)
            #expect(check.faults.allSatisfy { $0.tokenEnd?.count == 8 })
        }
    }
}
