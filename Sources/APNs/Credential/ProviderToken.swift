import Platform

/// A signed JWT as the value of `authorization`.
package struct ProviderToken: Hashable, Sendable {
    /// `bearer <jwt>`. A secret for up to an hour: never log it.
    package let authorization: [UInt8]
    /// Milliseconds since 1970 by the wall clock.
    package let signedAt: Int64
    /// The number of the token within one source, from 1.
    package let generation: Int

    var text: String { String(decoding: authorization, as: UTF8.self) }
}

extension ProviderToken {
    /// Signs a token in the form of `ProviderProtocol` section 3: compact JSON, `iat` in whole seconds.
    init(
        signedWith key: SigningKey, teamID: String, keyID: String, at moment: Int64, generation: Int
    ) throws(CredentialError) {
        let header = #"{"alg":"ES256","kid":\#(Self.quoted(keyID))}"#
        let claims = #"{"iss":\#(Self.quoted(teamID)),"iat":\#(moment / 1000)}"#
        let dot = UInt8(ascii: ".")
        let signed = Base64URL.encode(Array(header.utf8)) + [dot] + Base64URL.encode(Array(claims.utf8))
        let signature = try key.signature(over: signed)
        authorization = Array("bearer ".utf8) + signed + [dot] + Base64URL.encode(signature)
        signedAt = moment
        self.generation = generation
    }

    /// Returns the value of `authorization` for one request, with a new token that no other process shares.
    package static func authorization(
        signedWith key: SigningKey, teamID: String, keyID: String, at moment: Int64
    ) throws(CredentialError) -> String {
        try ProviderToken(signedWith: key, teamID: teamID, keyID: keyID, at: moment, generation: 1).text
    }

    /// Returns the text as a JSON string, without quotes, backslashes and control characters. Identifiers have ten
    /// letters and digits; APNs rejects any other text.
    private static func quoted(_ text: String) -> String {
        let safe = text.unicodeScalars.filter { $0.value >= 0x20 && $0 != "\"" && $0 != "\\" }
        return "\"\(String(String.UnicodeScalarView(safe)))\""
    }
}

/// A provider token as the store records it for all processes.
package struct SharedProviderToken: Hashable, Sendable {
    /// As ``ProviderToken/authorization``.
    package var authorization: String
    /// Milliseconds since 1970 by the wall clock.
    package var signedAt: Int64
    /// The time before which no process signs another token, by the same clock.
    package var heldUntil: Int64
    /// The id of the machine boot during which the token was signed.
    package var bootID: String
    /// The time of signing, counted from that boot.
    package var sinceBoot: Duration

    package init(authorization: String, signedAt: Int64, heldUntil: Int64, bootID: String, sinceBoot: Duration) {
        self.authorization = authorization
        self.signedAt = signedAt
        self.heldUntil = heldUntil
        self.bootID = bootID
        self.sinceBoot = sinceBoot
    }

    /// The time after signing during which no process may sign another token.
    var held: Duration { .milliseconds(heldUntil - signedAt) }
}

/// The shared storage of one key's provider token, for all processes that send with the key.
package protocol ProviderTokenSharing: Sendable {
    /// Returns the recorded token, or `nil` if none was signed yet.
    func current() async throws -> SharedProviderToken?

    /// Records `new`, unless another process has changed the record since `known` was read. Returns the resulting
    /// record.
    func replace(_ known: SharedProviderToken?, with new: SharedProviderToken) async throws -> SharedProviderToken
}
