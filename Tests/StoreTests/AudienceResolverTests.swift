import Model
@testable import Store
import Testing

struct AudienceResolverTests {
    private static func resolve(
        _ expression: AudienceExpression, segments: [String: AudienceExpression] = [:]
    ) throws -> ResolvedAudience {
        var resolver = AudienceResolver(now: Timestamp(milliseconds: 0)) { name in
            SegmentEntry(id: 1, expression: segments[name])
        }
        return try resolver.resolve(expression)
    }

    @Test func `what is said twice is asked once, and brackets within the same word are none`() throws {
        let (a, b, c) = (AudienceExpression.tag("a"), AudienceExpression.tag("b"), AudienceExpression.tag("c"))
        #expect(try Self.resolve(.any([a, .any([b, a]), b])) == .any([.tagged("a"), .tagged("b")]))
        #expect(try Self.resolve(.all([a, .all([a])])) == .tagged("a"))
        #expect(
            try Self.resolve(.all([.any([a, b]), c, .any([a, b])]))
                == .all([.any([.tagged("a"), .tagged("b")]), .tagged("c")]))
        #expect(try Self.resolve(.not(.any([a, a]))) == .not(.tagged("a")))
    }

    @Test func `segments that name each other come to what they say, not to how often`() throws {
        var segments: [String: AudienceExpression] = ["s0": .any([.tag("a"), .tag("b")])]
        for level in 1...5 {
            let inner = AudienceExpression.segment("s\(level - 1)")
            segments["s\(level)"] = .any([inner, .all([inner, inner]), inner])
        }
        #expect(try Self.resolve(.segment("s5"), segments: segments) == .any([.tagged("a"), .tagged("b")]))
    }
}
