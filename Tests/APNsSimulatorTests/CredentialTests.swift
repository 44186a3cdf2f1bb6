import APNsSimulator
import Foundation
import Testing

extension SimulatorTests {
    @Suite struct Credentials {
        @Test func `another key on the same connection is unrelated`() throws {
            let fixture = try Fixture { options, key in
                options.keys.append(SimulatorKey(keyID: "SECOND4KEY", teamID: TestKey.teamID, pem: key.pem))
            }
            let client = try fixture.client()
            #expect(try client.answer(to: fixture.push()).status == 200)
            let second = try fixture.key.token(issuedAt: Fixture.seconds(), keyID: "SECOND4KEY")
            let answer = try client.answer(to: fixture.push().with("authorization", "bearer \(second)"))
            #expect(answer.status == 403)
            #expect(answer.reason == "UnrelatedKeyIdInToken")
        }

        @Test(arguments: [0, 1, 3])
        func `tokens that change too often are refused, the one in use goes on`(tolerated: Int) throws {
            let fixture = try Fixture { options, _ in options.tokenUpdatesTolerated = tolerated }
            let client = try fixture.client()
            let first = try fixture.push()
            #expect(try client.answer(to: first).status == 200)
            for seconds in 0..<tolerated {
                let token = try fixture.authorization(secondsAgo: 2 + seconds)
                #expect(try client.answer(to: first.with("authorization", "bearer \(token)")).status == 200)
            }
            let token = try fixture.authorization(secondsAgo: 60)
            let answer = try client.answer(to: first.with("authorization", "bearer \(token)"))
            #expect(answer.status == 429)
            #expect(answer.reason == "TooManyProviderTokenUpdates")
            #expect(try client.answer(to: first).status == 200)
        }

        @Test func `a token renewed after 45 minutes is no update too many`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            let old = try fixture.authorization(secondsAgo: 45 * 60)
            #expect(try client.answer(to: fixture.push().with("authorization", "bearer \(old)")).status == 200)
            #expect(try client.answer(to: fixture.push()).status == 200)
        }

        @Test func `the same claims signed again are the same token`() throws {
            let fixture = try Fixture()
            let client = try fixture.client()
            let requests = try (0..<3).map { _ in try fixture.push() }
            #expect(Set(requests.map { $0["authorization"] }).count == 3)
            for request in requests { #expect(try client.answer(to: request).status == 200) }
        }

        @Test func `a lenient simulator takes what the real one was seen to take`() throws {
            let fixture = try Fixture { options, _ in options.isLenientWithTokens = true }
            let now = Fixture.seconds()
            let der = try fixture.key.token(issuedAt: now, signature: .der)
            let text = try fixture.key.token(
                header: #"{"alg":"ES256","kid":"ABC123DEFG"}"#, claims: #"{"iss":"DEF123GHIJ","iat":"\#(now)"}"#)
            for value in ["bearer \(der)", "bearer \(text)", "Bearer \(try fixture.authorization())"] {
                #expect(try fixture.client().answer(to: fixture.push().with("authorization", value)).status == 200)
            }
            let broken = try fixture.key.token(issuedAt: now, signature: .broken)
            let answer = try fixture.client().answer(to: fixture.push().with("authorization", "bearer \(broken)"))
            #expect(answer.reason == "InvalidProviderToken")
        }

        @Test func `a clock ahead of ours makes young tokens expired`() throws {
            let fixture = try Fixture { options, _ in options.clockOffsetMs = 3 * 3_600_000 }
            #expect(try fixture.client().answer(to: fixture.push()).reason == "ExpiredProviderToken")
        }

        @Test func `a key without private half verifies too`() throws {
            let fixture = try Fixture { options, key in options.keys[0].pem = try Self.publicHalf(of: key.pem) }
            #expect(fixture.key.pem.contains("PRIVATE"))
            #expect(try fixture.client().answer(to: fixture.push()).status == 200)
        }

        private static func publicHalf(of pem: String) throws -> String {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = ["openssl", "pkey", "-pubout"]
            let input = Pipe()
            let output = Pipe()
            process.standardInput = input
            process.standardOutput = output
            try process.run()
            try input.fileHandleForWriting.write(contentsOf: Data(pem.utf8))
            try input.fileHandleForWriting.close()
            let data = try output.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            return String(decoding: data, as: UTF8.self)
        }
    }
}

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
