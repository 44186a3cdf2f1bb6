import Model
import Store
import Testing

@testable import Campaigns

/// What is said of a server that keeps a store.
struct ServerChecksTests {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)

    private static var well: ServerObservation {
        var server = ServerObservation()
        (server.connectionsMax, server.connectionsForUsers, server.connectionsPerSender) = (100, 97, 9)
        server.oldestTransaction = .init(age: .seconds(20), who: "session 7 (fanfare, active)")
        return server
    }

    private static func sender(
        _ number: Int, state: SenderOnRecord.State = .alive, isCoordinator: Bool = false, files: String? = nil,
        isDaemon: Bool = true
    ) -> SenderOnRecord {
        var facts = SenderFacts()
        facts.isDaemon = isDaemon
        facts.files = files
        return SenderOnRecord(
            name: "web\(number):\(number):16:e", term: Int64(number), since: noon, heardAt: noon, state: state,
            isCoordinator: isCoordinator, facts: facts)
    }

    private static let faults: [(change: @Sendable (inout ServerObservation) -> Void, says: String)] = [
        (
            { $0.oldestTransaction = .init(age: .seconds(7_320), who: "session 4711 (psql, idle in transaction)") },
            "session 4711 (psql, idle in transaction) has a transaction open for 2h2m"
        ),
        (
            { $0.refusal = "cannot open postgres://db/d: no more; correct the user" },
            "accepts no more connections; Fanfare uses those that are open: cannot open postgres://db/d: no more; correct"
        ),
        ({ $0.hasAutovacuum = false }, "autovacuum or track_counts is off"),
        ({ $0.hasFsync = false }, "fsync is off on the server"),
        ({ $0.hasFullPageWrites = false }, "full_page_writes is off on the server"),
        ({ ($0.hasFsync, $0.hasFullPageWrites) = (false, false) }, "fsync and full_page_writes are off"),
        ({ $0.connectionsForUsers = 27 }, "allows 27 connections; 2 senders and some commands need 28"),
        ({ $0.seesAllSessions = false }, "GRANT pg_read_all_stats"),
        (
            { ($0.locksMax, $0.locksOfRuns) = (7_000, 3_505) },
            "take 3,505 locks, one for each table and index of a run; the server has room for 7,000 in all"
        ),
    ]

    @Test(arguments: faults.indices) func `each fault is one finding, which fails nothing`(index: Int) {
        var server = Self.well
        #expect(ServerChecks(server: server, senders: []).warnings.isEmpty)
        Self.faults[index].change(&server)
        let found = ServerChecks(server: server, senders: []).warnings
        #expect(found.count == 1 && found.allSatisfy { $0.message.contains(Self.faults[index].says) }, "\(found)")
        #expect(found.allSatisfy { [.warning, .skipped].contains($0.state) })
    }

    @Test func `room is asked for as many daemons as live`() {
        var senders = (1...9).map { Self.sender($0) }
        #expect(ServerChecks(server: Self.well, senders: senders).warnings.isEmpty)
        senders += [Self.sender(10, state: .gone), Self.sender(11, isDaemon: false)]
        #expect(ServerChecks(server: Self.well, senders: senders).warnings.isEmpty)
        senders.append(Self.sender(12))
        #expect(
            ServerChecks(server: Self.well, senders: senders).warnings.map(\.message).first?.contains("10 senders")
                == true)
    }

    @Test func `a living daemon with other files than the coordinator's is told from the rest`() {
        let coordinator = Self.sender(1, isCoordinator: true, files: "a")
        let senders = [
            coordinator, Self.sender(2, files: "a"), Self.sender(3, files: "b"), Self.sender(4),
            Self.sender(5, state: .gone, files: "b"), Self.sender(6, files: "b", isDaemon: false),
        ]
        #expect(SenderResult.all(senders).map(\.otherFiles) == [nil, nil, true, nil, nil, nil])
        // Nobody is right while nobody coordinates.
        #expect(senders.dropFirst().withOtherFiles.isEmpty)
    }
}
