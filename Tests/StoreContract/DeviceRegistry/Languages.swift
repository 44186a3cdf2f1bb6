import Model
import Store
import TestSupport
import Testing

extension DeviceRegistryContract {
    @PromiseList static var languages: [Promise] {
        Promise("`locale in` selects the devices that the range selects by the rule for texts, and no others") {
            store in
            let tags = try Self.tags()
            let records = try tags.enumerated().map { index, tag in
                try record(index + 1) { $0.locale = tag.description }
            }
            _ = try await store.importDevices(records + [try record(tags.count + 1)], now: noon)
            var selectedBySomeOther = 0
            // Every fifth of them has each language and each ending, since 37 endings are no multiple of five.
            let step = Nightly.isOn ? 1 : 5
            for range in stride(from: 0, to: tags.count, by: step).map({ tags[$0] }) {
                let expected = tags.filter { range.selects($0) }.map(\.description)
                let found = Collected<StoredDevice>()
                _ = try await store.exportDevices(
                    topic: wendercast, matching: .oneOf(.locale, [.locale(range)]), now: noon
                ) { found.add($0) }
                try #require(found.all.compactMap(\.record.locale) == expected, "\(range)")
                if expected.contains(where: { !$0.hasPrefix(range.description) }) { selectedBySomeOther += 1 }
            }
            // The rule is more than a comparison of texts.
            #expect(selectedBySomeOther > 50 / step)
        }
        Promise("several ranges select what any of them selects") { store in
            let tags = try Self.tags()
            let records = try tags.enumerated().map { index, tag in
                try record(index + 1) { $0.locale = tag.description }
            }
            _ = try await store.importDevices(records, now: noon)
            let ranges = ["zh-Hant", "es-419", "en-001", "he", "fil", "sr-Latn", "de"].compactMap { LocaleTag($0) }
            let expected = tags.filter { tag in ranges.contains { $0.selects(tag) } }.count
            let audience = AudienceExpression.oneOf(.locale, ranges.map(AudienceValue.locale))
            let reach = try await store.reach(of: audience, topic: wendercast, pushType: .background, now: noon)
            #expect(reach.total == expected)
            let others = try await store.reach(of: .not(audience), topic: wendercast, pushType: .background, now: noon)
            #expect(others.total == tags.count - expected)
        }
    }

    /// Languages of several scripts, of followed regions, out of use, unknown, each with whatever may stand behind it.
    private static func tags() throws -> [LocaleTag] {
        let languages = [
            "zh", "cmn", "yue", "sr", "sh", "az", "uz", "mn", "pa", "de", "den", "en", "es", "pt", "no", "nb", "nn",
            "he",
            "iw", "id", "in", "fil", "tl", "ro", "mo", "xx",
        ]
        let endings = [
            "", "-Hans", "-Hant", "-Latn", "-Cyrl", "-Hebr", "-TW", "-HK", "-MO", "-CN", "-US", "-Hant-MO", "-Hans-MO",
            "-ME", "-Latn-ME", "-RS", "-419", "-MX", "-Latn-MX", "-001", "-150", "-GB", "-DE", "-BR", "-PT", "-AO",
            "-NO",
            "-IL", "-ID", "-PH", "-RO", "-1996", "-TW-u-ca-roc", "-Hant-TW-u-ca-roc", "-u-ca-roc", "-yue", "-Xxxx-XX",
        ]
        return try languages.flatMap { language in
            try endings.map { try #require(LocaleTag(language + $0)) }
        }
    }
}
