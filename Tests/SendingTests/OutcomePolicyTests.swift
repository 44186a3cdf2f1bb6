import APNs
import Sending
import Testing

/// `ProviderProtocol` section 7, row by row.
@Suite struct `Outcome policy` {
    struct Case: Sendable, CustomTestStringConvertible {
        var status: Int
        var reason: String?
        var row: OutcomePolicy.Row
        var testDescription: String { "\(status) \(reason ?? "no reason")" }

        init(_ status: Int, _ reason: String?, _ row: OutcomePolicy.Row) {
            self.status = status
            self.reason = reason
            self.row = row
        }
    }

    static let requestFault = OutcomePolicy.Row.untouched(.retry(.none), .requestFault)
    static let credentialFault = OutcomePolicy.Row.untouched(.retry(.none), .credentialFault)

    static let documented: [Case] = [
        Case(400, "BadDeviceToken", .refused(.rejected, .environmentMismatch)),
        Case(400, "DeviceTokenNotForTopic", .refused(.rejected, .environmentMismatch)),
        Case(400, "BadCollapseId", requestFault),
        Case(400, "BadExpirationDate", requestFault),
        Case(400, "BadMessageId", requestFault),
        Case(400, "BadPriority", requestFault),
        Case(400, "BadTopic", requestFault),
        Case(400, "DuplicateHeaders", requestFault),
        Case(400, "InvalidPushType", requestFault),
        Case(400, "MissingDeviceToken", requestFault),
        Case(400, "MissingTopic", requestFault),
        Case(400, "PayloadEmpty", requestFault),
        Case(400, "TopicDisallowed", requestFault),
        Case(400, "IdleTimeout", .untouched(.retry(.none))),
        Case(403, "BadCertificate", credentialFault),
        Case(403, "BadCertificateEnvironment", credentialFault),
        Case(403, "ExpiredProviderToken", .untouched(.retry(.none), .refusedProviderToken)),
        Case(403, "InvalidProviderToken", credentialFault),
        Case(403, "MissingProviderToken", credentialFault),
        Case(403, "UnrelatedKeyIdInToken", .untouched(.retry(.none), .refusedProviderToken)),
        Case(403, "BadEnvironmentKeyIdInToken", credentialFault),
        Case(403, "Forbidden", credentialFault),
        Case(404, "BadPath", requestFault),
        Case(405, "MethodNotAllowed", requestFault),
        Case(410, "Unregistered", .refused(.rejected, .tokenGone)),
        Case(410, "ExpiredToken", .refused(.rejected, .tokenGone)),
        Case(413, "PayloadTooLarge", .refused(.rejected)),
        Case(429, "TooManyRequests", .refused(.retry(.device))),
        Case(429, "TooManyProviderTokenUpdates", .untouched(.retry(.credential))),
        Case(500, "InternalServerError", .init(.retry(.service))),
        Case(503, "ServiceUnavailable", .init(.retry(.service))),
        Case(503, "Shutdown", .init(.retry(.service))),
    ]

    static let undocumented: [Case] = [
        Case(200, nil, .init(.accepted)),
        Case(400, "SomethingNew", requestFault),
        Case(400, nil, requestFault),
        Case(413, nil, requestFault),
        Case(451, "SomethingNew", requestFault),
        Case(403, "SomethingNew", credentialFault),
        Case(404, nil, requestFault),
        Case(405, nil, requestFault),
        Case(410, nil, requestFault),
        Case(410, "SomethingNew", requestFault),
        Case(410, "BadDeviceToken", requestFault),
        Case(410, "Unregistered…", requestFault),
        Case(400, "Unregistered", requestFault),
        Case(404, "ExpiredToken", requestFault),
        Case(404, "BadDeviceToken", requestFault),
        Case(429, "SomethingNew", .refused(.retry(.device))),
        Case(502, nil, .init(.retry(.service))),
        Case(599, "SomethingNew", .init(.retry(.service))),
        Case(302, nil, requestFault),
        Case(204, nil, requestFault),
        Case(299, "Unregistered", requestFault),
    ]

    @Test(arguments: documented + undocumented)
    func `each answer has its row`(expected: Case) {
        let answer = PushResponse(status: expected.status, reason: expected.reason.map { PushReason($0) })
        #expect(OutcomePolicy.row(for: .answered(answer)) == expected.row)
    }

    @Test func `every documented reason is in the table above`() {
        #expect(Set(Self.documented.compactMap(\.reason)) == Set(PushReason.known.map(\.name)))
        for entry in PushReason.known {
            #expect(Self.documented.first { $0.reason == entry.name }?.status == entry.status)
        }
    }

    /// Only an answer that says so proves that the device does not get it; only the push's own faults use up attempts.
    @Test(arguments: [
        (Case(429, "TooManyRequests", .refused(.retry(.device))), false, false),
        (Case(410, "Unregistered", .refused(.rejected, .tokenGone)), false, false),
        (Case(400, "BadTopic", requestFault), false, true),
        (Case(403, "InvalidProviderToken", credentialFault), false, true),
        (Case(500, "InternalServerError", .init(.retry(.service))), true, false),
        (Case(200, nil, .init(.accepted)), true, false),
    ])
    func `the budget is given back for what was refused, the attempt for what was not looked at`(
        expected: Case, mayHaveArrived: Bool, isExcused: Bool
    ) {
        let answer = PushResponse(status: expected.status, reason: expected.reason.map { PushReason($0) })
        let row = OutcomePolicy.row(for: .answered(answer))
        #expect(row.mayHaveArrived == mayHaveArrived && row.isExcused == isExcused)
    }

    /// A 5xx does not say whether the push was taken; every other status but 200 is a refusal.
    @Test(arguments: [204, 302, 400, 403, 404, 410, 413, 429, 500, 503])
    func `an answer that broke off says nothing of the device, the request or the credential`(status: Int) {
        let row = OutcomePolicy.row(for: .cutOff(status: status))
        #expect(row.decision == .retry(.service) && row.consequence == .none)
        #expect(row.isExcused == (status < 500) && row.mayHaveArrived == (status >= 500))
    }

    @Test(arguments: [TransportFault.deadline, .connectionLost("reset"), .streamRefused, .stopped, .unreachable("dns")])
    func `without an answer the transport's word decides`(fault: TransportFault) {
        #expect(OutcomePolicy.row(for: .unknown(fault)) == .init(.unknown))
        #expect(OutcomePolicy.row(for: .notSent(fault)) == .untouched(.retry(.none)))
    }
}
