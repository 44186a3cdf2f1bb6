import Foundation

extension SimulatorTests.Refusals {
    /// A row whose provider token alone is wrong.
    private static func token(
        _ what: String, _ reason: String, status: Int = 403,
        _ token: @escaping @Sendable (TestKey, _ now: Int) throws -> String
    ) -> Row {
        Row(what, status, reason) { request, fixture in
            request["authorization"] = "bearer \(try token(fixture.key, Fixture.seconds()))"
        }
    }

    static let credentialRows = [
        Row("no header", 403, "MissingProviderToken") { request, _ in request["authorization"] = nil },
        Row("no token", 403, "MissingProviderToken") { request, _ in request["authorization"] = "bearer" },
        Row("another scheme", 403, "MissingProviderToken") { request, _ in request["authorization"] = "basic abc" },
        token("not three parts", "InvalidProviderToken") { _, _ in "abc.def" },
        token("no base64", "InvalidProviderToken") { key, now in "!" + (try key.token(issuedAt: now)) },
        token("another algorithm", "InvalidProviderToken") { key, now in
            try key.token(
                header: #"{"alg":"HS256","kid":"ABC123DEFG"}"#, claims: #"{"iss":"DEF123GHIJ","iat":\#(now)}"#)
        },
        token("no kid", "InvalidProviderToken") { key, now in
            try key.token(header: #"{"alg":"ES256"}"#, claims: #"{"iss":"DEF123GHIJ","iat":\#(now)}"#)
        },
        token("key and team swapped", "InvalidProviderToken") { key, now in
            try key.token(issuedAt: now, keyID: TestKey.teamID, teamID: TestKey.keyID)
        },
        token("another team", "InvalidProviderToken") { key, now in
            try key.token(issuedAt: now, teamID: "ZZZ123GHIJ")
        },
        token("another key's signature", "InvalidProviderToken") { _, now in try TestKey().token(issuedAt: now) },
        token("a broken signature", "InvalidProviderToken") { key, now in
            try key.token(issuedAt: now, signature: .broken)
        },
        token("a DER signature", "InvalidProviderToken") { key, now in try key.token(issuedAt: now, signature: .der) },
        token("iat as text", "InvalidProviderToken") { key, now in
            try key.token(
                header: #"{"alg":"ES256","kid":"ABC123DEFG"}"#, claims: #"{"iss":"DEF123GHIJ","iat":"\#(now)"}"#)
        },
        token("iat in milliseconds", "InvalidProviderToken") { key, now in try key.token(issuedAt: now * 1000) },
        token("iat two hours ahead", "InvalidProviderToken") { key, now in try key.token(issuedAt: now + 7200) },
        token("more than an hour old", "ExpiredProviderToken") { key, now in try key.token(issuedAt: now - 3700) },
        token("a key of the sandbox", "BadEnvironmentKeyIdInToken") { key, now in
            try key.token(issuedAt: now, keyID: "SANDBOXKEY")
        },
    ]
}
