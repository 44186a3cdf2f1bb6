package import Model
package import Store

extension PostgresDatabase {
    /// So long after it was heard of last, a sender that is gone is shown, and then forgotten.
    private static let shownFor: Duration = .seconds(86_400)
    private static let beatTime: Duration = .seconds(3)
    private static let silentAfter: Duration = .seconds(4)

    package var storeTime: (@Sendable () -> Timestamp)? {
        guard takeoverAfter != nil, let began = clock.now else { return nil }
        return { [clock] in clock.now ?? began }
    }

    /// So that it is known from the start.
    func readClock() async throws {
        try await read { [clock] db in
            for _ in 0..<3 {
                let asked = ServerClock.uptime()
                let shown = try db.first("SELECT \(StoreTime.now)") { try $0.timestamp(0) }
                if let shown { clock.note(shown, between: asked, and: ServerClock.uptime()) }
            }
        }
    }

    package func beat(_ sender: String, _ facts: SenderFacts) async throws {
        try await writeBeat { db in
            try SenderRow(db, self).beat(sender, facts)
            try db.execute(
                """
                DELETE FROM sender
                WHERE heartbeat_at < \(StoreTime.now) - $1::bigint
                    AND NOT EXISTS (SELECT 1 FROM run WHERE run.owner = sender.name)
                    AND NOT EXISTS (SELECT 1 FROM run_sender WHERE run_sender.owner = sender.name)
                    AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.owner = sender.name)
                """, Self.shownFor.wholeMilliseconds)
        }
    }

    /// On a connection of its own, and by itself.
    func writeBeat(_ body: @escaping @Sendable (PostgresSession) throws -> Void) async throws {
        try await write(.quick.within(Self.beatTime), to: beats, body)
    }

    package func senders() async throws -> [SenderOnRecord] {
        try await read { db in
            let isAlive = try LivingSenders(db, self)
            return try db.all(
                """
                SELECT name, term, since, heartbeat_at, \(StoreTime.now) - heartbeat_at, facts,
                    EXISTS (SELECT 1 FROM daemon WHERE daemon.owner = sender.name)
                FROM sender ORDER BY lost_at IS NOT NULL, term
                """
            ) { row in
                let (name, silent) = (try row.text(0), try row.int64(4))
                let isGone = !isAlive(name)
                return SenderOnRecord(
                    name: name, term: try row.int64(1), since: try row.timestamp(2), heardAt: try row.timestamp(3),
                    state: isGone ? .gone : silent > Self.silentAfter.wholeMilliseconds ? .silent : .alive,
                    isCoordinator: try row.bool(6) && !isGone, facts: try StoredJSON.value(try row.text(5)))
            }
        }
    }

    package func join(_ run: Int64, by sender: Actor) async throws -> Bool {
        guard takeoverAfter != nil else { return false }
        return try await write(.quick) { db in
            try SenderRow(db, self).beat(sender.name)
            let isAlive = try LivingSenders(db, self)
            let current = try RunOwner.alone(db, run)
            guard current.state == .running, let lead = current.owner, lead != sender.name, isAlive(lead) else {
                return false
            }
            try db.execute(
                "INSERT INTO run_sender (run_id, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING", run, sender.name)
            return true
        }
    }

    package func leave(_ run: Int64, by sender: Actor, now: Timestamp) async throws {
        try await giveBackUnheardLeases(now: now)
        let isToBeEnded = try await write(.quick) { db in
            let isAlive = try self.takingOverGone(db, at: run)
            let current = try RunOwner.alone(db, run)
            try db.execute("DELETE FROM run_sender WHERE run_id = $1 AND owner = $2", run, sender.name)
            return try current.state == .cancelled && !current.isHeld(db, isAlive)
        }
        if isToBeEnded { try await endIfCancelled(run, now: now) }
    }

    package func company(of run: Int64, apartFrom sender: String) async throws -> RunCompany {
        try await read(.reading, from: beats) { db in
            let isAlive = try LivingSenders(db, self)
            let lead = try RunRow.require(db, run).owner
            var company = RunCompany()
            for name in try Self.names(db, at: run) where name != sender {
                if isAlive(name) { company.others += 1 } else { company.gone += 1 }
                if name == lead, isAlive(name) { company.hasOtherLead = true }
            }
            return company
        }
    }

    package func takeOverLeases(of run: Int64, besides owner: String?) async throws -> Set<String> {
        try await write(.durable) { db in
            let gone = try SenderRow(db, self).takeOver(Set(Self.names(db, at: run)).subtracting([owner ?? ""]))
            _ = try RunOwner.alone(db, run)
            try db.execute("DELETE FROM run_sender WHERE run_id = $1 AND owner = ANY ($2)", run, gone.sorted())
            return gone.union([owner].compactMap(\.self))
        }
    }

    /// Who lives of those at a run; whoever does not is gone for good from now on. To be asked before the run is locked.
    func takingOverGone(_ db: PostgresSession, at run: Int64) throws -> OwnerLiveness.IsAlive {
        let gone = try SenderRow(db, self).takeOver(Set(Self.names(db, at: run)))
        let told = isAlive
        return { !gone.contains($0) && told($0) }
    }

    /// Whoever stands under a run or one of its leases.
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
