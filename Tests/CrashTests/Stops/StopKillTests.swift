import Foundation
import TestSupport
import Testing

/// Stops at each step of a run. The command that stops and the sender may be killed.
@Suite(.ownThread, .timeLimit(.minutes(20))) struct `A stop that is killed` {
    private static func cases(onServer: Bool) -> [StopCase] {
        let steps = onServer ? stepsOnServer : steps
        let (file, record, lifted) = (commands(onServer).file, commands(onServer).record, commands(onServer).lifted)
        let cases = [
            StopCase(frozenAt: steps.freeze),
            StopCase(frozenAt: steps.freeze, sender: .isKilled, stop: file[0]),
            StopCase(frozenAt: steps.lease, stop: file[1], losesFile: true),
            StopCase(frozenAt: steps.lease, sender: .isKilled, stop: record[0], lift: lifted[2]),
            StopCase(frozenAt: steps.settle, stop: record[1], lift: lifted[1], waitsForRecord: true),
            StopCase(frozenAt: steps.settle, sender: .isKilled, stop: file[1], lift: lifted[0], losesFile: true),
            StopCase(frozenAt: steps.recovery, after: .at(.received, 5), lift: lifted[3]),
            StopCase(frozenAt: steps.recovery, after: .at(.received, 5), sender: .isKilled, stop: file[1]),
        ]
        // `.ci/run` tests the file, the record and the lifting once each, one of them during a recovery.
        return Nightly.isOn ? cases : [cases[3], cases[5], cases[6]]
    }

    private static let steps = (
        freeze: KillPoint.from("run_claimed", .wal, 30), lease: KillPoint.from("run_claimed", .synced, 2),
        settle: KillPoint.at(.received, 6), recovery: KillPoint.from("run_claimed", .wal, 12)
    )
    private static let stepsOnServer = (
        freeze: KillPoint.from("FROM STDIN", .asked, 1), lease: KillPoint.from("INSERT INTO lease", .told, 1),
        settle: KillPoint.from("DELETE FROM lease USING", .asked, 1),
        recovery: KillPoint.from("DELETE FROM lease WHERE run_id", .asked, 1)
    )

    /// Returns the points before and after the stop file is created, before and after the record's commit, and during
    /// the lifting. The lifting removes the record first.
    private static func commands(_ onServer: Bool) -> (file: [KillPoint], record: [KillPoint], lifted: [KillPoint]) {
        let (reason, remedy) = (StopTrial.reason, StopTrial.remedy)
        let ends: [KillPoint] = [.at(.lifting, 1), .at(.lifted, 1)]
        return (
            [.at(.stopping, 1), .at(.stopped, 1)],
            onServer
                ? [.from(reason, .asked, 1), .from(reason, .told, 2)]
                : [.from(reason, .wal, 1), .from(reason, .unsynced, 1)],
            onServer
                ? [.from(remedy, .asked, 1), .from(remedy, .told, 1)] + ends
                : [.from(remedy, .wal, 1), .from(remedy, .unsynced, 1)] + ends
        )
    }

    @Test(arguments: `After a crash`.stores)
    func `holds until it is lifted, and then everybody gets it once`(onServer: Bool) async throws {
        let cluster = onServer ? try await PostgresCluster.shared : nil
        let cases = Self.cases(onServer: onServer)
        let counts = try await OwnThread.run { try StopTrial(cases, on: cluster).execute() }
        print("stops\(onServer ? ", on PostgreSQL" : ""): \(counts.summary)")
        for violation in counts.violations.prefix(20) { Issue.record("\(violation)") }
        #expect(counts.kills > cases.count && counts.refusals > cases.count)
    }

    @Test(.enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
    func `leaves a sender that stands still to whoever comes after the lifting`() async throws {
        let cluster = try await PostgresCluster.shared
        let counts = try await OwnThread.run {
            try StopTrial([StopCase(frozenAt: .at(.received, 8))], on: cluster).executeTakeover()
        }
        for violation in counts.violations.prefix(20) { Issue.record("\(violation)") }
        #expect(counts.refusals == 1 && counts.doubtful > 0)
    }
}
