import Foundation
import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

@Suite(.timeLimit(.minutes(10)))
struct CampaignSplitTests {
    private static let devices: ClosedRange<Int64> = 1...100_000

    private static func campaign(_ name: String, holdout: Double? = nil, weights: [Int] = []) -> Campaign {
        var campaign = Campaign(name: name, topic: wendercast, pushType: .alert, template: name)
        campaign.holdoutPercent = holdout
        campaign.variants = weights.enumerated().map { Campaign.Variant(name: "\($0)", weight: $1, template: name) }
        return campaign
    }

    /// How many standard deviations of a fair draw a count is away from its share.
    private static func deviations(_ count: Int, of total: Int, share: Double) -> Double {
        let expected = Double(total) * share
        return (Double(count) - expected) / (expected * (1 - share)).squareRoot()
    }

    @Test(arguments: ["new-podcast", "breaking-news", "refresh-episodes", "a", "b", "Ü", ""])
    func `shares of a hundred thousand devices are as asked, but for jitter`(name: String) {
        let split = CampaignSplit(Self.campaign(name, holdout: 2, weights: [50, 30, 20]))
        let held = Self.devices.count { split.isHeldOut($0) }
        #expect(abs(Self.deviations(held, of: 100_000, share: 0.02)) < 4)
        var counts = [0, 0, 0]
        for device in Self.devices { counts[split.variant(of: device) ?? 0] += 1 }
        for (count, share) in zip(counts, [0.5, 0.3, 0.2]) {
            #expect(abs(Self.deviations(count, of: 100_000, share: share)) < 4)
        }
    }

    /// One hundred cells of two buckets each are as full as jitter makes them: chi-square with 99 degrees of freedom has
    /// the mean 99 and passes 160 once in ten thousand times.
    private func chiSquare(_ left: (Int64) -> Int64, _ right: (Int64) -> Int64) -> Double {
        var cells = [Int](repeating: 0, count: 100)
        for device in Self.devices { cells[Int(left(device) / 1000 * 10 + right(device) / 1000)] += 1 }
        return cells.reduce(0) { $0 + (Double($1) - 1000) * (Double($1) - 1000) / 1000 }
    }

    @Test(arguments: [("new-podcast", "breaking-news"), ("a", "b"), ("week-1", "week-2"), ("x", "xx")])
    func `campaigns, holdout and variants, and neighbours have nothing to do with each other`(
        name: String, other: String
    ) {
        let one = CampaignSplit(Self.campaign(name))
        let two = CampaignSplit(Self.campaign(other))
        let bucket = CampaignSplit.bucket
        #expect(chiSquare({ bucket($0, one.holdoutSeed) }, { bucket($0, two.holdoutSeed) }) < 160)
        #expect(chiSquare({ bucket($0, one.variantSeed) }, { bucket($0, two.variantSeed) }) < 160)
        #expect(chiSquare({ bucket($0, one.holdoutSeed) }, { bucket($0, one.variantSeed) }) < 160)
        #expect(chiSquare({ bucket($0, one.holdoutSeed) }, { bucket($0 + 1, one.holdoutSeed) }) < 160)
    }

    @Test func `the documented SQL gives the same buckets`() async throws {
        let source = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/Model/Audience/CampaignSplit.swift")
        let text = try String(contentsOf: source, encoding: .utf8)
        let lines = text.split(separator: "\n").drop { !$0.contains("SELECT id, (((") }
        let last = try #require(lines.firstIndex { $0.contains("AS bucket") })
        let sql = lines[...last].map { String($0.drop { $0 == "/" || $0 == " " }) }.joined(separator: " ")
            .replacing("seed", with: ":seed")
        let split = CampaignSplit(Self.campaign("new-podcast"))
        try await withStore { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            for seed in [split.holdoutSeed, split.variantSeed, 0, 2_147_483_646] {
                try await store.pool.read { db in
                    let rows = try Row.fetchCursor(
                        db,
                        sql: """
                            WITH RECURSIVE device AS (
                                SELECT 1 AS id UNION ALL SELECT id + 1 FROM device WHERE id < 100000
                            )
                            \(sql) FROM (SELECT id FROM device UNION ALL SELECT id + 2147383640 FROM device)
                            """, arguments: ["seed": seed])
                    var wrong = 0
                    while let row = try rows.next() {
                        let id: Int64 = row[0]
                        if id < 2_147_483_647, row[1] != CampaignSplit.bucket(of: id, seed: seed) { wrong += 1 }
                    }
                    #expect(wrong == 0)
                }
            }
        }
    }

    @Test func `weights become ends of buckets, whatever they add up to`() {
        let rows: [(weights: [Int], shares: [Double])] = [
            ([1, 1], [0.5, 0.5]), ([0, 5], [0, 1]), ([1, 1, 1], [0.3333, 0.3333, 0.3334]), ([7], [1]),
            ([0, 0], [1, 0]), ([Int.max, Int.max], [0.5, 0.5]),
        ]
        for row in rows {
            let split = CampaignSplit(Self.campaign("c", weights: row.weights))
            var counts = row.weights.map { _ in 0 }
            for device in Self.devices { counts[split.variant(of: device) ?? 0] += 1 }
            for (count, share) in zip(counts, row.shares) {
                #expect(abs(Double(count) / 100_000 - share) < 0.007, "\(row.weights): \(counts)")
            }
        }
        #expect(CampaignSplit(Self.campaign("c")).variant(of: 1) == nil)
    }

    @Test(arguments: [(2, 200), (0.01, 1), (33.33, 3333), (99.99, 9999)] as [(Double, Int64)])
    func `the holdout ends below its share of the buckets`(percent: Double, end: Int64) throws {
        let split = CampaignSplit(Self.campaign("c", holdout: percent))
        for (bucket, isHeldOut) in [(end - 1, true), (end, false)] {
            let device = try #require(
                Self.devices.first { CampaignSplit.bucket(of: $0, seed: split.holdoutSeed) == bucket })
            #expect(split.isHeldOut(device) == isHeldOut)
        }
    }

    @Test(arguments: [(nil, 0), (0, 0), (100, 1000), (250, 1000), (-3, 0), (Double.nan, 0)] as [(Double?, Int)])
    func `nobody and everybody can be held out`(percent: Double?, expected: Int) {
        let split = CampaignSplit(Self.campaign("c", holdout: percent))
        #expect((1...1000).count { split.isHeldOut($0) } == expected)
    }
}
