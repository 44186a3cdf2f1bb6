package import Model
import RelationalStore
package import Store
import Synchronization

/// The heartbeats of this process's sender and of all runs in which it participates, in one call.
///
/// Each second the sender reports its state, and every run checks whether it may continue. Calls at about the same
/// time share one transaction of three round trips, which waits for no lock of a run. So the trust window stays open
/// even with many runs or a slow network, and no run waits for another one.
struct RunHeartbeats {
    enum Beat: Hashable {
        case run(Int64, owner: String, now: Timestamp)
        case sender(String, SenderFacts)

        var name: String {
            switch self {
            case .run(_, let owner, _): owner
            case .sender(let name, _): name
            }
        }
    }

    enum Answer: Hashable {
        case state(RunState)
        case heard
    }

    private let db: PostgresSession
    private let store: PostgresDatabase

    init(_ db: PostgresSession, _ store: PostgresDatabase) {
        self.db = db
        self.store = store
    }

    /// Returns the state of each run. Returns ``StoreError/lostClaim(run:holder:)`` for a run in which the calling
    /// sender does not participate.
    func write(_ beats: [Beat]) throws -> [Beat: Result<Answer, any Error>] {
        var facts: [String: SenderFacts] = [:]
        var runs: [(run: Int64, owner: String, now: Timestamp)] = []
        for beat in beats {
            switch beat {
            case .run(let run, let owner, let now): runs.append((run, owner, now))
            case .sender(let name, let told): facts[name] = told
            }
        }
        // In a store of one machine, senders have no rows.
        let senders = store.takeoverAfter == nil ? [] : Set(beats.map(\.name)).sorted()
        let (asked, row) = (ServerClock.uptime(), SenderRow(db, store))
        let (answers, failure) = try db.pipelineUntilFailure { batch in
            batch.add(Schema.migrated)
            for name in senders { try row.beat(name, facts[name], in: &batch) }
            batch.add(.once("SAVEPOINT beaten"))
            batch.add(.once("SET LOCAL lock_timeout = \(Self.lockTime.wholeMilliseconds)"))
            if !runs.isEmpty { batch.add(Self.asking, runs.map { $0.run }, runs.map { $0.owner }, runs.map { $0.now }) }
            if !facts.isEmpty { batch.add(SenderRow.forgetting, PostgresDatabase.shownFor.wholeMilliseconds) }
        }
        guard answers.count > senders.count else { throw failure ?? StoreDamage("a heartbeat got no response") }
        try Schema.requireKnown(answers[0], db.server)
        for (name, rows) in zip(senders, answers[1...]) { try row.heard(rows, of: name, askedAt: asked) }
        var states: [Int64: [String: Result<Answer, any Error>]] = [:]
        if let failure {
            // A lock on the table of runs must not cost a sender its heartbeat, so keep the heartbeat.
            guard (failure as? PostgresError)?.kind == .lockTimeout else { throw failure }
            try db.run("ROLLBACK TO SAVEPOINT beaten")
            for asked in runs { states[asked.run] = [asked.owner: .failure(failure)] }
        } else if !runs.isEmpty {
            states = try Self.states(answers[senders.count + 3])
        }
        return Dictionary(
            uniqueKeysWithValues: beats.map { beat in
                guard case .run(let run, let owner, _) = beat else { return (beat, .success(.heard)) }
                return (beat, states[run]?[owner] ?? .failure(StoreError.noSuchRun(run)))
            })
    }

    /// The longest wait for a lock on the table of runs.
    private static let lockTime: Duration = .milliseconds(500)

    private static let asking: SQLStatement = """
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
        """

    private static func states(_ rows: PostgresRows) throws -> [Int64: [String: Result<Answer, any Error>]] {
        var states: [Int64: [String: Result<Answer, any Error>]] = [:]
        for row in rows {
            let (run, owner) = (try row.int64(0), try row.text(1))
            let lost = StoreError.lostClaim(run: run, holder: try row.textOrNil(3))
            let state = try row.bool(4) ? RunState(rawValue: try row.text(2)) : nil
            states[run, default: [:]][owner] = state.map { .success(.state($0)) } ?? .failure(lost)
        }
        return states
    }
}

extension PostgresDatabase {
    /// The time limit for reading the stops. A person's command waits longer than a sender waits for its heartbeat.
    private static let stopsTime: Duration = .seconds(10)

    package func heartbeat(_ run: Int64, owner: String, now: Timestamp) async throws -> RunState {
        guard case .state(let state) = try await beat(.run(run, owner: owner, now: now)) else {
            throw StoreError.noSuchRun(run)
        }
        return state
    }

    func beat(_ beat: RunHeartbeats.Beat) async throws -> RunHeartbeats.Answer {
        named(beat.name)
        return try await heartbeats.ask(beat) { [self] beats in
            try await write(.quick.within(Self.beatTime), to: self.beats) { db in
                try RunHeartbeats(db, self).write(beats)
            }.mapValues { $0.mapError { StoreError.translated($0, path: self.path) } }
        }
    }

    package func participants(of run: Int64, apartFrom sender: String) async throws -> RunParticipants {
        try await participantQueries.ask(ParticipantsQuery(run: run, sender: sender)) { [self] asked in
            try await read(.reading.within(Self.beatTime), from: beats) { db in
                let isAlive = try LivingSenders(db, self)
                let at = try AtRun.read(db, runs: asked.map(\.run))
                // A lease that no lane received will be released, so it is not in flight; see ``UnheardLease``.
                let unheard = Set(self.unheard.withLock { $0 }.map(\.id))
                return Dictionary(
                    uniqueKeysWithValues: asked.map { question in
                        let participants = at[question.run].map {
                            RunParticipants($0, question, isAlive, except: unheard)
                        }
                        return (
                            question, participants.map { .success($0) } ?? .failure(StoreError.noSuchRun(question.run))
                        )
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
}

/// A query for the other senders that participate in a run.
struct ParticipantsQuery: Hashable {
    let run: Int64
    let sender: String
}

/// The owner of a run, its participants, and its leases.
private struct AtRun {
    private(set) var lead: String?
    private(set) var names: Set<String> = []
    private(set) var participants: Set<String> = []
    private(set) var leases: [(id: Int64, call: Int64?, owner: String)] = []

    static func read(_ db: PostgresSession, runs: [Int64]) throws -> [Int64: AtRun] {
        var found: [Int64: AtRun] = [:]
        let rows = try db.rows(
            """
            SELECT id, owner, 0::bigint, NULL::bigint, NULL::bigint FROM run WHERE id = ANY ($1)
            UNION ALL SELECT run_id, owner, 1, NULL, NULL FROM run_sender WHERE run_id = ANY ($1)
            UNION ALL SELECT run_id, owner, 2, id, call_id FROM lease WHERE run_id = ANY ($1)
            """, runs)
        for row in rows {
            let run = try row.int64(0)
            var at = found[run] ?? AtRun()
            let name = try row.textOrNil(1)
            switch try row.int(2) {
            case 0: at.lead = name
            case 1: if let name { at.participants.insert(name) }
            default:
                if let name, let id = try row.int64OrNil(3) { at.leases.append((id, try row.int64OrNil(4), name)) }
            }
            if let name { at.names.insert(name) }
            found[run] = at
        }
        return found
    }
}

extension RunParticipants {
    fileprivate init(_ at: AtRun, _ question: ParticipantsQuery, _ isAlive: LivingSenders, except unheard: Set<Int64>) {
        self.init()
        for name in at.names where name != question.sender {
            if isAlive(name) { others += 1 } else { gone += 1 }
            if name == at.lead, isAlive(name) { hasOtherLead = true }
            guard at.participants.contains(name), isAlive.isFit(name) else { continue }
            fit += 1
            if !at.leases.contains(where: { $0.owner == name }) { idle += 1 }
        }
        for lease in at.leases where lease.owner == question.sender {
            if lease.call.map(unheard.contains) != true { leases.insert(lease.id) }
        }
    }
}
