import Foundation
import TestSupport
import Testing

/// Three senders on one run, and what becomes of it when they, or the server, are hit.
///
/// Always on with a few blows. `FANFARE_FLEET_KILLS=300` for many, on 200,000 deliveries; `FANFARE_FLEET_BLOWS=60` for as many
/// of all kinds, in the order that `FANFARE_FLEET_SEED` gives.
@Suite(
    .ownThread, .serialized, .timeLimit(.minutes(60)),
    .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `Several senders` {
    private static let blows = ProcessInfo.processInfo.environment["FANFARE_FLEET_BLOWS"].flatMap(Int.init)
    private static let seed = ProcessInfo.processInfo.environment["FANFARE_FLEET_SEED"].flatMap(UInt64.init) ?? 1
    private static let kills =
        ProcessInfo.processInfo.environment["FANFARE_FLEET_KILLS"].flatMap(Int.init) ?? 0

    private func scene(_ name: String, devices: Int, pace: Int?) -> Scene {
        var scene = Scene(name: name)
        scene.devices = devices
        scene.pace = pace
        scene.answerDelayMs = 20
        scene.isOnServer = true
        return scene
    }

    @Test func `killed at any moment lose nobody and double nobody without right`() async throws {
        let many = Self.kills > 0
        let scene = scene("kills", devices: many ? 200_000 : 12_000, pace: many ? 1_000 : 1_500)
        try await prove(scene, .kill, blows: many ? Self.kills : 8, apart: 300...700)
    }

    @Test func `that are gone for good leave their work to the others`() async throws {
        try await prove(scene("loss", devices: 20_000, pace: 800), .loss, blows: 1, apart: 1_500...2_000)
    }

    @Test func `stopped past the takeover write nothing any more when they go on`() async throws {
        // All lanes busy all the time: a connection that falls silent is one of the sender that was stopped.
        var scene = scene("freeze", devices: 18_000, pace: nil)
        scene.answerDelayMs = 1_000
        try await prove(scene, .freeze, blows: 1, apart: 3_000...4_000)
    }

    @Test func `paused with their machines' clocks past the takeover write nothing any more when they go on`()
        async throws
    {
        var scene = scene("pause", devices: 18_000, pace: nil)
        scene.answerDelayMs = 1_000
        try await prove(scene, .pause, blows: 1, apart: 3_000...4_000)
    }

    @Test(arguments: Fleet.Order.allCases)
    func `are not taken over by the first order after the server was away`(order: Fleet.Order) async throws {
        // Most of a run that is cancelled is never sent: this one lasts until it is.
        let counts = try await prove(
            scene("serverAway, \(order)", devices: order == .cancel ? 20_000 : 8_000, pace: 600),
            .serverAwayThen(order), blows: 1, apart: 1_500...2_000, on: try await PostgresCluster.own())
        #expect(counts.doubtful == 0 && counts.doubles == 0)
        #expect(counts.cancelled == (order == .cancel ? 1 : 0))
    }

    @Test func `go on when the server was restarted, or all its processes killed`() async throws {
        for blow in [Fleet.Blow.serverRestart, .serverCrash] {
            try await prove(
                scene("\(blow)", devices: 10_000, pace: 1_500), blow, blows: 2, apart: 1_000...1_500,
                on: try await PostgresCluster.own())
        }
    }

    /// A COMMIT waits for the disk here; on a slow disk any does.
    @Test func `go on when the server forgets commits that were sent, since one of its backends was killed`()
        async throws
    {
        var options = PostgresCluster.Options()
        options.settings = CommitWindow.settings
        let counts = try await prove(
            scene("backendLoss", devices: 16_000, pace: 800), .backendLoss, blows: 6, apart: 400...900,
            on: try await PostgresCluster.own(options))
        #expect(counts.forgotten > 0, "no commit was caught before it was on disk")
    }

    @Test func `wait for a server that is away, and nobody takes anybody for gone`() async throws {
        let counts = try await prove(
            scene("serverAway", devices: 8_000, pace: 1_000), .serverAway, blows: 1, apart: 1_500...2_000,
            on: try await PostgresCluster.own())
        #expect(counts.doubtful == 0)
    }

    @Test(arguments: [Fleet.Blow.connectionsUsedUp, .locksUsedUp])
    func `go on when others had all that the server has`(blow: Fleet.Blow) async throws {
        var options = PostgresCluster.Options()
        options.settings = ["max_connections": "\(Fleet.connections)", "max_locks_per_transaction": "10"]
        let counts = try await prove(
            scene("\(blow)", devices: 10_000, pace: 1_500), blow, blows: 1, apart: 1_500...2_000,
            on: try await PostgresCluster.own(options))
        #expect(counts.doubtful == 0)
    }

    @Test func `lose nobody when their connections are cut in any phase`() async throws {
        let counts = try await prove(
            scene("cut", devices: 12_000, pace: 1_500), .cut, blows: 40, apart: 100...300, isCut: true)
        #expect(counts.doubtful == 0)
    }

    @Test func `go on at the standby when their server is gone for good`() async throws {
        let primary = try await PostgresCluster.own()
        let standby = try await PostgresCluster.replica(of: primary)
        try await OwnThread.run {
            // Whatever was committed is on both.
            try primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            try primary.sql("SELECT pg_reload_conf()")
        }
        let counts = try await prove(
            scene("failover", devices: 8_000, pace: 1_000), .failover, blows: 1, apart: 1_500...2_000, on: primary,
            standby: standby)
        #expect(counts.doubtful == 0)
    }

    /// What the primary alone had settled is leased again, by senders that have forgotten it: in doubt where the standby has
    /// the lease, as for the first time where it does not.
    @Test func `bring a run to its end on a standby that was behind, and nobody is lost`() async throws {
        let primary = try await PostgresCluster.own()
        let standby = try await PostgresCluster.replica(of: primary)
        var scene = scene("failover to a late standby", devices: 12_000, pace: 1_000)
        scene.mayForget = true
        let counts = try await prove(
            scene, .lateFailover, blows: 1, apart: 2_500...3_000, on: primary, standby: standby)
        #expect(counts.doubtful + counts.doubles > 0, "nothing was forgotten")
    }

    /// What the simulator counts is what devices see.
    @Test func `keep the silent budget though two of their clocks are ten minutes wrong, and all are killed`()
        async throws
    {
        var scene = scene("clocks", devices: 1_500, pace: 1_500)
        scene.isSilent = true
        scene.runs = 4
        try await prove(scene, .kill, blows: 4, apart: 300...600, clockOffsets: [600, -600, 0])
    }

    @Test(
        .enabled(if: SmallDisk.isPossible, "this machine lets nobody mount a tmpfs of their own"),
        arguments: [PostgresCluster.Options.Small.tables, .wal])
    func `wait while the server's disk is full, say so, and go on when there is room`(
        small: PostgresCluster.Options.Small
    ) async throws {
        var options = PostgresCluster.Options()
        options.small = small
        // What the budget has to hold is written for each push.
        var scene = scene("a full disk, \(small)", devices: 15_000, pace: 1_000)
        scene.isSilent = true
        let counts = try await prove(
            scene, .diskFull, blows: 1, apart: 1_500...2_000, on: try await PostgresCluster.own(options))
        #expect(counts.doubtful == 0)
    }

    @Test func `keep every promise under blows of all kinds in any order, the silent budget among them`() async throws {
        let blows = Self.blows ?? Fleet.mixture.count
        var options = PostgresCluster.Options()
        options.settings = ["max_connections": "\(Fleet.connections)"]
        var scene = scene("mixed blows, seed \(Self.seed)", devices: max(4_000, 600 * blows), pace: 1_000)
        scene.isSilent = true
        scene.runs = 3
        try await prove(
            scene, .mixed, blows: blows, apart: 300...900, on: try await PostgresCluster.own(options), isCut: true)
    }

    @discardableResult
    private func prove(
        _ scene: Scene, _ blow: Fleet.Blow, blows: Int, apart: ClosedRange<Int>, on own: PostgresCluster? = nil,
        isCut: Bool = false, standby: PostgresCluster? = nil, clockOffsets: [Int]? = nil
    ) async throws -> Fleet.Counts {
        let cluster = if let own { own } else { try await PostgresCluster.shared }
        let counts = try await OwnThread.run {
            try Fleet(
                scene, senders: 3, seed: Self.seed, on: cluster, isCut: isCut, standby: standby,
                clockOffsets: clockOffsets
            )
            .execute(blow, blows: blows, apart: apart)
        }
        print("fleet, \(scene): \(counts.summary)")
        for violation in counts.violations.prefix(20) { Issue.record("\(scene): \(violation)") }
        #expect(counts.blows > 0, "nobody was hit")
        return counts
    }
}
