/// The check that a run found no more gone devices than the campaign's history explains. More of them mean that an old
/// file was imported, or that the host is not APNs.
///
/// The run is judged as a whole and at its end. The order of sending is not random, so a part of the run says little.
/// Devices are marked as gone only at the end, so a check at the end is early enough.
package struct GoneShare: Sendable {
    /// The minimum number of responses. Fewer responses prove nothing, so this check never pauses a small run.
    package static let answersMin = 200

    /// The tolerated share. It is twice the highest share of the campaign's last ``StageEvaluator/historyRuns``
    /// finished runs, but at least 5 % and at most 90 %. If there is no history, it is 30 %.
    package let tolerated: Double
    private let test: SequentialTest

    package init(after runs: [(gone: Int, answered: Int)]) {
        tolerated = StageEvaluator.goneTolerated(after: runs) ?? StageEvaluator.goneUsual
        test = SequentialTest(tolerated: tolerated, falseHaltMax: StageEvaluator.falseHaltMax)
    }

    package func isExceeded(gone: Int, answered: Int) -> Bool {
        answered >= Self.answersMin && test.isProven(answers: answered, failures: gone)
    }
}
