import Model
import Testing

/// Who is in which stage of a run.
@Suite struct StageSampleTests {
    private func campaign(_ stages: Stage...) -> Campaign {
        var campaign = Campaign(name: "news", topic: "com.example.wendercast", pushType: .alert, template: "news")
        campaign.stages = stages
        return campaign
    }

    private func stages(
        _ campaign: Campaign, devices: Int64, seeds: [Set<Int64>] = [], locale: (Int64) -> String? = { _ in "en" },
        zone: (Int64) -> String? = { _ in nil }
    ) throws -> [Int] {
        var sample = try #require(StageSample(campaign, seeds: seeds))
        return (1...devices).map {
            sample.stage(of: $0, .production, StageSample.Stratum(locale: locale($0), zone: zone($0)))
        }
    }

    @Test func `shares are as large as asked, and drawn from all devices alike`() throws {
        let found = try stages(campaign(Stage(.share(1)), Stage(.share(10)), Stage(.rest)), devices: 100_000)
        #expect((900...1_120).contains(found.count { $0 == 0 }))
        #expect((9_600...10_400).contains(found.count { $0 == 1 }))
        let (older, newer) = (found[..<50_000].count { $0 == 0 }, found[50_000...].count { $0 == 0 })
        #expect(abs(older - newer) < 150)
    }

    @Test func `a language or zone that few devices have is in the sample all the same`() throws {
        // One device in 500 speaks Icelandic, one in 5,000 lives there.
        let campaign = campaign(Stage(.share(1)), Stage(.rest))
        let found = try stages(
            campaign, devices: 5_000, locale: { $0 % 500 == 0 ? "is" : "en" },
            zone: { $0 % 1_250 == 0 ? "Atlantic/Reykjavik" : "Europe/Berlin" })
        let icelandic = (1...10).count { found[$0 * 500 - 1] == 0 }
        #expect(icelandic >= 2)
        #expect((1...4).contains { found[$0 * 1_250 - 1] == 0 })
        #expect(found.count { $0 == 0 } < 90)
    }

    @Test func `the same devices are in it when it is drawn again`() throws {
        let campaign = campaign(Stage(.share(2)), Stage(.rest))
        #expect(try stages(campaign, devices: 20_000) == stages(campaign, devices: 20_000))
    }

    @Test func `seeds are in their stage whatever the sample says`() throws {
        let campaign = campaign(Stage(.seeds(.segment("staff"))), Stage(.share(50)), Stage(.rest))
        let found = try stages(campaign, devices: 1_000, seeds: [[3, 500]])
        #expect(found.indices.filter { found[$0] == 0 } == [2, 499])
        #expect(found.contains(1) && found.contains(2))
    }

    @Test func `a campaign without stages, and one with the rest alone, has no sample`() {
        #expect(StageSample(campaign(Stage(.rest)), seeds: []) == nil)
        #expect(StageSample(campaign(), seeds: []) == nil)
    }
}
