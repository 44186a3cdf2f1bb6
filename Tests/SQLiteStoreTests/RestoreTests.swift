import Foundation
import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

/// A backup that takes the place of a store: what is open in it may have gone out since.
struct RestoreTests {
    private func news() -> RunDefinition {
        RunDefinition(
            campaign: Campaign(name: "news", topic: "com.example.a", pushType: .alert, template: "t"),
            template: Template(name: "t"), variables: [:], plannedAt: noon)
    }

    /// Runs 1 to 5: scheduled, running, paused by a person, paused since APNs was unreachable, cancelled.
    private func fill(_ store: SQLiteFileStore) async throws {
        for occurrence in ["a", "b", "c", "d", "e"] {
            _ = try await store.createRun(news(), occurrence: occurrence, now: noon, by: "anna")
        }
        try await store.change(2, to: .running, reason: nil, now: noon, by: "anna")
        try await store.change(3, to: .paused, reason: "wrong link", now: noon, by: "anna")
        try await store.change(5, to: .cancelled, reason: nil, now: noon, by: "anna")
        _ = try await store.claim(4, by: "sender", now: noon)
        try await store.release(
            4, by: "sender", state: .paused, reason: "no answer", halt: .unreachable, now: noon)
        try await store.setScheduleMarks([ScheduleMark(campaign: "news", scheduleHash: 7, since: noon)])
    }

    private func copy(in folder: URL) async throws -> String {
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        try await fill(store)
        let path = folder.appending(path: "copy.sqlite").path
        _ = try await store.backUp(to: path, overwriting: false)
        #expect(store.restored == nil)
        #expect(try await store.run(2)?.state == .running)
        try store.close()
        return path
    }

    @Test func `a copy that is opened to be written to pauses what is open, once`() async throws {
        try await withFolder { folder in
            let path = try await copy(in: folder)
            let later = noon + .seconds(3600)
            // A look changes nothing.
            let looking = try SQLiteFileStore(path: path, access: .reading)
            #expect(looking.restored == nil)
            #expect(try await looking.run(2)?.state == .running)
            try looking.close()
            let store = try SQLiteFileStore(path: path, now: { later })
            let restored = try #require(store.restored)
            #expect(restored.runs.map(\.id) == [1, 2, 3, 4] && restored.restoredAt == later)
            for id: Int64 in [1, 2, 3, 4] {
                let run = try #require(try await store.run(id))
                #expect(run.state == .paused && run.halt == .restored && run.pausedBy == nil)
                #expect(run.stateReason?.contains("`fanfare resume \(id)`") == true, "\(run.stateReason ?? "")")
                #expect(throws: RestoredUnseen.self) { try restored.requireSeen(id) }
            }
            #expect(try await store.run(5)?.state == .cancelled)
            #expect(try await store.openRuns(for: "sender", inHand: []).isEmpty)
            #expect(try await store.haltedRuns().map(\.id) == [1, 2, 3, 4])
            #expect(try await store.scheduleMarks()["news"]?.since == later)
            let events = try await store.events(run: nil, since: noon, limit: 100)
            #expect(events.contains { $0.kind == EventKind.storeRestored.rawValue && $0.detail == restored.summary })
            try await store.change(2, to: .running, reason: nil, now: later, by: "anna")
            try store.close()
            let again = try SQLiteFileStore(path: path)
            #expect(again.restored == nil)
            #expect(try await again.run(2)?.state == .running)
            try again.close()
        }
    }

    @Test func `a claim of such a run is refused until a person resumes it`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: try await copy(in: folder))
            guard case .halted(let reason) = try await store.claim(2, by: "sender", now: noon) else {
                Issue.record("claimed")
                return
            }
            #expect(reason.contains("the store is a backup from"))
            try await store.change(2, to: .running, reason: nil, now: noon, by: "anna")
            guard case .claimed = try await store.claim(2, by: "sender", now: noon) else {
                Issue.record("not claimed")
                return
            }
            try store.close()
        }
    }

    @Test func `a restoration sets the old store aside with its log, and keeps owner and mode`() async throws {
        try await withFolder { folder in
            let copy = try await copy(in: folder)
            let path = folder.appending(path: "fanfare.sqlite").path
            let old = try SQLiteFileStore(path: path)
            _ = try await old.createRun(news(), occurrence: "late", now: noon, by: "anna")
            // The last change is in the log alone.
            try FileManager.default.copyItem(atPath: path + "-wal", toPath: path + ".log")
            try old.close()
            // A close may leave an empty log.
            try? FileManager.default.removeItem(atPath: path + "-wal")
            try FileManager.default.moveItem(atPath: path + ".log", toPath: path + "-wal")
            if getuid() == 0 { #expect(chown(path, 65_534, 65_533) == 0) }
            let summary = try StoreRestoration(copy, to: path).run(now: noon)
            #expect(summary.copy.runs == 5)
            let aside = try #require(summary.setAside)
            // The log is in the file now.
            for file in [path, aside] { #expect(!FileManager.default.fileExists(atPath: file + "-wal")) }
            var facts = stat()
            #expect(stat(path, &facts) == 0 && facts.st_mode & 0o777 == 0o600)
            if getuid() == 0 { #expect(facts.st_uid == 65_534 && facts.st_gid == 65_533) }
            let store = try SQLiteFileStore(path: path)
            #expect(store.restored?.runs.count == 4)
            try store.close()
            #expect(throws: StoreError.self) { try StoreRestoration(path, to: path).run(now: noon) }
            let before = try SQLiteFileStore(path: aside)
            #expect(try await before.run(campaign: "news", occurrence: "late") != nil)
            try before.close()
        }
    }

    // MARK: The store that is there

    /// Files beside the store that a restore which was refused must not leave.
    private func leftOvers(in folder: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.contains(".before-") || $0.hasSuffix(".part")
        }
    }

    @Test(arguments: [false, true])
    func `a store that moves away, or has, is not replaced`(hasMoved: Bool) async throws {
        try await withFolder { folder in
            let copy = try await copy(in: folder)
            let path = folder.appending(path: "fanfare.sqlite").path
            let store = try SQLiteFileStore(path: path, access: .departing)
            let move = StoreMove(id: "m", from: path, to: "postgres://db/fanfare", begunAt: noon)
            try await store.beginDeparture(move, by: "anna")
            if hasMoved { try await store.endDeparture(move, at: noon) }
            try store.close()
            let error = #expect(throws: StoreError.self) { try StoreRestoration(copy, to: path).run(now: noon) }
            switch error {
            case .moved: #expect(hasMoved)
            case .moving: #expect(!hasMoved)
            default: Issue.record("\(String(describing: error))")
            }
            #expect(try leftOvers(in: folder).isEmpty)
            let same = try SQLiteFileStore(path: path, access: .departing)
            #expect(same.restored == nil && same.departed?.id == "m")
            try same.close()
        }
    }

    @Test func `a store that another process has open is not replaced`() async throws {
        try await withFolder { folder in
            let copy = try await copy(in: folder)
            let path = folder.appending(path: "fanfare.sqlite").path
            let open = try SQLiteFileStore(path: path)
            let error = #expect(throws: StoreError.self) { try StoreRestoration(copy, to: path).run(now: noon) }
            #expect("\(try #require(error))".contains("another process has it open"))
            #expect(try leftOvers(in: folder).isEmpty)
            // It loses nothing.
            _ = try await open.importDevices([try record(1)], now: noon)
            try open.close()
            let again = try SQLiteFileStore(path: path)
            #expect(try await again.reach(of: .everyone, topic: wendercast, pushType: .alert, now: noon).total == 1)
            try again.close()
            #expect(try StoreRestoration(copy, to: path).run(now: noon).setAside != nil)
        }
    }

    @Test func `a writer whose store was replaced fails, and confirms nothing`() async throws {
        try await withFolder { folder in
            let copy = try await copy(in: folder)
            let path = folder.appending(path: "fanfare.sqlite").path
            let open = try SQLiteFileStore(path: path)
            _ = try await open.importDevices([try record(1)], now: noon)
            #expect(rename(copy, path) == 0)
            await #expect(throws: StoreError.displaced(path: path)) {
                try await open.importDevices([try record(2)], now: noon)
            }
            await #expect(throws: StoreError.displaced(path: path)) {
                try await open.createRun(news(), occurrence: "late", now: noon, by: "anna")
            }
            try open.close()
        }
    }

    @Test func `a damaged store is set aside, and its log does not become the new one's`() async throws {
        try await withFolder { folder in
            let copy = try await copy(in: folder)
            let path = folder.appending(path: "fanfare.sqlite").path
            try Data(String(repeating: "no store ", count: 100).utf8).write(to: URL(fileURLWithPath: path))
            try Data("log".utf8).write(to: URL(fileURLWithPath: path + "-wal"))
            let aside = try #require(try StoreRestoration(copy, to: path).run(now: noon).setAside)
            // SQLite takes what is sound of a log into its file when it closes it.
            #expect(FileManager.default.fileExists(atPath: aside))
            #expect(!FileManager.default.fileExists(atPath: path + "-wal"))
            let store = try SQLiteFileStore(path: path)
            #expect(store.restored != nil)
            try store.close()
        }
    }

    @Test func `sessions and sign-in links end, and the tokens that work are named`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
            let later = noon + .seconds(3600)
            func make(_ name: String, until end: Timestamp? = nil) async throws -> AccessToken {
                try await store.createAccessToken(
                    AccessToken(
                        id: 0, name: name, role: .admin, topic: nil, createdAt: noon, createdBy: "anna", expiresAt: end,
                        revokedAt: nil, lastUsedAt: nil), secretHash: "hash of \(name)", by: "anna")
            }
            _ = try await make("machine")
            _ = try await make("old", until: noon + .seconds(1))
            let phone = try await make("phone")
            let link = try await make(AccessToken.linkPrefix + "1")
            for token in [phone, link] {
                let session = WebSession(
                    name: token.name, role: .admin, topic: nil, token: token.id, createdAt: noon,
                    expiresAt: later + .seconds(3600), endsAt: later + .seconds(3600))
                #expect(try await store.createSession(session, secretHash: "s\(token.id)", by: "anna"))
            }
            let path = folder.appending(path: "copy.sqlite").path
            _ = try await store.backUp(to: path, overwriting: false)
            _ = try await store.revokeAccessToken("phone", keepsAdmin: false, by: "anna", now: noon)
            try store.close()
            let restored = try SQLiteFileStore(path: path, now: { later })
            for token in [phone, link] { #expect(try await restored.session(secretHash: "s\(token.id)") == nil) }
            #expect(restored.restored?.tokens == ["machine", "phone"])
            let words = try #require(restored.restored?.summary)
            #expect(words.contains("machine, phone; revoke again every token revoked since"), "\(words)")
            let links = try await restored.accessTokens().filter { $0.name.hasPrefix(AccessToken.linkPrefix) }
            #expect(links.allSatisfy { $0.revokedAt == later } && links.count == 1)
            try restored.close()
        }
    }

    @Test func `invitations end, because one that was withdrawn or used meanwhile must not sign anyone in`()
        async throws
    {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
            let later = noon + .seconds(3600)
            var invitation = AccessToken(
                id: 0, name: "eve", role: .admin, topic: nil, createdAt: noon, createdBy: "anna",
                expiresAt: later + .seconds(3600), revokedAt: nil, lastUsedAt: nil)
            invitation.isInvitation = true
            _ = try await store.invite(invitation, secretHash: "link", by: "anna")
            let path = folder.appending(path: "copy.sqlite").path
            _ = try await store.backUp(to: path, overwriting: false)
            try store.close()
            let restored = try SQLiteFileStore(path: path, now: { later })
            let joined = try await restored.acceptInvitation(
                secretHash: "link", newHash: "new", by: "eve", now: later)
            #expect(joined == nil)
            #expect(restored.restored?.tokens == [])
            let words = try #require(restored.restored?.summary)
            #expect(words.contains("invitations have ended; sign in or invite again"), "\(words)")
            // An admin can invite again.
            _ = try await restored.invite(invitation, secretHash: "second", by: "anna")
            #expect(
                try await restored.acceptInvitation(secretHash: "second", newHash: "new", by: "eve", now: later) != nil)
            try restored.close()
        }
    }

    // MARK: The time between the backup and the restore

    private static let caps = [FrequencyCap(limit: 3, window: .seconds(3600))]
    private static let budget = Configuration.SilentBudget(limit: 3, window: .seconds(3600))

    /// A backup, and what the store that it was made of went on to do: numbers of a run, a device and an event.
    private func lost(in folder: URL) async throws -> (copy: String, run: Int64, device: Int64, event: Int64) {
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        _ = try await store.importDevices([try record(1)], now: noon)
        _ = try await store.createRun(news(), occurrence: "a", now: noon, by: "anna")
        let path = folder.appending(path: "copy.sqlite").path
        _ = try await store.backUp(to: path, overwriting: false)
        _ = try await store.importDevices([try record(2)], now: noon)
        let run = try await store.createRun(news(), occurrence: "b", now: noon, by: "anna").run.id
        try store.close()
        let queue = try DatabaseQueue(path: store.path)
        defer { try? queue.close() }
        return try await queue.read { db in
            (
                path, run, try Int64.fetchOne(db, sql: "SELECT max(id) FROM device") ?? 0,
                try Int64.fetchOne(db, sql: "SELECT max(id) FROM event") ?? 0
            )
        }
    }

    @Test func `no number of a run, a device, a lease or an event is used again`() async throws {
        try await withFolder { folder in
            let lost = try await lost(in: folder)
            let store = try SQLiteFileStore(path: lost.copy)
            _ = try await store.importDevices([try record(3)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            #expect(run > max(lost.run, 1_000_000) && run < 1 << 53)
            let devices = lease.deliveries.map(\.device).filter { $0 != 1 }
            #expect(devices.count == 1 && devices.allSatisfy { $0 > max(lost.device, 1_000_000) && $0 < 1 << 53 })
            #expect(lease.id > 1_000_000 && lease.id < 1 << 53)
            let verification = try await store.verify(budgets: [:], faultsMax: 20)
            #expect(verification.isSound, "\(verification)")
            try store.close()
            // Of the pause that the restore makes, too.
            let queue = try DatabaseQueue(path: lost.copy)
            let events = try await queue.read {
                try Int64.fetchAll($0, sql: "SELECT id FROM event WHERE kind IN ('store_restored', 'run_paused')")
            }
            #expect(events.count >= 2 && events.allSatisfy { $0 > max(lost.event, 1_000_000) }, "\(events)")
            try queue.close()
        }
    }

    @Test func `a silent and a capped push wait until their window holds nothing of that time`() async throws {
        try await withFolder { folder in
            let restoredAt = Timestamp(Date()) + .seconds(60)
            let store = try SQLiteFileStore(path: try await lost(in: folder).copy, now: { restoredAt })
            #expect(try await store.restoreGap()?.restoredAt == restoredAt)
            let capped = try await store.startRun(try definition("capped"), now: restoredAt)
            let silent = try await store.startRun(try definition("silent", pushType: .background), now: restoredAt)
            let free = restoredAt + .seconds(3600)
            func sent(_ run: Int64, isSilent: Bool, at now: Timestamp) async throws -> Lease {
                var request = LeaseRequest(
                    run: run, environment: .production, limit: 10, now: now, owner: "a",
                    silentBudget: isSilent ? Self.budget : nil)
                if !isSilent {
                    request.caps = CapRequest(
                        rule: CapRule(topic: wendercast, pushClass: FrequencyCap.usualClass, caps: Self.caps),
                        latest: Expiry(plannedAt: restoredAt, after: .seconds(86_400)))
                }
                return try await store.lease(request)
            }
            for (run, isSilent) in [(capped, false), (silent, true)] {
                let early = try await sent(run, isSilent: isSilent, at: restoredAt + .seconds(1))
                #expect(early.deliveries.isEmpty && early.nextDue == free, "\(early)")
                #expect(try await sent(run, isSilent: isSilent, at: free - .milliseconds(1)).deliveries.isEmpty)
                #expect(try await sent(run, isSilent: isSilent, at: free).deliveries.count == 1)
            }
            try store.close()
        }
    }
}
