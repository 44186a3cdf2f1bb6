import CampaignFiles
import Foundation
import Model
import TestSupport
import Testing

/// Audiences in plain English.
struct AudienceSentenceTests {
    private static func sentence(_ source: String) throws -> String? {
        AudienceSentence(try #require(AudienceParser.parse(source).0)).map(\.text)
    }

    @Test(arguments: [
        ("everyone", "every device of the app"),
        (#"locale in ("de")"#, "German devices"),
        (#"locale = "pt-BR""#, "devices whose language is exactly Portuguese (Brazil)"),
        (#"locale in ("de", "pt")"#, "German and Portuguese devices"),
        (#"locale in ("en", "zh-Hant", "xx")"#, "English, Chinese (Traditional) and xx devices"),
        (#"locale not in ("de", "pt")"#, "devices in languages other than German and Portuguese"),
        (#"country = "AT""#, "devices in Austria"),
        (#"country in ("de", "AT", "CH")"#, "devices in Germany, Austria or Switzerland"),
        (#"country not in ("US")"#, "devices outside the United States"),
        (#"country != "US""#, "devices with a known country and outside the United States"),
        ("last_seen within 30 days", "devices seen in the last 30 days"),
        ("last_seen within 1 days", "devices seen in the last day"),
        ("last_seen within 36 hours", "devices seen in the last 36 hours"),
        ("not last_seen within 30 days", "devices not seen in the last 30 days"),
        ("registered within 7 days", "devices registered in the last 7 days"),
        (#"registered_at >= "2026-01-01T00:00:00Z""#, "devices registered since 2026-01-01T00:00:00Z"),
        (#"last_seen < "2026-01-01T00:00:00Z""#, "devices last seen before 2026-01-01T00:00:00Z"),
        (#"app_version >= "4.2""#, "devices with app version 4.2 or later"),
        (#"app_version < "4.2""#, "devices with app version earlier than 4.2"),
        (#"app_version = "4.2""#, "devices with app version 4.2"),
        (#"app_version in ("4.1", "4.2")"#, "devices with app version 4.1 or 4.2"),
        (#"app_version between "4.0" and "4.2""#, "devices with app version 4 to 4.2"),
        (#"os_version > "17""#, "devices with OS version later than 17"),
        (#"model = "iPhone15,2""#, "devices whose model is “iPhone15,2”"),
        (#"environment = "sandbox""#, "devices of sandbox"),
        (#"time_zone = "Europe/Berlin""#, "devices in the time zone Europe/Berlin"),
        ("alerts_allowed = true", "devices that allow alerts"),
        (#"tag("cycling")"#, "devices tagged cycling"),
        (#"tag("cycling") and tag("news")"#, "devices tagged cycling and news"),
        (#"(tag("cycling") or tag("news"))"#, "devices tagged cycling or news"),
        (#"not tag("off") and not tag("spam")"#, "devices not tagged off or spam"),
        (#"not (tag("off") or tag("spam"))"#, "devices not tagged off or spam"),
        (#"segment("my fans")"#, "devices in segment “my fans”"),
        (#"segment("a") or segment("b")"#, "devices in segment a or b"),
        (#"not segment("beta")"#, "all devices, except segment beta"),
        (#"not segment("beta") and not segment("staff")"#, "all devices, except segments beta and staff"),
        (#"segment("fans") or tag("news")"#, "devices in segment fans or tagged news"),
        (#"attribute("plan") = "pro""#, "devices whose plan is pro"),
        (
            #"attribute("plan") in ("pro", "plus") and attribute("age") = "9""#,
            "devices whose plan is pro or plus, and whose age is 9"
        ),
        (#"not attribute("plan") = "pro""#, "devices whose plan is not pro"),
        ("user_id is null", "devices without a known user ID"),
        ("user_id is not null", "devices with a known user ID"),
        (
            #"locale in ("de", "pt") and last_seen within 30 days and tag("cycling") and not segment("beta")"#,
            "German and Portuguese devices seen in the last 30 days and tagged cycling, except segment beta"
        ),
        (
            #"not segment("a") and locale in ("de") and country in ("DE", "AT") and app_version >= "4" and tag("x")"#,
            "German devices in Germany or Austria, with app version 4 or later, and tagged x, except segment a"
        ),
    ])
    func `a simple audience has a sentence`(source: String, sentence: String) throws {
        #expect(try Self.sentence(source) == sentence)
    }

    /// A sentence would leave something out, or could be read in two ways.
    @Test(arguments: [
        #"locale in ("de") and locale in ("pt")"#, #"locale in ("de") or country = "AT""#,
        #"(tag("a") or tag("b")) and tag("c")"#, #"(tag("a") or segment("b")) and locale in ("de")"#,
        #"app_version >= "4" and app_version < "5""#, "badge > 3", "not everyone", "everyone and badge > 3",
        #"not (tag("a") and country = "AT")"#, #"not (country = "AT" and locale in ("de"))"#,
        #"attribute("plan") != "a" and attribute("plan") != "b""#, #"not app_version > "4""#,
        "last_seen within 90 seconds",
        #"(tag("a") and tag("b")) or tag("c") and country = "AT""#,
    ])
    func `a richer audience has none`(source: String) throws {
        #expect(try Self.sentence(source) == nil)
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        campaign.audience = Audience(source: source, expression: try #require(AudienceParser.parse(source).0))
        #expect(campaign.audienceSummary.code == source && campaign.audienceSummary.sentence == nil)
    }

    @Test func `an audience by SQL is shown as its text`() {
        var campaign = Campaign(name: "c", topic: "t", pushType: .alert, template: "t")
        campaign.audienceSQL = "SELECT id FROM device_view"
        #expect(campaign.audienceSummary.code == "SELECT id FROM device_view")
    }

    @Test(arguments: [
        ("breaking-news", "devices not tagged news-off and with app version 3 or later"),
        (
            "new-podcast",
            "English, German, Portuguese, Spanish, French, Japanese and Chinese (Traditional) devices in segment "
                + "podcast-fans, with app version 4.2 or later and seen in the last 90 days"
        ),
        ("refresh-episodes", "devices seen in the last 14 days and with app version 4 or later"),
    ])
    func `the example campaigns have sentences`(name: String, sentence: String) throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path
        let found = CampaignFolder(campaigns: "\(root)/campaigns", templates: "\(root)/templates")
            .source(path: "\(root)/campaigns/\(name).yaml")
        #expect(found?.campaign.audienceSummary.sentence == sentence)
    }

    @Test func `languages and countries have English names`() throws {
        for (tag, name) in [
            ("de", "German"), ("zh-Hans", "Chinese (Simplified)"), ("pt-br", "Portuguese (Brazil)"),
            ("sr-Latn-RS", "Serbian (Latin, Serbia)"), ("fil", "Filipino"), ("qq", "qq"),
        ] {
            #expect(EnglishNames.language(try #require(LocaleTag(tag))) == name)
        }
        for (code, name) in [("DE", "Germany"), ("us", "United States"), ("GB", "United Kingdom"), ("QQ", "QQ")] {
            #expect(EnglishNames.country(code) == name)
        }
    }
}
