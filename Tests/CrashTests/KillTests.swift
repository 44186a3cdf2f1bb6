import Foundation
import TestSupport
import Testing

/// Kills real processes at critical points, and compares the store with the requests that the simulator received.
///
/// A few scenes and kills always run. `FANFARE_LONG_TESTS=1` runs all scenes, `FANFARE_CRASH_KILLS=200` kills more
/// often, and `FANFARE_CRASH_SEED=7` chooses other points.
@Suite(.ownThread, .timeLimit(.minutes(60))) struct `After a crash` {
    private static let killsPerTrial = 6
    /// A SQLite file, and PostgreSQL if a server is installed.
    static let stores = PostgresCluster.isAvailable ? [false, true] : [false]

    private static func number(_ name: String, default value: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init) ?? value
    }

    @Test func `nobody is lost, nobody doubled without right, and the budget never exceeded`() async throws {
        try await OwnThread.run { try Self.prove(Nightly.isOn ? Scene.all : Scene.few, on: nil) }
    }

    @Test(.enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
    func `the same holds on a server`() async throws {
        let cluster = try await PostgresCluster.shared
        try await OwnThread.run { try Self.prove(Nightly.isOn ? Scene.onServer : Scene.fewOnServer, on: cluster) }
    }

    /// Kills at each step of a stage: frozen, started, leased, evaluated, released and approved.
    @Test(arguments: stores)
    func `each stage has proved itself before anybody of the next one is asked`(onServer: Bool) async throws {
        let cluster = onServer ? try await PostgresCluster.shared : nil
        try await OwnThread.run { try Self.prove(Scene.staged(onServer: onServer), on: cluster) }
    }

    /// Kills at each step of a slot: reserved, settled and released.
    @Test(arguments: stores)
    func `nobody has got more than the frequency cap allows, nor lost a slot to what never left`(
        onServer: Bool
    ) async throws {
        let cluster = onServer ? try await PostgresCluster.shared : nil
        try await OwnThread.run { try Self.prove(Scene.capped(onServer: onServer), on: cluster) }
    }

    private static func prove(_ scenes: [Scene], on cluster: PostgresCluster?) throws {
        let kills = number("FANFARE_CRASH_KILLS", default: 0)
        let firstSeed = UInt64(number("FANFARE_CRASH_SEED", default: 1))
        var sum = Trial.Counts()
        var seed = firstSeed
        repeat {
            for scene in scenes {
                let trial = try Trial(scene, seed: seed, killsMax: kills == 0 ? 2 : killsPerTrial, on: cluster)
                let counts = try trial.execute()
                if kills > 0 { print("  \(scene), seed \(seed): \(counts.summary)") }
                for violation in counts.violations.prefix(20) {
                    Issue.record("\(scene), seed \(seed): \(violation)")
                }
                sum = sum + counts
                seed += 1
            }
        } while sum.kills < kills
        print("crash tests: \(sum.summary)")
        #expect(sum.kills > 0, "no run was met")
    }
}
