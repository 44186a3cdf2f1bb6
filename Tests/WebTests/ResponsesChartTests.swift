import Model
import Testing

@testable import Campaigns
@testable import Web

/// The chart of what people did with the last runs of a campaign.
struct ResponsesChartTests {
    private static func share(_ count: Int, of total: Int) -> FeedbackReport.Share {
        FeedbackReport.Share(Proportion(count, of: total))
    }

    private static func chart(_ goals: [RunGoal?]) -> String {
        let responses = goals.enumerated().map { number, goal in
            RunResponse(
                run: Int64(number + 1), at: Timestamp(seconds: 1_800_000_000), opened: share(10, of: 100), goal: goal)
        }
        return Chart.responses(responses).html
    }

    @Test func `a run without a goal figure says why, and shows no share`() {
        let reason = "the outcomes by device were pruned on 2027-01-15, so there are no figures"
        let html = Self.chart([.unknown(reason), .counted(Self.share(5, of: 90))])
        #expect(
            html.contains(reason) && html.contains("5 (5.56 %)") && !html.contains("of 0") && !html.contains("0 (0"))
        #expect(html.contains("A goal counts up to its time after the last push of the run."))
        let none = Self.chart([nil])
        #expect(!none.contains("goal"))
    }
}
