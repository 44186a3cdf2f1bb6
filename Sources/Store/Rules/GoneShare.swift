/// The check that a run found no more gone devices than the campaign's history explains. More of them mean an old file
/// that was imported, or a host that is not APNs.
///
/// The run is judged as a whole and at its end. The order of sending is not random, so a part of the run says little.
/// The gone devices are recorded only at the end, so waiting loses nothing.
package struct GoneShare: Sendable {
    /// The minimum number of responses. Fewer prove nothing, so a small run does not wait for a person.
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
