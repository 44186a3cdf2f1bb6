import Model
import Store
import Testing

struct VerdictTests {
    @Test(
        arguments: [
            ("BadDeviceToken", TokenVerdict.mismatched), ("DeviceTokenNotForTopic", .mismatched),
            ("Unregistered", .gone),
            ("ExpiredToken", .gone), ("PayloadTooLarge", nil), ("", nil), ("badDeviceToken", nil),
        ] as [(String, TokenVerdict?)])
    func `a reason says one thing about the token, or nothing`(reason: String, expected: TokenVerdict?) {
        #expect(TokenVerdict(reason: reason) == expected)
    }

    @Test(
        arguments: [
            (1, 1, nil, true), (1, 1, -1, true), (1, 1, 0, true), (1, 1, 1, false), (1, 2, nil, false),
            (2, 1, nil, false),
        ] as [(Int, Int, Int?, Bool)])
    func `a verdict holds for the token it is about, unless registered again since`(
        sent: Int, now: Int, registeredAfter: Int?, holds: Bool
    ) {
        let registeredAt = registeredAfter.map { noon + .milliseconds($0) }
        #expect(
            TokenVerdict.holds(generation: sent, at: noon, forGeneration: now, registeredAt: registeredAt) == holds)
    }
}
