package import Model
package import Platform
package import Store
import Synchronization

/// Reads the activity in a store at one moment, for metrics and health. The read is cheap, whatever the store holds.
package struct ObserveStore: Sendable {
    /// The minimum interval between reads of the server. A caller within the interval gets the last result.
    private static let serverEvery: Duration = .seconds(5)

    /// The space that the results of one batch may need. A heartbeat needs less, and still succeeds.
    private static let batchBytes = 1_000_000

    private let store: any StoreUpkeep & SenderLog
    private let clock: WallClock
    private let last = LastReading()

    package init(store: any StoreUpkeep & SenderLog, clock: WallClock) {
        self.store = store
        self.clock = clock
    }

    /// Returns the senders and the state of the server. `nil` if the store is a file of one machine.
    package func sharing() async throws -> SharingResult? {
        guard store.isShared else { return nil }
        let now = clock.uptime()
        guard last.isDue(at: now, after: Self.serverEvery) else { return last.result }
        do {
            let result = SharingResult(senders: try await store.senders(), server: try await store.server())
            last.keep(result)
            return result
        } catch {
            last.keep(nil)
            throw error
        }
    }

    /// Returns why a store cannot be written, although it can be read: its disk is full. Returns `nil` if the disk has
    /// space, or is a server's.
    ///
    /// - Parameter disk: the free space around a file.
    package static func fullDisk(
        of store: String, disk: (_ path: String) -> DiskSpace? = { DiskSpace(around: $0) }
    ) -> String? {
        guard !StoreAddress(store).isURL, let space = disk(store), space.isFull(for: batchBytes) else { return nil }
        return "no free space for the store \(store): \(space.summary); free disk space there"
    }

    package func observe(now: Timestamp) async throws -> ObservationResult {
        ObservationResult(try await store.observation(now: now), now: now)
    }
}

package struct ObservationResult: Codable, Hashable, Sendable {
    /// A run that is not over.
    package struct Queue: Codable, Hashable, Sendable {
        package var run: Int64
        package var campaign: String
        package var pending: Int
        package var leased: Int
        /// How long ago the earliest waiting delivery was due; zero if none is overdue.
        package var overdueSeconds: Double
    }

    /// The number of runs by state, without test runs.
    package var runs: [RunState: Int]
    package var queues: [Queue]
    /// The size, in bytes, of the write-ahead log: writes that are not in the store's main file yet.
    package var logBytes: Int
    /// The number of runs that paused themselves, by cause.
    package var halts: [RunHalt: Int]
    package var pausedByPeople: Int
    /// The number of runs that lists leave out because their rows cannot be read.
    package var unreadableRuns: Int
    /// The number of plans that wait for approvals.
    package var openApprovals: Int
    package var webhookMessages: Int
    /// Zero if there is no message.
    package var oldestWebhookSeconds: Double
    package var failingFeeds: Int
    /// `nil` if `backup` never copied the store.
    package var backedUpAt: Timestamp?
    /// When the first entry of the audit was made; `nil` if there is none.
    package var beganAt: Timestamp?

    package init(_ observation: StoreObservation, now: Timestamp) {
        halts = observation.halts
        pausedByPeople = observation.pausedByPeople
        unreadableRuns = observation.unreadableRuns
        openApprovals = observation.openApprovals
        webhookMessages = observation.webhookMessages
        oldestWebhookSeconds = observation.oldestWebhookMessage.map { max(0, (now - $0).inSeconds) } ?? 0
        failingFeeds = observation.failingFeeds
        backedUpAt = observation.backedUpAt
        beganAt = observation.beganAt
        runs = observation.runs
        queues = observation.queues.map { queue in
            Queue(
                run: queue.run, campaign: queue.campaign, pending: queue.pending, leased: queue.leased,
                overdueSeconds: queue.overdue.inSeconds)
        }
        logBytes = observation.logBytes
    }
}

/// A store that machines share, at one moment.
package struct SharingResult: Hashable, Sendable {
    package struct Table: Hashable, Sendable {
        package var name: String
        package var liveRows, deadRows, bytes: Int
        /// `nil` if the table was never autovacuumed.
        package var autovacuumedAt: Timestamp?
    }

    /// See ``ServerObservation``.
    package struct Server: Hashable, Sendable {
        /// Zero if no transaction is open.
        package var oldestTransactionSeconds: Double
        package var connections, connectionsMax, bytes: Int
        package var tables: [Table]
    }

    /// The number of senders by state: `alive`, `silent` or `gone`.
    package var senders: [String: Int]
    package var server: Server?

    package init(senders: [SenderOnRecord], server: ServerObservation?) {
        self.senders = Dictionary(SenderOnRecord.State.allCases.map { ($0.rawValue, 0) }) { first, _ in first }
        for sender in senders { self.senders[sender.state.rawValue, default: 0] += 1 }
        self.server = server.map { server in
            Server(
                oldestTransactionSeconds: server.oldestTransaction?.age.inSeconds ?? 0,
                connections: server.connections, connectionsMax: server.connectionsMax, bytes: server.bytes,
                tables: server.tables.map {
                    Table(
                        name: $0.name, liveRows: $0.liveRows, deadRows: $0.deadRows, bytes: $0.bytes,
                        autovacuumedAt: $0.autovacuumedAt)
                })
        }
    }
}

/// The last result, and when its read began.
private final class LastReading: Sendable {
    private struct State {
        var result: SharingResult?
        var beganAt: Duration?
    }

    private let state = Mutex(State())

    var result: SharingResult? { state.withLock { $0.result } }

    func keep(_ result: SharingResult?) { state.withLock { $0.result = result } }

    /// Returns whether a read is due. If so, the caller reads, and the interval restarts.
    func isDue(at now: Duration, after pause: Duration) -> Bool {
        state.withLock { state in
            if let began = state.beganAt, now - began < pause { return false }
            state.beganAt = now
            return true
        }
    }
}

/// Checks the server that keeps a store.
struct ServerChecks {
    private static let transactionMax: Duration = .seconds(300)
    /// The connections for commands, pages and people.
    private static let connectionsBesides = 10
    /// The number of senders that the server must at least allow, so that a second sender can take over.
    private static let sendersMin = 2

    let server: ServerObservation
    let senders: [SenderOnRecord]

    var warnings: [Finding] {
        [refusal, transaction, visibility, autovacuum, safety, connections, locks].compactMap(\.self)
    }

    private var refusal: Finding? {
        server.refusal.map {
            .warning(.store, "the server accepts no more connections; Fanfare uses those that are open: \($0)")
        }
    }

    private var transaction: Finding? {
        guard let oldest = server.oldestTransaction, oldest.age > Self.transactionMax else { return nil }
        return .warning(
            .store,
            "\(oldest.who) has a transaction open for \(WrittenDuration.text(.seconds(Int(oldest.age.inSeconds)))): the "
                + "server cannot vacuum dead rows meanwhile, and slows down; end the session (pg_terminate_backend)")
    }

    private var visibility: Finding? {
        guard !server.seesAllSessions else { return nil }
        return .skipped(
            .store, "long transactions of other users cannot be seen; to see them, GRANT pg_read_all_stats to this user"
        )
    }

    private var autovacuum: Finding? {
        guard !server.hasAutovacuum else { return nil }
        return .warning(
            .store, "autovacuum or track_counts is off on the server: its tables grow, and slow down; turn both on")
    }

    private var safety: Finding? {
        let off = [("fsync", server.hasFsync), ("full_page_writes", server.hasFullPageWrites)]
            .filter { !$0.1 }.map(\.0)
        guard !off.isEmpty else { return nil }
        return .warning(
            .store,
            "\(off.joined(separator: " and ")) \(off.count == 1 ? "is" : "are") off on the server: a power failure can "
                + "damage the store, or repeat pushes; turn on what is off")
    }

    private var connections: Finding? {
        let living = senders.count { $0.state != .gone && $0.facts.isDaemon }
        let count = max(living, Self.sendersMin)
        let needed = count * server.connectionsPerSender + Self.connectionsBesides
        guard server.connectionsForUsers < needed else { return nil }
        return .warning(
            .store,
            "the server allows \(server.connectionsForUsers) connections; \(count) senders and some commands need "
                + "\(needed); raise max_connections there")
    }

    private var locks: Finding? {
        guard server.locksOfRuns > server.locksMax / 2 else { return nil }
        return .warning(
            .store,
            "pg_dump and queries over delivery_view take \(server.locksOfRuns.grouped) locks, one for each table and "
                + "index of a run; the server has room for \(server.locksMax.grouped) in all; raise "
                + "max_locks_per_transaction there, or shorten `retention: {outcomes}`")
    }
}
