import Campaigns
import Foundation
import Model
import Store
import Testing

@testable import fanfare

/// The words in which progress says what a run waits for.
struct WaitsTextTests {
    /// 2027-01-15T08:00:00Z, 9 in Berlin.
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)
    private static let berlin = TimeZone(identifier: "Europe/Berlin")

    private func sentences(_ waits: RunWaits) throws -> [String] {
        WaitsText(waits, now: Self.now, zone: try #require(Self.berlin)).sentences
    }

    private func group(
        _ cause: RunWaits.Cause, _ deliveries: Int, _ first: Int, _ last: Int? = nil, zones: [String] = []
    ) -> RunWaits.Group {
        RunWaits.Group(
            cause: cause, deliveries: deliveries, first: Self.now + .seconds(first),
            last: Self.now + .seconds(last ?? first), zones: zones)
    }

    @Test func `each cause has its sentence, its times by the reader's clock`() throws {
        let waits = RunWaits(
            groups: [
                group(.retry, 12, 130), group(.retry, 1, 130, 300), group(.quietHours, 3, 23 * 3600),
                group(.silentBudget, 1200, 3600),
                group(.wave, 40_000, 9 * 3600, zones: ["Europe/Berlin", "Europe/Paris", "Europe/Rome", "Europe/Oslo"]),
            ], hasLater: true,
            holds: [
                EndpointHold(
                    environment: .production, endpoint: "api.push.apple.com:443", status: 503, since: Self.now,
                    nextTryAt: Self.now + .seconds(61)),
                EndpointHold(
                    environment: .sandbox, endpoint: "127.0.0.1:8443", status: nil, since: Self.now,
                    nextTryAt: Self.now + .seconds(60)),
            ])
        #expect(
            try sentences(waits) == [
                "backing off: api.push.apple.com responded 503 since 09:00, next try at 09:01:01",
                "backing off: 127.0.0.1:8443 has not responded since 09:00, next try at 09:01",
                "12 wait for their retry at 09:02:10", "1 waits for their retry from 09:02:10 to 09:05",
                "3 wait for their quiet hours to end at 2027-01-16 08:00",
                "1,200 wait for their silent budget at 10:00",
                "40,000 wait for the wave at 18:00 (Europe/Berlin, Europe/Paris and 2 more)",
                "more deliveries wait for a later time",
            ])
    }

    @Test func `a count that is cut says so in the JSON`() {
        var cut = group(.wave, 10_000, 60)
        cut.isMore = true
        #expect(WaitResult(cut).isMore == true)
        #expect(WaitResult(group(.wave, 10_000, 60)).isMore == nil)
    }

    @Test func `the line says what is waited for in place of a time left`() {
        var counts = DeliveryCounts()
        (counts.audience, counts.accepted, counts.pending) = (1000, 988, 12)
        let moving = ProgressPrinter.line(counts, sentBefore: 0, elapsed: .seconds(10))
        #expect(moving.hasSuffix("1s remaining"))
        // Ten in 10.2 s are one a second, not none.
        (counts.accepted, counts.pending) = (10, 990)
        #expect(ProgressPrinter.line(counts, sentBefore: 0, elapsed: .milliseconds(10_200)).contains(", 1/s, "))
        (counts.accepted, counts.pending) = (988, 12)
        let waiting = ProgressPrinter.line(
            counts, sentBefore: 0, elapsed: .seconds(10), waits: ["12 wait for their retry at 14:02:10"])
        #expect(
            waiting
                == "988 of 1,000 settled (98.8 %), 988 accepted, 0 rejected, 0 unknown; "
                + "12 wait for their retry at 14:02:10")
    }

    @Test func `what is on its way has no time left, and nothing left waits for nothing`() {
        var counts = DeliveryCounts()
        (counts.audience, counts.accepted, counts.leased) = (1000, 997, 3)
        #expect(
            ProgressPrinter.line(counts, sentBefore: 0, elapsed: .seconds(10))
                == "997 of 1,000 settled (99.7 %), 997 accepted, 0 rejected, 0 unknown; 3 wait for APNs' response")
        (counts.accepted, counts.leased) = (999, 1)
        let last = ProgressPrinter.line(counts, sentBefore: 0, elapsed: .seconds(10))
        #expect(last.hasSuffix("; 1 waits for APNs' response"))
        (counts.accepted, counts.leased) = (1000, 0)
        let done = ProgressPrinter.line(
            counts, sentBefore: 0, elapsed: .seconds(10), waits: ["9 wait for their retry at 14:02:10"])
        #expect(done.hasSuffix("0s remaining"))
    }

    @Test func `the store is asked while little moves, at most once a second, and seldom for what is far away`() {
        var tail = ProgressTail()
        var counts = DeliveryCounts()
        counts.audience = 100_000
        var asked: [Int] = []
        for tenth in 0..<400 {
            // Fast for ten seconds, then nothing.
            if tenth < 100 { counts.accepted += 500 }
            guard tail.wants(counts, after: .milliseconds(tenth * 100)) else { continue }
            asked.append(tenth)
            let first = tenth < 250 ? 5 : 3600
            tail.took(RunWaits(groups: [group(.retry, 1, first)]), now: Self.now)
        }
        #expect(asked.allSatisfy { $0 > 100 } && (10...20).contains(asked.count))
        #expect(zip(asked, asked.dropFirst()).allSatisfy { $1 - $0 >= 10 })
        #expect(tail.waits.groups.count == 1)
        counts.accepted = counts.audience
        #expect(!tail.wants(counts, after: .seconds(60)) && tail.waits == RunWaits())
    }
}
