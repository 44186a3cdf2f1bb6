import CampaignFiles
import Foundation
import Model
import Testing

@testable import Campaigns

/// The plan's difference names a changed key as the campaign file has it.
struct ChangedKeyTests {
    struct Change: Sendable, CustomTestStringConvertible {
        let key: String
        let make: @Sendable (inout Campaign) -> Void

        var testDescription: String { key }
    }

    static let changes = [
        Change(key: "topic") { $0.topic = "com.example.other" },
        Change(key: "push_type") { $0.pushType = .background },
        Change(key: "priority") { $0.priority = .considerate },
        Change(key: "template") { $0.template = "other" },
        Change(key: "audience") { $0.audience.expression = .segment("fans") },
        Change(key: "audience_sql") { $0.audienceSQL = "SELECT id FROM device_view" },
        Change(key: "schedule") { $0.schedule = Schedule(trigger: .at("2026-12-01T09:00")) },
        Change(key: "trigger") { $0.feed = FeedTrigger(url: "https://example.com/feed.xml") },
        Change(key: "expires_after") { $0.expiresAfter = .seconds(60) },
        Change(key: "collapse") { $0.collapse = .key("k") },
        Change(key: "pace") { $0.pace = Campaign.Pace(pushesPerSecond: 5) },
        Change(key: "guards") { $0.guards.maxReach = 5 },
        Change(key: "on_unknown") { $0.onUnknown = .skip },
        Change(key: "retry") { $0.maxAttempts = 2 },
        Change(key: "holdout") { $0.holdoutPercent = 2 },
        Change(key: "variants") { $0.variants = [Campaign.Variant(name: "a", weight: 1, template: "t")] },
    ]

    @Test(arguments: changes) func `a changed key is named as the file has it`(change: Change) throws {
        let old = Campaign(name: "c", topic: "com.example.app", pushType: .alert, template: "t")
        var new = old
        change.make(&new)
        #expect(try CampaignOutline.changedKeys(old, new) == [change.key])
        let schema = try JSONSerialization.jsonObject(with: Data(JSONSchema.text(for: .campaign).utf8))
        let properties = try #require((schema as? [String: Any])?["properties"] as? [String: Any])
        #expect(properties[change.key] != nil)
    }
}
