import Foundation
import TestSupport
import Testing

/// Three senders on one run, while the senders or the server fail.
///
/// A few blows always run. `FANFARE_FLEET_KILLS=300` kills more often, with 200,000 deliveries.
/// `FANFARE_FLEET_BLOWS=60` strikes 60 blows of all kinds, in the order of `FANFARE_FLEET_SEED`.
@Suite(
    .ownThread, .serialized, .timeLimit(.minutes(60)),
    .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `Several senders` {
    private static let blows = ProcessInfo.processInfo.environment["FANFARE_FLEET_BLOWS"].flatMap(Int.init)
    private static let kills =
        ProcessInfo.processInfo.environment["FANFARE_FLEET_KILLS"].flatMap(Int.init) ?? 0

    @Test func `killed at any moment lose nobody and double nobody without right`() async throws {
        let many = Self.kills > 0
        let scene = Fleet.scene("kills", devices: many ? 200_000 : 6_000, pace: many ? 1_000 : 400)
        try await Fleet.prove(scene, .kill, blows: many ? Self.kills : 4, apart: 300...700)
    }

    @Test func `that are gone for good leave their work to the others`() async throws {
        try await Fleet.prove(Fleet.scene("loss", devices: 12_000, pace: 800), .loss, blows: 1, apart: 1_500...2_000)
    }

    @Test func `stopped past the takeover write nothing any more when they go on`() async throws {
        // All lanes are always busy, so a silent connection belongs to the stopped sender.
        var scene = Fleet.scene("freeze", devices: 18_000, pace: nil)
        scene.answerDelayMs = 1_000
        try await Fleet.prove(scene, .freeze, blows: 1, apart: 3_000...4_000)
    }

    @Test(.nightly) func `paused with their machines' clocks past the takeover write nothing any more when they go on`()
        async throws
    {
        var scene = Fleet.scene("pause", devices: 18_000, pace: nil)
        scene.answerDelayMs = 1_000
        try await Fleet.prove(scene, .pause, blows: 1, apart: 3_000...4_000)
    }

    @Test func `lose nobody when their connections are cut in any phase`() async throws {
        let counts = try await Fleet.prove(
            Fleet.scene("cut", devices: Nightly.isOn ? 12_000 : 5_000, pace: 400), .cut,
            blows: Nightly.isOn ? 40 : 15, apart: 100...300, isCut: true)
        #expect(counts.doubtful == 0 || counts.starved > 0)
    }

    /// Devices see what the simulator counts.
    @Test func `keep the silent budget though two of their clocks are ten minutes wrong, and all are killed`()
        async throws
    {
        var scene = Fleet.scene("clocks", devices: 1_500, pace: 300)
        scene.isSilent = true
        scene.runs = 4
        try await Fleet.prove(scene, .kill, blows: 4, apart: 300...600, clockOffsets: [600, -600, 0])
    }

    @Test func `keep every promise under blows of all kinds in any order, the silent budget among them`() async throws {
        let blows = Self.blows ?? Fleet.mixture.count
        var options = PostgresCluster.Options()
        options.settings = ["max_connections": "\(Fleet.connections)"]
        var scene = Fleet.scene("mixed blows, seed \(Fleet.testSeed)", devices: max(4_000, 600 * blows), pace: 1_000)
        scene.isSilent = true
        scene.runs = 3
        try await Fleet.prove(
            scene, Fleet.Blow.mixed, blows: blows, apart: 300...900, on: try await PostgresCluster.own(options),
            isCut: true)
    }
}
