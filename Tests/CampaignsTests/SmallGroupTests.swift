import Model
import Testing

@testable import Campaigns

/// Groups of a report that are too small to be shown.
struct SmallGroupTests {
    private static func merged(_ groups: KeyValuePairs<String, (Int, Int)>) -> [String] {
        SmallGroups.merged(groups.map { (name: $0.key, share: Proportion($0.value.0, of: $0.value.1)) })
            .map { "\($0.name) \($0.share.count)/\($0.share.total)" }
    }

    @Test func `groups of 20 devices stay, and smaller ones are merged`() {
        #expect(Self.merged(["en": (5, 20), "de": (9, 90)]) == ["en 5/20", "de 9/90"])
        #expect(
            Self.merged(["en": (5, 50), "de": (9, 90), "fr": (1, 15), "ja": (2, 12)])
                == ["en 5/50", "de 9/90", "other 3/27"])
        #expect(Self.merged(["en": (5, 50), "de": (0, 0)]) == ["en 5/50"])
        #expect(Self.merged([:]) == [])
    }

    @Test func `one small group cannot be computed from the others`() {
        #expect(Self.merged(["en": (5, 50), "de": (9, 90), "fr": (1, 3)]) == ["de 9/90", "other 6/53"])
        #expect(Self.merged(["en": (1, 5), "de": (2, 3)]) == ["other 3/8"])
    }
}
