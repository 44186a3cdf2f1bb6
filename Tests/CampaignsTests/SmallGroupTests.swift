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

    @Test func `hidden groups have 20 devices together, or no group is shown`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let sizes = (0..<Int.random(in: 0...5, using: &generator)).map { _ in
                Int.random(in: 0...45, using: &generator)
            }
            let groups = sizes.enumerated().map { (name: "\($0)", share: Proportion(0, of: $1)) }
            let (shown, hidden) = SmallGroups.split(groups)
            let sum = hidden.reduce(0) { $0 + $1.share.total }
            #expect(shown.allSatisfy { $0.share.total >= 20 } && hidden.allSatisfy { $0.share.total > 0 }, "\(sizes)")
            #expect(shown.isEmpty || hidden.isEmpty || sum >= 20, "\(sizes)")
            let all = groups.filter { $0.share.total > 0 }
            #expect((shown + hidden).map(\.name).sorted() == all.map(\.name), "\(sizes)")
            // No large group is hidden without need.
            let small = sizes.filter { 1..<20 ~= $0 }
            if small.isEmpty || small.reduce(0, +) >= 20 { #expect(hidden.count == small.count, "\(sizes)") }
        }
    }

    @Test func `one small group cannot be computed from the others`() {
        #expect(Self.merged(["en": (5, 50), "de": (9, 90), "fr": (1, 3)]) == ["de 9/90", "other 6/53"])
        #expect(Self.merged(["en": (1, 5), "de": (2, 3)]) == ["other 3/8"])
    }
}
