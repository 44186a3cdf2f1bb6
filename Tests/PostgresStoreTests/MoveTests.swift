import Campaigns
import Foundation
import Model
import SQLiteStore
import Store
import StoreContract
import Synchronization
import TestSupport
import Testing

@testable import PostgresStore

/// A store goes from SQLite to PostgreSQL and back with nothing lost, nothing changed, and never two of them in use.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct MoveTests {
    private static let moved = noon + .seconds(1000)

    /// Places of stores: a folder and a cluster.
    private struct Place {
        let folder: URL
        let cluster: PostgresCluster

        func path(_ name: String) -> String { folder.appending(path: "\(name).sqlite").path }

        func sqlite(_ name: String, _ access: StoreAccess) throws -> SQLiteFileStore {
            try SQLiteFileStore(path: path(name), access: access)
        }
    }

    private func withPlace(_ body: (Place) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(Place(folder: folder, cluster: try await PostgresCluster.shared))
    }

    private func filled(_ place: Place, devices: Int = 120, seed: UInt64 = 1) async throws {
        let store = try place.sqlite("old", .making)
        try await FilledStore.fill(store, devices: devices, seed: seed)
        try store.close()
    }

    /// In a task of its own, which alone is cancelled where `progress` cancels.
    @discardableResult
    private func move(
        _ old: any AllRoles, _ new: any AllRoles,
        _ progress: @escaping @Sendable (MoveStore.Progress) -> Void = { _ in }
    ) async throws -> MoveResult {
        try await Task {
            try await MoveStore(from: old, to: new, now: { Self.moved }).execute(by: "mover", progress: progress)
        }.value
    }

    private func proofs(_ store: any AllRoles) async throws -> [TableProof] {
        var proofs: [TableProof] = []
        for table in TransferTable.all { proofs.append(try await store.proof(of: table)) }
        return proofs
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `over and back every answer is the same`(seed: UInt64) async throws {
        try await withPlace { place in
            try await filled(place, devices: 150, seed: seed)
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let old = try place.sqlite("old", .departing)
            let arriving = try await PostgresDatabase.open(url: url, access: .arriving)
            let result = try await move(old, arriving)
            #expect(result.tables.allSatisfy { $0.rows > 0 }, "\(result.tables.filter { $0.rows == 0 }.map(\.name))")
            try arriving.close()
            let there = try await PostgresDatabase.open(url: url, access: .departing)
            let facts = try await StoreFacts.of(old)
            let factsThere = try await StoreFacts.of(there)
            for (before, after) in zip(facts, factsThere) where before != after {
                Issue.record("\(before)\nis now\n\(after)")
            }
            #expect(facts.count == factsThere.count && facts.count > 500)
            #expect(try await StoreFacts.faults(of: old) == [])
            #expect(try await StoreFacts.faults(of: there) == [])
            let numbers = try await old.highestNumbers()
            #expect(try await there.highestNumbers() == numbers)
            let before = try await proofs(old)
            let back = try place.sqlite("back", .arriving)
            try await move(there, back)
            try back.close()
            let returned = try place.sqlite("back", .writing)
            // The record has one event more: the second move.
            let event = TransferTable.event.name
            let after = try await proofs(returned)
            #expect(before.filter { $0.table != event } == after.filter { $0.table != event })
            let (rowsBefore, rowsAfter) = (before.map(\.rows).reduce(0, +), after.map(\.rows).reduce(0, +))
            #expect(rowsBefore + 1 == rowsAfter)
            #expect(try await StoreFacts.faults(of: returned) == [])
            #expect(try await returned.highestNumbers() == numbers)
            for store in [old, returned] { try store.close() }
            try there.close()
        }
    }

    /// A restore leaves a gap in the numbers, so that no number is given twice.
    @Test func `a store that was restored from a backup moves over and back`() async throws {
        try await withPlace { place in
            try await filled(place)
            let backedUp = try place.sqlite("old", .writing)
            _ = try await backedUp.backUp(to: place.path("restored"), overwriting: false)
            try backedUp.close()
            let restored = try place.sqlite("restored", .writing)
            #expect(restored.restored != nil)
            try restored.close()
            let old = try place.sqlite("restored", .departing)
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let arriving = try await PostgresDatabase.open(url: url, access: .arriving)
            try await move(old, arriving)
            try arriving.close()
            let there = try await PostgresDatabase.open(url: url, access: .departing)
            #expect(try await StoreFacts.faults(of: there) == [])
            #expect(try await there.highestNumbers() == old.highestNumbers())
            let gap = try #require(try await old.restoreGap())
            #expect(try await there.restoreGap() == gap)
            let back = try place.sqlite("back", .arriving)
            try await move(there, back)
            #expect(try await StoreFacts.faults(of: back) == [])
            #expect(try await back.restoreGap() == gap)
            for store in [old, back] { try store.close() }
            try there.close()
        }
    }

    @Test func `a run that waits goes on in the new store to its end, whatever was never leased`() async throws {
        try await withPlace { place in
            try await filled(place)
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let old = try place.sqlite("old", .departing)
            let arriving = try await PostgresDatabase.open(url: url, access: .arriving)
            try await move(old, arriving)
            let numbers = try await old.highestNumbers()
            try old.close()
            try arriving.close()
            let store = try await PostgresDatabase.open(url: url, access: .writing, time: .caller)
            let latest = try await store.latestRun(campaign: "running")
            let run = try #require(latest?.id)
            #expect(try await store.claim(run, by: "b", now: noon + .seconds(60)) == .claimed)
            for environment in PushEnvironment.allCases {
                var cursor: Int64 = 0
                while true {
                    let lease = try await store.lease(
                        run, after: cursor, now: noon + .seconds(61), owner: "b", environment: environment)
                    guard !lease.deliveries.isEmpty else { break }
                    cursor = lease.cursor
                    _ = try await store.settle(
                        run: run, lease.settlements(.accepted), now: noon + .seconds(62))
                }
            }
            try await store.release(run, by: "b", state: .finished, reason: nil, now: noon + .seconds(63))
            #expect(try await store.summary(run: run).pending == 0)
            let made = try await store.createRun(try definition("next"), occurrence: "n", now: noon, by: "a").run.id
            #expect(made == (numbers["run"] ?? 0) + 1)
            _ = try await store.importDevices([try record(9_999)], now: noon)
            let device = try await store.devices(matching: "install-9999")
            #expect(device.first?.id == (numbers["device"] ?? 0) + 1)
            #expect(try await StoreFacts.faults(of: store) == [])
            let capped = try #require(try await store.verify(budgets: [:])[CapLedgerCheck.name]?.compared)
            #expect(capped > 9)
            try await store.pool.write { db in _ = try db.execute("DELETE FROM cap_ledger WHERE kind = 0") }
            let lost = try #require(try await store.verify(budgets: [:])[CapLedgerCheck.name])
            #expect(lost.faultCount == capped)
            #expect(lost.faults.first?.what.hasSuffix("is not in the cap ledger") == true)
            try store.close()
        }
    }

    @Test func `a move that is cut short again and again ends as one that was not`() async throws {
        try await withPlace { place in
            try await filled(place)
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            var (attempts, rows) = (0, -1)
            while rows < 0 {
                let old = try place.sqlite("old", .departing)
                let new = try await PostgresDatabase.open(url: url, access: .arriving)
                let attempt = attempts
                let steps = Mutex(attempt % 3 + 1)
                do {
                    rows = try await move(old, new) { progress in
                        // Nothing is cut short twice in the reading at the end, which begins anew each time.
                        let mayCut = progress.phase == .copying || attempt % 2 == 0
                        let isLast = steps.withLock { left in
                            left -= 1
                            return left == 0
                        }
                        if isLast, mayCut, attempt < 60 { withUnsafeCurrentTask { $0?.cancel() } }
                    }.rows
                } catch is CancellationError {
                    attempts += 1
                }
                try old.close()
                try new.close()
            }
            #expect(attempts > 20)
            let old = try place.sqlite("old", .reading)
            let new = try await PostgresDatabase.open(url: url, access: .reading)
            #expect(try await proofs(old) == proofs(new))
            #expect(try await StoreFacts.faults(of: new) == [])
            try old.close()
            try new.close()
        }
    }

    @Test func `neither store is used during a move, and the old one never again`() async throws {
        try await withPlace { place in
            try await filled(place, devices: 30)
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let user = try place.sqlite("old", .writing)
            let old = try place.sqlite("old", .departing)
            let new = try await PostgresDatabase.open(url: url, access: .arriving)
            let there = new.path
            await #expect(throws: CancellationError.self) {
                try await move(old, new) { if $0.rows > 0 { withUnsafeCurrentTask { $0?.cancel() } } }
            }
            let moving = StoreError.moving(path: place.path("old"), to: there, since: Self.moved)
            #expect(throws: moving) { try place.sqlite("old", .writing) }
            await #expect(throws: moving) { _ = try await user.importDevices([try record(900)], now: noon) }
            for access in [StoreAccess.reading, .writing] {
                await #expect(throws: StoreError.arriving(path: there, from: place.path("old"))) {
                    _ = try await PostgresDatabase.open(url: url, access: access)
                }
            }
            let elsewhere = try place.sqlite("elsewhere", .arriving)
            await #expect(throws: moving) { try await move(old, elsewhere) }
            // Killed where the old store is closed for good and the new one is not open.
            try await move(old, new)
            let again = try await move(old, new)
            #expect(again.endedAt == Self.moved.iso8601)
            let left = StoreError.moved(path: place.path("old"), to: there, at: Self.moved)
            #expect(throws: left) { try place.sqlite("old", .writing) }
            await #expect(throws: left) { _ = try await user.importDevices([try record(901)], now: noon) }
            await #expect(throws: left) { try await MoveStore.giveUp(old) { _ in false } }
            await #expect(throws: left) { try await move(old, elsewhere) }
            let reading = try place.sqlite("old", .reading)
            #expect(reading.departed?.endedAt == Self.moved)
            #expect("\(left)".contains("put `store: \(there)` into the configuration"))
            for store in [user, old, elsewhere, reading] { try store.close() }
            try new.close()
        }
    }

    @Test func `a database that was left refuses whoever had it open`() async throws {
        try await withPlace { place in
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let user = try await PostgresDatabase.open(url: url)
            try await FilledStore.fill(user, devices: 30, seed: 4)
            let old = try await PostgresDatabase.open(url: url, access: .departing)
            let new = try place.sqlite("new", .arriving)
            await #expect(throws: CancellationError.self) {
                try await move(old, new) { if $0.rows > 0 { withUnsafeCurrentTask { $0?.cancel() } } }
            }
            await #expect(throws: StoreError.self) { _ = try await user.importDevices([try record(900)], now: noon) }
            // Reports that a daemon sets aside must not stay behind, either.
            for change in [
                "INSERT INTO waiting_feedback (received_at, events, packed) VALUES (1, 1, '')",
                "INSERT INTO waiting_merge (gone, kept) VALUES (1, 2)",
            ] {
                await #expect(throws: StoreError.self, "\(change)") {
                    try await user.write(.quick) { db in _ = try db.execute(.once(change)) }
                }
            }
            try await MoveStore.giveUp(old) { _ in false }
            _ = try await user.importDevices([try record(900)], now: noon)
            // What was begun there is of no use any more.
            await #expect(throws: Failure.self) { try await move(old, new) }
            let other = try place.sqlite("other", .arriving)
            try await move(old, other)
            await #expect(throws: StoreError.self) { _ = try await user.importDevices([try record(901)], now: noon) }
            await #expect(throws: StoreError.moved(path: old.path, to: other.path, at: Self.moved)) {
                _ = try await PostgresDatabase.open(url: url, access: .writing)
            }
            let reading = try await PostgresDatabase.open(url: url, access: .reading)
            #expect(reading.departed?.to == other.path)
            for store in [user, old, reading] { try store.close() }
            for store in [new, other] { try store.close() }
        }
    }

    @Test func `the old store is closed for good before the new one opens`() async throws {
        try await withPlace { place in
            try await filled(place, devices: 30)
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let old = try place.sqlite("old", .departing)
            let new = try await PostgresDatabase.open(url: url, access: .arriving)
            // As a process leaves it that is killed between the two.
            await #expect(throws: CancellationError.self) {
                try await move(old, new) { if $0.phase == .provingOld { withUnsafeCurrentTask { $0?.cancel() } } }
            }
            let begun = try await old.departure()
            try await old.endDeparture(try #require(begun), at: noon)
            #expect(throws: StoreError.moved(path: old.path, to: new.path, at: noon)) {
                try place.sqlite("old", .writing)
            }
            await #expect(throws: StoreError.arriving(path: new.path, from: old.path)) {
                _ = try await PostgresDatabase.open(url: url, access: .writing)
            }
            try await move(old, new)
            try await PostgresDatabase.open(url: url, access: .writing).close()
            try old.close()
            try new.close()
        }
    }

    @Test func `nothing is moved while something is in flight, somebody sends, or a place is taken`() async throws {
        try await withPlace { place in
            let old = try place.sqlite("old", .making)
            _ = try await old.importDevices([try record(1), try record(2)], now: noon)
            let run = try await old.startRun(try definition())
            let new = try place.sqlite("new", .arriving)
            await #expect(throws: StoreError.inUse(path: old.path, reason: "a has run 1")) { try await move(old, new) }
            let lease = try await old.lease(run, limit: 1)
            await #expect(throws: StoreError.inUse(path: old.path, reason: "run 1 has deliveries in flight")) {
                try await move(old, new)
            }
            _ = try await old.settle(run: run, lease.settlements(.accepted), now: noon)
            try await old.release(run, by: "a", state: .running, reason: nil, now: noon)
            #expect(try await old.becomeDaemon(owner: "d", now: noon) == nil)
            await #expect(throws: StoreError.inUse(path: old.path, reason: "d is the daemon; stop the daemon first")) {
                try await move(old, new)
            }
            try await old.resignDaemon(owner: "d")
            await #expect(throws: Failure.self) { try await move(old, old) }
            // Nothing of this was put on record, and the store is as usable as before.
            #expect(try await old.departure() == nil)
            try await move(old, new)
            try old.close()
            try new.close()
        }
    }

    @Test func `a row that is changed underway is found`() async throws {
        try await withPlace { place in
            try await filled(place, devices: 30)
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let old = try place.sqlite("old", .departing)
            let new = try await PostgresDatabase.open(url: url, access: .arriving)
            await #expect(throws: CancellationError.self) {
                try await move(old, new) { if $0.phase == .provingNew { withUnsafeCurrentTask { $0?.cancel() } } }
            }
            for (statement, words) in [
                ("UPDATE device SET model = 'x' WHERE id = 3", "device: equal numbers of rows, but different contents"),
                ("UPDATE run SET accepted = accepted + 1 WHERE id = 1", "run: different checksums of accepted"),
                ("DELETE FROM tag WHERE device_id = 4", "tag: "),
            ] {
                _ = try await new.write(.durable) { db in try db.run(statement) }
                let failure = await #expect(throws: Failure.self) { try await move(old, new) }
                #expect(failure?.messages.first?.contains(words) == true, "\(failure?.messages ?? [])")
            }
            #expect(try await old.departure()?.endedAt == nil)
            try old.close()
            try new.close()
        }
    }

    @Test func `a text that PostgreSQL cannot hold is named, and nothing is lost`() async throws {
        try await withPlace { place in
            let made = try place.sqlite("old", .making)
            _ = try await made.importDevices(
                [try record(1), try record(2) { $0.attributes = ["plan": "a\u{0}b"] }], now: noon)
            try made.close()
            let url = place.cluster.url(try await place.cluster.makeDatabase())
            let old = try place.sqlite("old", .departing)
            let new = try await PostgresDatabase.open(url: url, access: .arriving)
            let error = await #expect(throws: StoreError.self) { try await move(old, new) }
            guard case .notStorable(_, let row, let reason) = error else { return #expect(error == nil) }
            #expect(row == "the device of id 2" && reason.hasPrefix("its attributes holds a NUL character"))
            try await MoveStore.giveUp(old) { _ in false }
            _ = try await old.importDevices([try record(2) { $0.attributes = ["plan": "ab"] }], now: noon)
            let next = try await PostgresDatabase.open(
                url: place.cluster.url(try await place.cluster.makeDatabase()), access: .arriving)
            try await move(old, next)
            try old.close()
            for store in [new, next] { try store.close() }
        }
    }
}
