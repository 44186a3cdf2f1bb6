package import Model
import RelationalStore
package import Store

extension PostgresDatabase {
    /// The time for which a dead sender is shown after its last heartbeat. After that its row is deleted, unless the
    /// sender left work.
    static let shownFor: Duration = .seconds(86_400)
    static let beatTime: Duration = .seconds(3)
    /// The time limit of a sender's first heartbeat. It is long, because opening the connection takes many round
    /// trips.
    private static let firstBeatTime: Duration = .seconds(10)
    /// The longest time that an exiting process waits for an unavailable server.
    private static let retireTime: Duration = .seconds(2)
    private static let silentAfter: Duration = .seconds(4)

    package var storeTime: (@Sendable () -> Timestamp)? {
        guard takeoverAfter != nil, let began = clock.now else { return nil }
        return { [clock] in clock.now ?? began }
    }

    /// Reads the server's clock, so that the store's time is known from the start.
    func readClock() async throws {
        try await read(.short) { [clock] db in
            for _ in 0..<3 {
                let asked = ServerClock.uptime()
                let shown = try db.first("SELECT \(StoreTime.now)") { try $0.timestamp(0) }
                if let shown { clock.note(shown, between: asked, and: ServerClock.uptime()) }
            }
        }
    }

    package func beat(_ sender: String, _ facts: SenderFacts) async throws {
        _ = try await beat(.sender(sender, facts))
    }

    package func retire(_ sender: String) async throws {
        guard takeoverAfter != nil else { return }
        try await write(.quick.within(Self.retireTime)) { db in
            try db.execute("DELETE FROM sender WHERE name = $1 AND NOT \(SenderRow.leftWork)", sender)
        }
    }

    package func senders(at runs: [Int64]) async throws -> [SenderAtRun] {
        guard takeoverAfter != nil else { return [] }
        return try await read(.short) { db in
            try db.all(
                """
                SELECT run_sender.run_id, sender.name, \(SenderRow.mayStart), sender.heartbeat_at
                FROM run_sender JOIN sender ON sender.name = run_sender.owner
                WHERE run_sender.run_id = ANY ($3) AND $1::bigint > 0
                ORDER BY run_sender.run_id, sender.name
                """, self.silenceMilliseconds, SenderRow.trustMilliseconds, runs
            ) { row in
                SenderAtRun(
                    run: try row.int64(0), name: try row.text(1), mayStart: try row.bool(2),
                    heardAt: try row.timestamp(3))
            }
        }
    }

    /// Records a heartbeat before a transaction that waits for locks. The sender's next heartbeats must not wait for
    /// that transaction.
    func beat(_ sender: String) async throws {
        guard takeoverAfter != nil else { return }
        named(sender)
        try await writeBeat { db in try SenderRow(db, self).beat(sender) }
    }

    /// Writes a heartbeat on a separate connection, in a separate transaction.
    func writeBeat(_ body: @escaping @Sendable (PostgresSession) throws -> Void) async throws {
        try await write(.quick.within(Self.firstBeatTime), to: beats, body)
    }

    package func endedLately() async throws -> [String: Timestamp] {
        guard takeoverAfter != nil else { return [:] }
        return try await read(.short) { db in
            let names = try LivingSenders(db, self).endedLately
            guard !names.isEmpty else { return [:] }
            let heard = try db.all(
                """
                SELECT name, heartbeat_at FROM sender WHERE name = ANY ($1) AND \(SenderRow.leftWork)
                """, names
            ) { (try $0.text(0), try $0.timestamp(1)) }
            return Dictionary(heard) { _, last in last }
        }
    }

    package func quietTimeLeft() async throws -> Duration? {
        guard takeoverAfter != nil else { return nil }
        return try await write(.quick) { db in try SenderRow(db, self).quietTimeLeft() }
    }

    package func senders() async throws -> [SenderOnRecord] {
        try await read(.short) { db in
            let isAlive = try LivingSenders(db, self)
            return try db.all(
                """
                SELECT name, term, since, heartbeat_at, \(StoreTime.now) - heartbeat_at, facts,
                    EXISTS (SELECT 1 FROM daemon WHERE daemon.owner = sender.name), lost_at IS NOT NULL
                FROM sender ORDER BY lost_at IS NOT NULL, term
                """
            ) { row in
                let (name, silent) = (try row.text(0), try row.int64(4))
                let isGone = try row.bool(7) || !isAlive(name)
                return SenderOnRecord(
                    name: name, term: try row.int64(1), since: try row.timestamp(2), heardAt: try row.timestamp(3),
                    state: isGone ? .gone : silent > Self.silentAfter.wholeMilliseconds ? .silent : .alive,
                    isCoordinator: try row.bool(6) && !isGone,
                    facts: ReadableRows.value(try row.text(5), otherwise: SenderFacts()))
            }
        }
    }

    package func requireNoSender(_ db: PostgresSession) throws {
        guard takeoverAfter != nil else { return }
        try db.lock(table: "sender")
        let isAlive = try LivingSenders(db, self)
        let names = try db.all("SELECT name FROM sender WHERE lost_at IS NULL ORDER BY term") { try $0.text(0) }
        guard let sender = names.first(where: { isAlive($0) }) else { return }
        throw StoreError.inUse(
            path: path,
            reason: "\(sender) may be sending; stop it, and run the same command again after some 10 s")
    }

    package func join(_ run: Int64, by sender: Actor) async throws -> Bool {
        guard takeoverAfter != nil else { return false }
        try await beat(sender.name)
        return try await write(.quick) { db in
            let isAlive = try LivingSenders(db, self)
            let current = try RunOwner.alone(db, run)
            try SenderRow(db, self).requireNotLost(sender.name)
            guard current.state == .running, let lead = current.owner, lead != sender.name, isAlive(lead) else {
                return false
            }
            try db.execute(
                "INSERT INTO run_sender (run_id, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING", run, sender.name)
            return true
        }
    }

    package func leave(_ run: Int64, by sender: Actor, now: Timestamp) async throws {
        try await releaseUnheardLeases(now: now)
        let isToBeEnded = try await write(.quick) { db in
            let isAlive = try self.takingOverGone(db, at: run)
            let current = try RunOwner.alone(db, run)
            try db.execute("DELETE FROM run_sender WHERE run_id = $1 AND owner = $2", run, sender.name)
            return try current.state == .cancelled && !current.isHeld(db, isAlive)
        }
        if isToBeEnded { try await endIfCancelled(run, now: now) }
    }

    package func takeOverLeases(of run: Int64, besides owner: String?) async throws -> Set<String> {
        try await write(.durable) { db in
            let gone = try SenderRow(db, self).takeOver(Set(Self.names(db, at: run)).subtracting([owner ?? ""]))
            _ = try RunOwner.alone(db, run)
            try db.execute("DELETE FROM run_sender WHERE run_id = $1 AND owner = ANY ($2)", run, gone.sorted())
            return gone.union([owner].compactMap(\.self))
        }
    }

    /// Fences the dead senders of a run permanently, and returns which of its senders are alive. Call it before the
    /// run is locked.
    func takingOverGone(_ db: PostgresSession, at run: Int64) throws -> OwnerLiveness.IsAlive {
        let gone = try SenderRow(db, self).takeOver(Set(Self.names(db, at: run)))
        return { !gone.contains($0) }
    }

    /// Returns the owner of a run, its participants, and the owners of its leases.
    static func names(_ db: PostgresSession, at run: Int64) throws -> [String] {
        try db.all(
            """
            SELECT owner FROM run WHERE id = $1 AND owner IS NOT NULL
            UNION SELECT owner FROM run_sender WHERE run_id = $1
            UNION SELECT owner FROM lease WHERE run_id = $1
            """, run
        ) { try $0.text(0) }
    }
}
