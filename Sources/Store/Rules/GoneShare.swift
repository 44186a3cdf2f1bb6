/// Whether more devices of a run were found gone than the campaign's history explains: an old file that was imported,
/// or a host that is not APNs.
///
/// The run is judged as a whole and at its end. Devices are sent to in no random order, so a part of it says little;
/// and what was found is written down only then, so nothing is lost by waiting.
package struct GoneShare: Sendable {
    /// Fewer answers say nothing: no small run waits for a person for this.
    package static let answersMin = 200

    /// Twice the highest share of the campaign's last ``StageJudge/historyRuns`` finished runs, and at least 5 %; 30 %
    /// without a history.
    package let tolerated: Double
    private let test: SequentialTest

    package init(after runs: [(gone: Int, answered: Int)]) {
        tolerated = StageJudge.goneTolerated(after: runs) ?? StageJudge.goneUsual
        test = SequentialTest(tolerated: tolerated, falseHaltMax: StageJudge.falseHaltMax)
    }

    package func isExceeded(gone: Int, answered: Int) -> Bool {
        answered >= Self.answersMin && test.isProven(answers: answered, failures: gone)
    }
}
