import Foundation
import TestSupport
import Testing

/// Proves that a run sends nothing before its signatures are recorded, and that signatures serve only one run,
/// whichever process is killed. Root acts for the user that called `sudo`, unless the kernel knows who signed in.
@Suite(.ownThread, .timeLimit(.minutes(10)), .enabled(if: getuid() == 0 && !isSignedIn))
struct `An approval that is killed` {
    private typealias Kill = ApprovalCase.Kill

    /// The cases: all at night, and a mixture of them otherwise.
    private static func cases(onServer: Bool) -> [ApprovalCase] {
        let before = { (word: String) in
            Kill(points: [.from(word, onServer ? .asked : .wal, 1)], isBehind: false)
        }
        // On a server, kills at each response, until it is the response to the commit.
        let behind = { (word: String) in
            Kill(
                points: onServer ? (1...9).map { .from(word, .told, $0) } : [.from(word, .unsynced, 1)], isBehind: true)
        }
        let midst = { (word: String, page: Int) in
            Kill(points: [onServer ? .from(word, .told, 1) : .from(word, .wal, page)], isBehind: false)
        }
        let (asked, signed, rejected) = ("approval_requested", "plan_signed", "plan_rejected")
        // The words of the event. A server receives the event's kind earlier, too, when authors are queried.
        let used = onServer ? "signed by " : "approval_used"
        let send: [KillPoint] =
            onServer
            ? [.from("FROM STDIN", .asked, 1), .from("INSERT INTO lease", .told, 1), .at(.received, 6)]
            : [.from("run_claimed", .wal, 30), .from("run_claimed", .synced, 2), .at(.received, 6)]
        let cases = [
            ApprovalCase(
                ask: before(asked), signatures: [before(signed), before(signed)], make: before(used), send: send[0]),
            ApprovalCase(
                ask: behind(asked), signatures: [behind(signed), behind(signed)], make: behind(used),
                send: send[1]),
            ApprovalCase(
                ask: midst(asked, 2), signatures: [midst(signed, 2), midst(signed, 2)], rejection: before(rejected),
                make: midst("run_created", 2), send: send[2]),
            ApprovalCase(rejection: behind(rejected), make: midst(used, 2), send: send[2]),
            ApprovalCase(send: send[2]),
        ]
        let mixture = ApprovalCase(
            ask: before(asked), signatures: [behind(signed), before(signed)], make: behind(used), send: send[0])
        return Nightly.isOn ? cases : [mixture, cases[3]]
    }

    @Test(arguments: `After a crash`.stores)
    func `lets each run begin with signatures of its own, and everybody gets it once`(onServer: Bool) async throws {
        let cluster = onServer ? try await PostgresCluster.shared : nil
        let cases = Self.cases(onServer: onServer)
        let counts = try await OwnThread.run { try ApprovalTrial(cases, on: cluster).execute() }
        print("approvals\(onServer ? ", on PostgreSQL" : ""): \(counts.summary)")
        for violation in counts.violations.prefix(20) { Issue.record("\(violation)") }
        #expect(counts.kills >= 4 * cases.count && counts.refusals > 2 * cases.count)
        #expect(counts.doubtful > 0)
    }
}

private let isSignedIn =
    (try? String(contentsOfFile: "/proc/self/loginuid", encoding: .utf8)).map { $0 != "4294967295" } ?? false
