import Foundation
import TestSupport
import Testing

/// Helpers that all tests of fleets use.
extension Fleet {
    static let testSeed = ProcessInfo.processInfo.environment["FANFARE_FLEET_SEED"].flatMap(UInt64.init) ?? 1

    static func scene(_ name: String, devices: Int, pace: Int?) -> Scene {
        var scene = Scene(name: name)
        scene.devices = devices
        scene.pace = pace
        scene.answerDelayMs = 20
        scene.isOnServer = true
        return scene
    }

    @discardableResult
    static func prove(
        _ scene: Scene, _ blow: Fleet.Blow, blows: Int, apart: ClosedRange<Int>, on own: PostgresCluster? = nil,
        isCut: Bool = false, standby: PostgresCluster? = nil, clockOffsets: [Int]? = nil
    ) async throws -> Fleet.Counts {
        let cluster = if let own { own } else { try await PostgresCluster.shared }
        let counts = try await OwnThread.run {
            try Fleet(
                scene, senders: 3, seed: testSeed, on: cluster, isCut: isCut, standby: standby,
                clockOffsets: clockOffsets
            )
            .execute(blow, blows: blows, apart: apart)
        }
        print("fleet, \(scene): \(counts.summary)")
        for violation in counts.violations.prefix(20) { Issue.record("\(scene): \(violation)") }
        #expect(counts.blows > 0, "no sender was hit")
        return counts
    }
}
