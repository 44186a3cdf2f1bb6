import Foundation
import Testing
import TransportContract

@testable import APNs
import TestSupport

@Suite(.timeLimit(.minutes(10)))
struct ProviderTokenTests {
    let directory: TemporaryDirectory
    let key: SigningKey
    let time = ManualTime()

    init() throws {
        directory = try TemporaryDirectory()
        try OpenSSLCommand.makeSigningKey(at: directory.file("key.p8"))
        key = try SigningKey(path: directory.file("key.p8"))
    }

    private func source(jitter: Double = 0) -> ProviderTokenSource {
        ProviderTokenSource(
            key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: time.now, uptime: time.uptime,
            jitter: { jitter })
    }

    @Test func `a token is three parts with exactly the header and claims APNs wants`() throws {
        let token = try source().authorization()
        let text = String(decoding: token.authorization, as: UTF8.self)
        #expect(text.hasPrefix("bearer "))
        let parts = text.dropFirst("bearer ".count).split(separator: ".", omittingEmptySubsequences: false)
        try #require(parts.count == 3)
        #expect(decoded(parts[0]) == #"{"alg":"ES256","kid":"ABC123DEFG"}"#)
        #expect(decoded(parts[1]) == #"{"iss":"DEF123GHIJ","iat":1780000000}"#)
        #expect(parts[2].count == 86)
        #expect(!text.contains("="))
        #expect(token.signedAt == 1_780_000_000_000)
        #expect(token.generation == 1)
    }

    @Test func `the openssl command verifies a token's signature`() throws {
        let text = String(decoding: try source().authorization().authorization.dropFirst(7), as: UTF8.self)
        let dot = try #require(text.lastIndex(of: "."))
        try directory.write(String(text[..<dot]), to: "signed")
        let raw = try #require(data(text[text.index(after: dot)...]))
        try Data(DER.signature(raw: Array(raw))).write(to: URL(fileURLWithPath: directory.file("signature")))
        try OpenSSLCommand.run("pkey", "-in", directory.file("key.p8"), "-pubout", "-out", directory.file("public.pem"))
        let output = try OpenSSLCommand.run(
            "dgst", "-sha256", "-verify", directory.file("public.pem"), "-signature", directory.file("signature"),
            directory.file("signed"))
        #expect(output.contains("Verified OK"))
    }

    @Test(arguments: [(0.0, 45), (-1.0, 40), (1.0, 50), (9.0, 50)])
    func `a token is renewed at 45 minutes give or take five`(jitter: Double, minutes: Int) throws {
        let source = source(jitter: jitter)
        #expect(try source.authorization().generation == 1)
        time.advance(by: .seconds(minutes * 60 - 1))
        #expect(try source.authorization().generation == 1)
        time.advance(by: .seconds(1))
        let renewed = try source.authorization()
        #expect(renewed.generation == 2)
        #expect(renewed.signedAt == time.now())
    }

    @Test func `a wall clock that is set does not age a token`() throws {
        let source = source()
        let first = try source.authorization()
        time.setWall(by: .seconds(7200))
        #expect(try source.authorization() == first)
    }

    @Test func `an old token that APNs calls expired is renewed once`() throws {
        let source = source()
        let first = try source.authorization()
        time.advance(by: .seconds(30 * 60))
        source.markExpired(first.generation)
        source.markExpired(first.generation)
        #expect(try source.authorization().generation == 2)
        // A late answer to a request with the old token.
        source.markExpired(first.generation)
        #expect(try source.authorization().generation == 2)
    }

    @Test func `a young token that APNs calls expired means that our clock is wrong`() throws {
        let source = source()
        let first = try source.authorization()
        time.advance(by: .seconds(5))
        source.markExpired(first.generation)
        #expect(throws: CredentialError.clockWrong(tokenAgeSeconds: 5)) { try source.authorization() }
        time.advance(by: .seconds(1200))
        #expect(try source.authorization().generation == 2)
    }

    @Test(arguments: [3 * 3600, 61, -61, -3 * 3600])
    func `a young token is signed anew when the wall clock was put right meanwhile`(seconds: Int) throws {
        let source = source()
        let first = try source.authorization()
        time.setWall(by: .seconds(seconds))
        source.markExpired(first.generation)
        let second = try source.authorization()
        #expect(second.generation == 2)
        #expect(second.signedAt == first.signedAt + Int64(seconds) * 1000)
    }

    @Test(arguments: [60, -60]) func `a minute is no step of the wall clock`(seconds: Int) throws {
        let source = source()
        let first = try source.authorization()
        time.setWall(by: .seconds(seconds))
        source.markExpired(first.generation)
        #expect(throws: CredentialError.clockWrong(tokenAgeSeconds: 0)) { try source.authorization() }
    }

    @Test(arguments: [(30, 50), (42, 58)])
    func `after too many updates nothing is signed for 20 minutes, unless the token gets too old`(
        heldAtMinutes: Int, signedAtMinutes: Int
    ) throws {
        let source = source()
        _ = try source.authorization()
        time.advance(by: .seconds(heldAtMinutes * 60))
        source.holdRenewal()
        time.advance(by: .seconds((signedAtMinutes - heldAtMinutes) * 60 - 1))
        #expect(try source.authorization().generation == 1)
        time.advance(by: .seconds(1))
        #expect(try source.authorization().generation == 2)
    }

    @Test func `everybody who asks at once gets the same token`() async throws {
        let source = source()
        let generations = try await withThrowingTaskGroup(of: ProviderToken.self) { group in
            for _ in 0..<64 { group.addTask { try source.authorization() } }
            return try await group.reduce(into: Set<ProviderToken>()) { $0.insert($1) }
        }
        #expect(generations.count == 1)
    }

    private func decoded(_ part: Substring) -> String? {
        data(part).map { String(decoding: $0, as: UTF8.self) }
    }

    private func data(_ part: Substring) -> Data? {
        var text = part.replacing("-", with: "+").replacing("_", with: "/")
        while text.count % 4 != 0 { text += "=" }
        return Data(base64Encoded: String(text))
    }
}
