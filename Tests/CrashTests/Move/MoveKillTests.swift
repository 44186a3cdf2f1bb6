import Foundation
import TestSupport
import Testing

/// Moves a store while `fanfare move` is killed repeatedly.
///
/// `FANFARE_MOVES=50` makes 50 moves in each direction. By default there is one move, and one more whose store then
/// sends.
@Suite(
    .ownThread, .serialized, .timeLimit(.minutes(30)),
    .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `A move that is killed` {
    private static let moves = ProcessInfo.processInfo.environment["FANFARE_MOVES"].flatMap(Int.init) ?? 2

    private func scene(toServer: Bool) -> Scene {
        var scene = Scene(name: toServer ? "to PostgreSQL" : "to a file")
        scene.devices = 400
        scene.runs = 2
        return scene
    }

    @Test(arguments: [true, false])
    func `at any point leaves no two stores that send, and is finished whole by the same command`(
        toServer: Bool
    ) async throws {
        let cluster = try await PostgresCluster.shared
        let counts = try await OwnThread.run {
            let trial = try MoveTrial(scene(toServer: toServer), on: cluster, toServer: toServer, seed: 3)
            // A fast machine may finish the move before a kill by the clock.
            for number in 1..<Self.moves * 5 where number < Self.moves || !isShown(trial.counts) { try trial.execute() }
            try trial.execute(isLast: true)
            return trial.counts
        }
        print("moves \(toServer ? "to PostgreSQL" : "to a file"): \(counts.summary)")
        for violation in counts.violations.prefix(10) { Issue.record("\(violation)") }
        #expect(isShown(counts))
    }

    /// Returns whether there were enough kills for a meaningful result.
    private func isShown(_ counts: MoveTrial.Counts) -> Bool { counts.kills > Self.moves && counts.neither > 0 }

    @Test(arguments: Nightly.rows([true], atNight: [false])) func `can be given up, and made to another place`(
        toServer: Bool
    ) async throws {
        let cluster = try await PostgresCluster.shared
        let violations = try await OwnThread.run {
            let trial = try MoveTrial(scene(toServer: toServer), on: cluster, toServer: toServer, seed: 4)
            try trial.giveUp()
            return trial.counts.violations
        }
        #expect(violations == [])
    }
}
