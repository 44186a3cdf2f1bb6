import Foundation
import Model
import SendingScene
import Store
import TestSupport
import Testing

@testable import Campaigns
@testable import Web

/// Two runs side by side, the broadcasts of a month, and the past of the calendar.
struct CompareTests {
    @Test func `two runs stand side by side, and a run leads to the one before it`() async throws {
        try await WebScene.with { scene in
            let now = scene.sending.clock.now
            var ids: [Int64] = []
            for (name, title) in [("one", "The Quiet Reef"), ("two", "The Loud <b>Reef</b>")] {
                var definition = try scene.sending.definition()
                definition.variables = ["title": title]
                ids.append(try await scene.store.createRun(definition, occurrence: name, now: now, by: "test").run.id)
            }
            let page = try await scene.page("/runs/compare?a=\(ids[0])&b=\(ids[1])", as: .viewer)
            #expect(page.status == 200)
            #expect(page.text.contains("<strong>The Quiet Reef</strong>") && page.text.contains("Loud &lt;b&gt;Reef"))
            #expect(page.text.contains("aria-label=\"Texts of run \(ids[1])\""))
            let second = try await scene.page("/runs/\(ids[1])", as: .viewer).text
            #expect(second.contains("href=\"/runs/compare?a=\(ids[0])&amp;b=\(ids[1])\""))
            #expect(!(try await scene.page("/runs/\(ids[0])", as: .viewer).text.contains("/runs/compare")))
            #expect(try await scene.page("/runs/compare?a=\(ids[0])", as: .viewer).status == 422)
            #expect(try await scene.page("/runs/compare?a=\(ids[0])&b=999", as: .viewer).status == 404)
        }
    }

    @Test func `a month has its sums, its days and a row for each broadcast`() async throws {
        try await WebScene.with { scene in
            let now = scene.sending.clock.now
            let run = try await scene.store.createRun(
                try scene.sending.definition(), occurrence: "o", now: now, by: "test"
            ).run.id
            let month = CivilMonth(of: now)
            let page = try await scene.page("/runs/month?m=\(month.text)", as: .viewer).text
            #expect(page.contains("<dt>Broadcasts</dt><dd>1</dd>") && page.contains("href=\"/runs/\(run)\""))
            #expect(page.contains("<a href=\"/runs/month\" aria-current=\"page\">By month</a>"))
            let before = try await scene.page("/runs/month?m=\(month.previous.text)", as: .viewer).text
            #expect(before.contains("No broadcast in this month."))
            #expect(try await scene.page("/runs/month?m=2026-13", as: .viewer).status == 422)
            #expect(try await scene.page("/runs/month", as: .viewer).text.contains("Broadcasts of \(month.text)"))
        }
    }

    @Test(
        arguments: [
            (.cancelled, 0, 3, 0, true), (.failed, 0, 0, 3, true), (.finished, 1, 0, 0, true),
            (.finished, 0, 0, 0, false), (.missed, 0, 0, 0, false), (.running, 0, 0, 0, true),
        ] as [(RunState, Int, Int, Int, Bool)])
    func `a month counts a run as a broadcast if it sent a push, or may still`(
        state: RunState, accepted: Int, rejected: Int, unknown: Int, isSent: Bool
    ) async throws {
        try await WebScene.with { scene in
            let now = scene.sending.clock.now
            var run = try await scene.store.createRun(
                try scene.sending.definition(), occurrence: "o", now: now, by: "test"
            ).run
            (run.state, run.counts.audience, run.counts.suppressed) = (state, 5, 5 - accepted - rejected - unknown)
            (run.counts.accepted, run.counts.rejected, run.counts.unknown) = (accepted, rejected, unknown)
            let facts = MonthPage(CivilMonth(of: now), [run], gone: [:], devices: nil, isCut: false).facts
            #expect(facts.first?.value == (isSent ? "1" : "0"))
            #expect(facts.contains { $0.name == "Not sent" } == !isSent)
            // A sum is a lower bound until the tokens of each broadcast are counted.
            #expect(facts.first { $0.name == "Tokens removed" }?.value == (isSent ? "at least 0" : "0"))
            let counted = MonthPage(CivilMonth(of: now), [run], gone: [run.id: 2], devices: nil, isCut: false).facts
            #expect(counted.first { $0.name == "Tokens removed" }?.value == "2")
        }
    }

    @Test(arguments: [("2026-12", "2027-01", 31), ("2028-02", "2028-03", 29), ("2027-02", "2027-03", 28)])
    func `a month knows its days and the next one`(text: String, next: String, days: Int) throws {
        let month = try #require(CivilMonth(text))
        #expect(month.text == text && month.next.text == next && month.days == days && month.next.previous == month)
    }

    @Test(arguments: ["2026-00", "2026-1", "2026", "x", "2026-12-01"])
    func `a text that is no month is none`(text: String) { #expect(CivilMonth(text) == nil) }

    @Test func `the calendar shows a past start only if it has a run`() async throws {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            let today = String(scene.sending.clock.now.iso8601.prefix(10))
            let page = try await scene.page("/calendar?from=\(today)&weeks=1", as: .viewer).text
            #expect(!page.contains("<li class=\"soft\"><strong>"))
        }
    }

    @Test func `the calendar shows the past starts of the weeks that it is asked for, however many came later`()
        async throws
    {
        try await WebScene.with { scene in
            let now = scene.sending.clock.now
            let definition = try scene.sending.definition()
            let log: any RunLog = scene.store
            let record = { (name: String, at: Timestamp) in
                _ = try await log.createEndedRun(
                    definition, occurrence: name, state: .missed, reason: "late", now: at, by: "test")
            }
            let old = now - .seconds(42 * 86_400)
            try await record("old", old)
            let run = try #require(try await log.latestRun(campaign: definition.campaign.name)).id
            for number in 0...500 { try await record("new \(number)", now - .seconds(10 * 86_400)) }
            let calendar = { (day: Timestamp) in
                try await scene.page("/calendar?from=\(day.iso8601.prefix(10))&weeks=1", as: .viewer).text
            }
            let cut = "Not all starts are shown"
            let earlier = try await calendar(old)
            #expect(earlier.contains("<a href=\"/runs/\(run)\">") && !earlier.contains(cut))
            #expect(try await calendar(now - .seconds(10 * 86_400)).contains(cut))
            #expect(!(try await calendar(now).contains(cut)))
        }
    }

    @Test func `the calendar shows a broadcast that a person started, and marks the starts of a stopped campaign`()
        async throws
    {
        try await WebScene.with { scene in
            try await scene.addCampaign()
            try scene.folder.write(WebScene.scheduledText, to: "campaigns/morning.yaml")
            let now = scene.sending.clock.now
            let run = try await scene.store.createRun(
                try scene.sending.definition(), occurrence: "by hand", now: now, by: "test"
            ).run
            let today = String(now.iso8601.prefix(10))
            let next = String((now + .seconds(7 * 86_400)).iso8601.prefix(10))
            let page = try await scene.page("/calendar?from=\(today)&weeks=1", as: .viewer).text
            #expect(page.contains("<a href=\"/runs/\(run.id)\">"))
            #expect(!page.contains(">stopped</small>"))
            let stopped = try await scene.page("/campaigns/morning/stop", as: .sender, form: [:])
            #expect(stopped.status == 303)
            let later = try await scene.page("/calendar?from=\(next)&weeks=2", as: .viewer).text
            #expect(later.contains(">stopped</small>"))
        }
    }
}
