import Foundation
import Model
import Store
import Testing

@testable import Campaigns

/// What a report says about people, in words.
struct FeedbackTextTests {
    private static let start = Timestamp(seconds: 1_800_000_000)
    private static let end = start + .seconds(3 * 86_400)

    private static func run(
        _ state: RunState = .finished, startedAt: Timestamp? = start, audience: Int = 1_000, accepted: Int = 1_000,
        sending: Duration = .seconds(60), within: Duration = .seconds(86_400), variants: [String] = []
    ) -> Run {
        var campaign = Campaign(name: "c", topic: "a.b", pushType: .alert, template: "t")
        campaign.feedback = CampaignFeedback()
        campaign.holdoutPercent = 50
        campaign.conversion = Conversion(event: "played", within: within)
        campaign.variants = variants.map { Campaign.Variant(name: $0, weight: 1, template: "t") }
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "t"), variables: [:], plannedAt: start)
        var counts = DeliveryCounts()
        (counts.audience, counts.accepted) = (audience, accepted)
        return Run(
            id: 1, campaign: "c", occurrence: "o", definition: definition, state: state, counts: counts,
            createdAt: start, startedAt: startedAt, finishedAt: state.isFinal ? start + sending : nil)
    }

    private static func arms(treated: Int, heldOut: Int, reached: Int = 0) -> FeedbackArms {
        var arms = FeedbackArms()
        arms.treated.reached = reached
        (arms.treated.devices, arms.heldOut.devices) = (treated, heldOut)
        return arms
    }

    private static func report(_ log: KnownFeedback, _ run: Run = Self.run(), at now: Timestamp = end) async throws
        -> FeedbackReport
    {
        try #require(try await ReadFeedback(store: log).report(of: run, accepted: AcceptedPushes(), now: now))
    }

    @Test func `a goal whose reports were deleted has no figures, and says why`() async throws {
        var log = KnownFeedback(arms: Self.arms(treated: 500, heldOut: 500))
        let kept = try #require(try await Self.report(log).conversion)
        #expect(kept.treated.percent == 0 && kept.difference == 0 && kept.reportsDeletedAt == nil)
        let days: Duration = .seconds(400 * 86_400)
        log.removal = FeedbackRemoval(
            receivedUntil: Self.start - .seconds(1), receivedBefore: Self.start, removedAt: Self.start + days)
        #expect(try await Self.report(log).conversion == kept)
        log.removal?.receivedUntil = Self.start + .seconds(60)
        let report = try await Self.report(log)
        for goal in [report.conversion, report.alertsOff] {
            let goal = try #require(goal)
            #expect(goal.treated.percent == nil && goal.treated.of == 0 && goal.heldOut == nil)
            #expect(goal.difference == nil && goal.low == nil && goal.high == nil && goal.detectable == nil)
            #expect(goal.reportsDeletedAt == (Self.start + days).iso8601)
        }
        #expect(
            report.conversion?.summary
                == "played by 1d after the last push: the reports of apps up to 2027-01-15 were deleted, at last on 2028-02-19, because "
                + "`retention: {events}` kept them for 400d; so nothing can be counted or compared")
        let goal = try #require(try await ReadFeedback(store: log).goal(of: Self.run(), now: Self.end))
        #expect(goal.share == nil && report.conversion?.summary.hasSuffix(": \(goal.reason ?? "")") == true)
        log.removal = nil
        #expect(try await ReadFeedback(store: log).goal(of: Self.run(), now: Self.end)?.share?.of == 500)
    }

    @Test func `a goal says up to when its events count, in final and early looks`() async throws {
        let log = KnownFeedback(arms: Self.arms(treated: 500, heldOut: 500, reached: 100))
        let goal = { (run: Run, seconds: Int64) async throws -> GoalReport in
            try #require(try await Self.report(log, run, at: Self.start + .seconds(seconds)).conversion)
        }
        let slow = Self.run(sending: .seconds(41), within: .seconds(45))
        let final = try await goal(slow, 86)
        #expect(
            final.summary.hasPrefix(
                "played by 45s after the last push (1m26s from the start): 20.00% (100 of 500) of the devices not held out, "
                    + "0.00% (0 of 500) of those held out. The push made 20.00 points more do it ("))
        #expect(final.isFinal && final.withinSeconds == 45 && final.sendingSeconds == 41)
        #expect(final.lookedAtSeconds == 86 && final.countedFrom == "run")
        let before = try await goal(slow, 85)
        #expect(
            before.summary
                == "played by 45s after the last push: the first figures come 45s after the last push, 1m26s after the "
                + "start of the run")
        #expect(
            try await goal(Self.run(.running, within: .seconds(45)), 2_000).summary
                == "played by 45s after the last push: the first figures come 1h after the start of the run, or 45s after "
                + "the last push if that is earlier")
        // A run that waited for hours has an early look before its end.
        let early = try await goal(Self.run(.running, within: .seconds(45)), 9_000)
        #expect(
            early.summary.hasPrefix("played by 2h after the start: 20.00% (100 of 500) of the devices not held out"))
        #expect(
            early.summary.hasSuffix("; an early result: the final one counts up to 45s after the last push")
                && !early.isFinal && early.lookedAtSeconds == 7_200 && early.sendingSeconds == 9_000)
        #expect(try await goal(Self.run(.paused, startedAt: nil), 32_400).lookedAtSeconds == 0)
    }

    @Test func `a campaign by each device's clock that a person starts counts from its start`() async throws {
        let log = KnownFeedback(arms: Self.arms(treated: 500, heldOut: 500))
        let (hours, within): (Duration, Duration) = (.seconds(6 * 3_600), .seconds(3_600))
        var run = Self.run(sending: hours, within: within)
        var schedule = Schedule(trigger: .at("2027-01-15T17:00"))
        schedule.zone = .recipient
        run.definition.campaign.schedule = schedule
        let byHand = try #require(try await Self.report(log, run, at: Self.start + hours + within).conversion)
        #expect(byHand.isFinal && byHand.countedFrom == "run")
        #expect(byHand.sendingSeconds == 21_600 && byHand.lookedAtSeconds == 25_200)
        #expect(byHand.summary.hasPrefix("played by 1h after the last push (7h from the start): "))
        let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-15T17:00"))
        run.definition = run.definition.planned(for: occurrence)
        let planned = try #require(try await Self.report(log, run).conversion)
        #expect(planned.isFinal && planned.countedFrom == "wave" && planned.sendingSeconds == 0)
        #expect(planned.summary.hasPrefix("played within 1h of each device's wave: "))
    }

    @Test func `a run whose outcomes were pruned promises no figures`() async throws {
        let minute = Self.start + .seconds(60)
        for now in [minute, Self.end] {
            let found = try await ReadFeedback(store: KnownFeedback()).report(
                of: Self.run(), accepted: AcceptedPushes(), prunedAt: Self.start, now: now)
            let report = try #require(found)
            for goal in [report.conversion, report.alertsOff] {
                #expect(
                    goal?.summary.hasSuffix(
                        " by 1d after the last push: the outcomes by device were pruned on 2027-01-15, so there are no "
                            + "figures") == true)
            }
        }
        let goal = try await ReadFeedback(store: KnownFeedback()).goal(of: Self.run(), now: Self.end) { Self.start }
        #expect(goal?.reason == "the outcomes by device were pruned on 2027-01-15, so there are no figures")
        let none = try await ReadFeedback(store: KnownFeedback()).goal(of: Self.run(), now: Self.end)
        #expect(none?.reason == "there are no devices to compare")
        #expect(try await ReadFeedback(store: KnownFeedback()).goal(of: Self.run(), now: Self.start)?.share == nil)
    }

    @Test func `reports that name a push prove no effect of the push`() async throws {
        var arms = Self.arms(treated: 500, heldOut: 500, reached: 100)
        arms.namedPush = 60
        let goal = try #require(try await Self.report(KnownFeedback(arms: arms)).conversion)
        #expect(goal.namedPush == 60 && goal.treated.devices == 100 && goal.heldOut?.of == 500)
        #expect(goal.difference == nil && goal.low == nil && goal.high == nil && goal.detectable == nil)
        #expect(
            goal.summary
                == "played by 1d after the last push (1d1m from the start): 20.00% (100 of 500) of the devices not held out, "
                + "0.00% (0 of 500) of those held out. This shows no effect of the push: reports of 60 devices name a push "
                + "by `ref`, and a device that is held out has no push to name. Report the event by `installation_id` and "
                + "`topic`")
    }

    /// Returns the report of a run whose variants have these accepted pushes and opens.
    private static func report(_ variants: KeyValuePairs<String, (accepted: Int, opened: Int)>) async throws
        -> FeedbackReport
    {
        var accepted = AcceptedPushes()
        accepted.byVariant = Dictionary(uniqueKeysWithValues: variants.map { ($0.key, $0.value.accepted) })
        let opens = variants.enumerated().map { index, variant in
            FeedbackCell(
                kind: .opened, name: "", variant: index, locale: nil, minute: 1, events: variant.value.opened,
                valueMicros: 0)
        }
        let run = Self.run(
            accepted: variants.reduce(0) { $0 + $1.value.accepted }, variants: variants.map(\.key))
        return try #require(
            try await ReadFeedback(store: KnownFeedback(cells: opens)).report(
                of: run, accepted: accepted, now: Self.end))
    }

    @Test func `small variants are listed by their sizes alone, and no other is merged with them`() async throws {
        let report = try await Self.report(["a": (186, 20), "b": (209, 60), "tiny": (9, 2), "small": (11, 0)])
        #expect(report.variants.map(\.name) == ["a", "b"] && report.variants.map(\.share.of) == [186, 209])
        #expect(report.smallVariants?.map(\.name) == ["tiny", "small"])
        #expect(
            report.rows.contains {
                $0.name == "Variant tiny" && $0.text == "9 accepted pushes; opens are not shown for fewer than 20"
            })
        let summary = try #require(report.variantsSummary)
        #expect(summary.hasPrefix("b was opened more often, by "))
        #expect(summary.hasSuffix(" than a; variants whose opens are not shown are not compared"))
        #expect(!report.rows.contains { $0.text.contains("other") || $0.name.contains("other") })
    }

    @Test func `the opens of a small variant do not follow from the total and the other variants`() async throws {
        let report = try await Self.report(["a": (300, 20), "b": (209, 60), "tiny": (1, 1), "c": (240, 10)])
        #expect(report.opened.devices == 91 && report.variants.map(\.name) == ["a", "c"])
        #expect(report.smallVariants?.map(\.name) == ["b", "tiny"])
        #expect(report.smallVariants?.map(\.accepted) == [209, 1])
        #expect(
            report.rows.contains {
                $0.name == "Variant b"
                    && $0.text
                        == "209 accepted pushes; opens are not shown because they would reveal those of a smaller variant"
            })
        #expect(report.rows.contains { $0.name == "Variant tiny" && $0.text.hasSuffix("for fewer than 20") })
        let two = try await Self.report(["a": (300, 20), "b": (209, 60), "tiny": (1, 1)])
        #expect(two.variants.isEmpty && two.smallVariants?.map(\.name) == ["a", "b", "tiny"])
        #expect(two.variantsSummary == nil && two.rows.count { $0.text.contains("opens are not shown") } == 3)
    }

    @Test func `opens of pushes that were not accepted are listed apart from the share`() async throws {
        let cell = { (minute: Int?, events: Int) in
            FeedbackCell(
                kind: .opened, name: "", variant: nil, locale: nil, minute: minute, events: events, valueMicros: 0)
        }
        let report = try await Self.report(
            KnownFeedback(cells: [cell(nil, 7), cell(0, 40), cell(3, 10)]), Self.run(accepted: 100))
        #expect(report.opened.devices == 50 && report.opened.of == 100 && report.openedNotAccepted == 7)
        #expect(report.curve.map(\.opened) == [40, 10])
        #expect(report.rows.map(\.name).prefix(2) == ["Opened", "Also opened"])
        #expect(report.rows[1].text == "7 pushes that APNs did not confirm; in no share of the accepted")
        #expect(try await Self.report(KnownFeedback(cells: [cell(0, 40)])).openedNotAccepted == nil)
    }

    @Test func `the times within which people opened are the ends of intervals, in JSON as in words`() async throws {
        let cells = [(3, 60), (130, 30), (2880, 10)].map { minute, opens in
            FeedbackCell(
                kind: .opened, name: "", variant: nil, locale: nil, minute: minute, events: opens, valueMicros: 0)
        }
        let report = try await Self.report(KnownFeedback(cells: cells))
        #expect(report.delay?.half == 4 && report.delay?.most == 140)
        let words = report.rows.first { $0.name == "How soon" }?.text
        #expect(words == "half of the opens within 4m, nine of ten within 2h20m")
        let late = try await Self.report(KnownFeedback(cells: Array(cells.suffix(1))))
        #expect(late.delay?.half == 2940 && late.delay?.most == 2940)
    }

    @Test func `a comparison without a group says so, and promises no figures that cannot come`() async throws {
        let texts = { (arms: FeedbackArms, run: Run, hours: Double) in
            try await Self.report(KnownFeedback(arms: arms), run, at: Self.start + .seconds(hours * 3600))
                .conversion?.summary
        }
        #expect(
            try await texts(Self.arms(treated: 0, heldOut: 10), Self.run(), 72)
                == "played by 1d after the last push (1d1m from the start): 0.00% (0 of 10) of the devices held out; all devices "
                + "were held out, so there is no comparison")
        #expect(
            try await texts(Self.arms(treated: 10, heldOut: 0), Self.run(), 72)
                == "played by 1d after the last push (1d1m from the start): 0.00% (0 of 10) of the devices not held out; no "
                + "device was held out, so there is no comparison")
        let first = "played by 1d after the last push: the first figures come 1h after the start of the run"
        #expect(try await texts(FeedbackArms(), Self.run(.running), 0.5) == first)
        #expect(try await texts(FeedbackArms(), Self.run(.paused, startedAt: nil, audience: 0), 0.5) == first)
        let none = "played by 1d after the last push: the run ended before it had an audience, so there are no figures"
        for hours in [0.5, 72] {
            #expect(try await texts(FeedbackArms(), Self.run(.cancelled, startedAt: nil, audience: 0), hours) == none)
            #expect(try await texts(FeedbackArms(), Self.run(audience: 0, accepted: 0), hours) == none)
        }
    }

    @Test func `three variants are compared by words that hold for all of them`() {
        let summary = { (opened: [Int], sent: [Int]) in
            VariantComparison(
                zip(["a", "b", "c"], zip(opened, sent)).map { (name: $0, share: Proportion($1.0, of: $1.1)) }
            ).summary ?? ""
        }
        let wins = summary([300, 200, 100], [1_000, 1_000, 1_000])
        #expect(wins.hasPrefix("a was opened more often than each other variant: by "))
        #expect(wins.hasSuffix(" percentage points than b, the next one"))
        let two = summary([300, 200], [1_000, 1_000])
        #expect(two.hasPrefix("a was opened more often, by ") && two.hasSuffix(" percentage points, than b"))
        // Only the small group may be as good.
        #expect(
            summary([300, 200, 2], [1_000, 1_000, 9]) == "No winner yet: the opens of a and c may differ by chance")
        #expect(
            summary([100, 101, 102], [1_000, 1_000, 1_000])
                == "No winner yet: the opens of c, b and a may differ by chance")
    }

    @Test func `a share is 0 or 100 percent only if it is exact`() {
        let share = FeedbackReport.Share(Proportion(999_999, of: 1_000_000))
        #expect(share.percent == 99.99 && GoalText.share(share) == "99.99% (999,999 of 1,000,000)")
        #expect(FeedbackReport.Share(Proportion(1, of: 1_000_000)).percent == 0.01)
        #expect(FeedbackReport.Share(Proportion(0, of: 9)).percent == 0)
        #expect(FeedbackReport.Share(Proportion(9, of: 9)).percent == 100)
    }
}

/// A store of reports with known contents.
private struct KnownFeedback: FeedbackLog {
    var cells: [FeedbackCell] = []
    var arms = FeedbackArms()
    var removal: FeedbackRemoval?

    func feedbackCounts(ofRun run: Int64) async throws -> [FeedbackCell] { cells }
    func feedbackArms(ofRun run: Int64, _ goals: [FeedbackGoal]) async throws -> [FeedbackGoal: FeedbackArms] {
        Dictionary(uniqueKeysWithValues: goals.map { ($0, arms) })
    }
    func feedbackRemoval() async throws -> FeedbackRemoval? { removal }

    func recordFeedback(_ events: [FeedbackEvent]) async throws -> [FeedbackVerdict] { [] }
    func setFeedbackAside(_ events: [FeedbackEvent]) async throws -> [FeedbackVerdict] { [] }
    func waitingFeedback() async throws -> WaitingFeedback? { nil }
    func recordWaitingFeedback(tally: @Sendable ([FeedbackTally: Int]) -> Void) async throws -> [Int64] { [] }
    func forgetWaitingFeedback(of device: Int64) async throws {}
    func openTotals(ofRuns runs: [Int64]) async throws -> [Int64: Int] { [:] }
    func feedback(
        receivedIn range: Range<Timestamp>, batch: @escaping @Sendable ([StoredFeedback]) throws -> Void
    ) async throws {}
    func firstFeedback() async throws -> Timestamp? { nil }
    func setInstallationSecret(hash: [UInt8], of device: Int64, now: Timestamp) async throws -> Bool { false }
    func installation(secretHash: [UInt8]) async throws -> ReportingInstallation? { nil }
    func removeFeedback(receivedBefore moment: Timestamp, now: Timestamp) async throws -> Int { 0 }
}
