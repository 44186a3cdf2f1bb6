import Foundation
import TestSupport
import Testing

/// Three senders on one run, while their server fails or has no room.
@Suite(
    .ownThread, .serialized, .timeLimit(.minutes(60)),
    .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `Several senders of a server that fails` {
    @Test(arguments: Nightly.rows([.pause], atNight: Fleet.Order.allCases.filter { $0 != .pause }))
    func `are not taken over by the first order after the server was away`(order: Fleet.Order) async throws {
        // The run lasts until the order, even if the command takes long to start.
        let counts = try await Fleet.prove(
            Fleet.scene("serverAway, \(order)", devices: 20_000, pace: 600),
            .serverAwayThen(order), blows: 1, apart: 1_500...2_000, on: try await PostgresCluster.own())
        #expect(counts.doubtful + counts.doubles == 0 || counts.starved > 0)
        #expect(counts.cancelled == (order == .cancel ? 1 : 0))
    }

    @Test func `go on when the server was restarted, or all its processes killed`() async throws {
        for blow in Nightly.rows([Fleet.Blow.serverCrash], atNight: [.serverRestart]) {
            try await Fleet.prove(
                Fleet.scene("\(blow)", devices: Nightly.isOn ? 10_000 : 8_000, pace: 500), blow,
                blows: Nightly.isOn ? 2 : 1, apart: 1_000...1_500,
                on: try await PostgresCluster.own())
        }
    }

    /// The server delays each COMMIT before the disk, as a slow disk does.
    @Test func `go on when the server forgets commits that were sent, since one of its backends was killed`()
        async throws
    {
        var options = PostgresCluster.Options()
        options.settings = CommitWindow.settings
        let counts = try await Fleet.prove(
            Fleet.scene("backendLoss", devices: 16_000, pace: 400), .backendLoss,
            blows: Nightly.isOn ? 6 : 3, apart: 400...900,
            on: try await PostgresCluster.own(options))
        #expect(counts.forgotten > 0, "no commit was caught before it was on disk: \(counts.looks)")
    }

    @Test(.nightly) func `wait for a server that is away, and nobody takes anybody for gone`() async throws {
        let counts = try await Fleet.prove(
            Fleet.scene("serverAway", devices: 8_000, pace: 1_000), .serverAway, blows: 1, apart: 1_500...2_000,
            on: try await PostgresCluster.own())
        #expect(counts.doubtful == 0 || counts.starved > 0)
    }

    @Test(arguments: Nightly.rows([Fleet.Blow.locksUsedUp], atNight: [.connectionsUsedUp]))
    func `go on when others had all that the server has`(blow: Fleet.Blow) async throws {
        var options = PostgresCluster.Options()
        options.settings = ["max_connections": "\(Fleet.connections)", "max_locks_per_transaction": "10"]
        let counts = try await Fleet.prove(
            Fleet.scene("\(blow)", devices: Nightly.isOn ? 10_000 : 8_000, pace: 500), blow, blows: 1,
            apart: 1_500...2_000,
            on: try await PostgresCluster.own(options))
        #expect(counts.doubtful == 0 || counts.starved > 0)
    }

    @Test func `go on at the standby when their server is gone for good`() async throws {
        let primary = try await PostgresCluster.own()
        let standby = try await PostgresCluster.replica(of: primary)
        try await OwnThread.run {
            // With this setting, each committed transaction is on both servers.
            try primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            try primary.sql("SELECT pg_reload_conf()")
        }
        let counts = try await Fleet.prove(
            Fleet.scene("failover", devices: 8_000, pace: 1_000), .failover, blows: 1, apart: 1_500...2_000,
            on: primary,
            standby: standby)
        #expect(counts.doubtful == 0 || counts.starved > 0)
    }

    /// What only the primary had settled is leased again, because the standby does not know it. A delivery whose lease
    /// is on the standby is in doubt. Any other delivery is sent as for the first time.
    @Test(.nightly) func `bring a run to its end on a standby that was behind, and nobody is lost`() async throws {
        let primary = try await PostgresCluster.own()
        let standby = try await PostgresCluster.replica(of: primary)
        var scene = Fleet.scene("failover to a late standby", devices: 12_000, pace: 1_000)
        scene.mayForget = true
        let counts = try await Fleet.prove(
            scene, .lateFailover, blows: 1, apart: 2_500...3_000, on: primary, standby: standby)
        #expect(counts.doubtful + counts.doubles > 0, "nothing was forgotten")
    }

    @Test(
        .enabled(if: SmallDisk.isPossible, "this machine allows no mount of a tmpfs"),
        arguments: Nightly.rows([PostgresCluster.Options.Small.tables], atNight: [.wal]))
    func `wait while the server's disk is full, say so, and go on when there is room`(
        small: PostgresCluster.Options.Small
    ) async throws {
        var options = PostgresCluster.Options()
        options.small = small
        // Each background push is recorded for the budget, which fills the disk.
        var scene = Fleet.scene("a full disk, \(small)", devices: 10_000, pace: 1_000)
        scene.isSilent = true
        let counts = try await Fleet.prove(
            scene, .diskFull, blows: 1, apart: 1_500...2_000, on: try await PostgresCluster.own(options))
        #expect(counts.doubtful == 0 || counts.starved > 0)
    }
}
