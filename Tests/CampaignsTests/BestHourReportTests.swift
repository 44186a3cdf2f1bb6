import Foundation
import Model
import Store
import Testing

@testable import Campaigns

/// What a report says about own hours, in words.
struct BestHourReportTests {
    private static let start = Timestamp(seconds: 1_800_000_000)

    private static func run(_ state: RunState = .finished) throws -> Run {
        var schedule = Schedule(trigger: .at("2027-01-16T08:00"))
        schedule.zone = .recipient
        schedule.unknownZone = .drop
        schedule.bestHour = Schedule.BestHours(untilMinute: 21 * 60)
        var campaign = Campaign(name: "c", topic: "a.b", pushType: .alert, template: "t")
        campaign.schedule = schedule
        campaign.feedback = CampaignFeedback()
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: start,
            wall: WallTime("2027-01-16T08:00"))
        var counts = DeliveryCounts()
        (counts.audience, counts.accepted) = (2_000, 2_000)
        return Run(
            id: 1, campaign: "c", occurrence: "o", definition: definition, state: state, counts: counts,
            createdAt: start, startedAt: start)
    }

    private static func report(
        hours: Double, own: Int = 0, usual: Int = 0, state: RunState = .finished
    ) throws -> BestHourReport {
        let run = try run(state)
        let look = try #require(BestHourReport.look(at: run, now: start + .milliseconds(Int64(hours * 3_600_000))))
        var arms = FeedbackArms()
        (arms.ownHour.devices, arms.ownHour.reached) = (1_000, own)
        (arms.usualHour.devices, arms.usualHour.reached) = (1_000, usual)
        return BestHourReport(look, look.counted == nil ? FeedbackArms() : arms, of: run.definition.campaign)
    }

    /// The turns of all zones are spread over 24 hours, and those of one zone over 12.
    @Test func `the first look comes when every device has had the push for an hour`() throws {
        let before = try Self.report(hours: 36.9)
        #expect(before.lookedAtSeconds == 0 && !before.isFinal && before.ownHour.of == 0)
        #expect(before.summary == "the first figures come when all devices have had the push for an hour")
        let first = try Self.report(hours: 37, own: 200, usual: 100)
        #expect(first.lookedAtSeconds == 3_600 && !first.isFinal)
        #expect(first.summary.hasSuffix("; an early result, 1h after each push"))
        let last = try Self.report(hours: 60, own: 200, usual: 100)
        #expect(last.isFinal && last.lookedAtSeconds == 86_400)
        // The interval of an early look is wider.
        let (early, late) = (try #require(first.low), try #require(last.low))
        #expect(early < late)
        #expect(try !Self.report(hours: 90, state: .running).isFinal)
    }

    @Test func `it says that own hours help, do harm, or that this is unclear`() throws {
        let helps = try Self.report(hours: 60, own: 200, usual: 100)
        #expect(
            helps.summary.hasPrefix(
                "20.00% (200 of 1,000) opened it within 1d after a push at their own hour, 10.00% (100 of 1,000) after a "
                    + "push at the app's hour. Own hours help: the share of opens is 10.00 points higher ("))
        #expect(helps.difference == 10 && helps.low ?? 0 > 6 && helps.high ?? 0 < 14)
        let harms = try Self.report(hours: 60, own: 100, usual: 200)
        #expect(harms.summary.contains("Own hours do harm: the share of opens is 10.00 points lower (-"))
        let unknown = try Self.report(hours: 60, own: 105, usual: 100)
        #expect(unknown.summary.contains("It is unclear whether own hours help"))
        #expect(unknown.seed == CampaignSplit.seed("best_hour:c"))
    }

    @Test func `a run that a person started has no hours to compare`() throws {
        var run = try Self.run()
        run.definition.wall = nil
        #expect(BestHourReport.look(at: run, now: Self.start) == nil)
    }
}
