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
        let device = TokenRegistration(generation: now, registeredAt: registeredAfter.map { noon + .milliseconds($0) })
        #expect(TokenVerdict.holds(generation: sent, at: noon, for: device) == holds)
    }

    /// Milliseconds after the verdict's moment; what the app says of a registration passes over what we heard and saw.
    @Test(
        arguments: [
            (nil, nil, nil, true), (nil, -1, nil, true), (nil, 0, nil, true), (nil, 1, nil, false),
            (nil, nil, -1, true), (nil, nil, 0, true), (nil, nil, 1, false),
            (nil, -1, 1, true), (nil, 1, -1, false), (-1, 1, 1, true), (1, -1, -1, false),
        ] as [(Int?, Int?, Int?, Bool)])
    func `without a registration's time the moment it was last heard of stands for it`(
        registered: Int?, heard: Int?, seen: Int?, holds: Bool
    ) {
        func moment(_ milliseconds: Int?) -> Timestamp? { milliseconds.map { noon + .milliseconds($0) } }
        let device = TokenRegistration(
            generation: 1, registeredAt: moment(registered), heardAt: moment(heard), lastSeenAt: moment(seen))
        #expect(TokenVerdict.holds(generation: 1, at: noon, for: device) == holds)
    }
}
