/// A signed JWT as the value of `authorization`.
package struct ProviderToken: Hashable, Sendable {
    /// `bearer <jwt>`. A secret for up to an hour: never log it.
    package let authorization: [UInt8]
    /// Milliseconds since 1970 by the wall clock.
    package let signedAt: Int64
    /// Counts the tokens of one source from 1.
    package let generation: Int
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

    /// Identifiers are ten letters and digits; anything else stays valid JSON and is refused by APNs.
    private static func quoted(_ text: String) -> String {
        let safe = text.unicodeScalars.filter { $0.value >= 0x20 && $0 != "\"" && $0 != "\\" }
        return "\"\(String(String.UnicodeScalarView(safe)))\""
    }
}
