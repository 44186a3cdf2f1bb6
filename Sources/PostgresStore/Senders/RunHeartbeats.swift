package import Model
package import Store

/// The heartbeats of all runs that this process takes part in, together.
///
/// Each second every run asks whether it is to go on. All that ask at about the same time share one transaction of four
/// round trips, which waits for no lock of a run. So neither many runs nor a slow network keeps a sender's trust window
/// shut, and no run waits for another one.
struct RunHeartbeats {
    struct Beat: Hashable {
        let run: Int64
        let owner: String
        let now: Timestamp
    }

    private let db: PostgresSession
    private let store: PostgresDatabase

    init(_ db: PostgresSession, _ store: PostgresDatabase) {
        self.db = db
        self.store = store
    }

    /// The state of each run; ``StoreError/lostClaim(run:holder:)`` of one that the asking sender takes no part in.
    func write(_ beats: [Beat]) throws -> [Beat: Result<RunState, any Error>] {
        for owner in Set(beats.map(\.owner)).sorted() { try SenderRow(db, store).beat(owner) }
        let rows = try db.rows(
            """
            WITH asked AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS asked (run, owner, moment)),
            free AS MATERIALIZED (
                SELECT run.id, asked.moment FROM run JOIN asked ON asked.run = run.id AND asked.owner = run.owner
                ORDER BY run.id FOR NO KEY UPDATE OF run SKIP LOCKED
            ), heard AS (
                UPDATE run SET heartbeat_at = free.moment FROM free WHERE run.id = free.id
            )
            SELECT run.id, asked.owner, run.state, run.owner,
                EXISTS (SELECT 1 FROM run_sender WHERE run_sender.run_id = run.id AND run_sender.owner = asked.owner)
            FROM asked JOIN run ON run.id = asked.run
            """, beats.map(\.run), beats.map(\.owner), beats.map(\.now))
        var states: [Int64: [String: Result<RunState, any Error>]] = [:]
        for row in rows {
            let (run, owner) = (try row.int64(0), try row.text(1))
            let lost = StoreError.lostClaim(run: run, holder: try row.textOrNil(3))
            let state = try row.bool(4) ? RunState(rawValue: try row.text(2)) : nil
            states[run, default: [:]][owner] = state.map { .success($0) } ?? .failure(lost)
        }
        return Dictionary(
            uniqueKeysWithValues: beats.map { beat in
                (beat, states[beat.run]?[beat.owner] ?? .failure(StoreError.noSuchRun(beat.run)))
            })
    }
}

extension PostgresDatabase {
    /// A person's command waits longer for the stops than a sender does for its heartbeats.
    private static let stopsTime: Duration = .seconds(10)

    package func heartbeat(_ run: Int64, owner: String, now: Timestamp) async throws -> RunState {
        named(owner)
        return try await heartbeats.ask(RunHeartbeats.Beat(run: run, owner: owner, now: now)) { [self] beats in
            try await write(.quick.within(Self.beatTime), to: self.beats) { db in
                try RunHeartbeats(db, self).write(beats)
            }
        }
    }

    package func company(of run: Int64, apartFrom sender: String) async throws -> RunCompany {
        try await companies.ask(CompanyQuestion(run: run, sender: sender)) { [self] asked in
            try await read(.reading.within(Self.beatTime), from: beats) { db in
                let isAlive = try LivingSenders(db, self)
                let at = try Self.names(db, at: asked.map(\.run))
                return Dictionary(
                    uniqueKeysWithValues: asked.map { question in
                        let company = at[question.run].map {
                            RunCompany($0.names, lead: $0.lead, question.sender, isAlive)
                        }
                        return (question, company.map { .success($0) } ?? .failure(StoreError.noSuchRun(question.run)))
                    })
            }
        }
    }

    package func stops() async throws -> StopOrders {
        try await stopQuestions.ask(true) { [self] _ in
            let found = try await read(.reading.within(Self.stopsTime), from: beats) { db in try StopRecord.read(db) }
            return [true: .success(found)]
        }
    }

    /// Of each run its lead, and all who stand under it or one of its leases.
    private static func names(
        _ db: PostgresSession, at runs: [Int64]
    ) throws -> [Int64: (lead: String?, names: Set<String>)] {
        var found: [Int64: (lead: String?, names: Set<String>)] = [:]
        let rows = try db.rows(
            """
            SELECT id, owner, true FROM run WHERE id = ANY ($1)
            UNION SELECT run_id, owner, false FROM run_sender WHERE run_id = ANY ($1)
            UNION SELECT run_id, owner, false FROM lease WHERE run_id = ANY ($1)
            """, runs)
        for row in rows {
            let run = try row.int64(0)
            let name = try row.textOrNil(1)
            if try row.bool(2) { found[run, default: (nil, [])].lead = name }
            if let name { found[run, default: (nil, [])].names.insert(name) }
        }
        return found
    }
}

/// Who else is at a run.
struct CompanyQuestion: Hashable {
    let run: Int64
    let sender: String
}

extension RunCompany {
    fileprivate init(_ names: Set<String>, lead: String?, _ sender: String, _ isAlive: LivingSenders) {
        self.init()
        for name in names where name != sender {
            if isAlive(name) { others += 1 } else { gone += 1 }
            if name == lead, isAlive(name) { hasOtherLead = true }
        }
    }
}
