import Foundation
package import Model
import Platform

/// The text that a person without an account signs with their own Ed25519 key. The bytes of ``text`` are signed.
package struct SignedStatement: Sendable {
    /// The statement, which ends in a newline. It names the request, so that it is not valid for a later request of the
    /// same plan.
    package let text: String

    package init(_ request: ApprovalRequest) {
        text = """
            fanfare plan approval
            campaign \(request.campaign)
            occurrence \(request.occurrence.isEmpty ? "-" : request.occurrence)
            plan \(request.plan)
            digest \(request.digest)
            request \(request.id) of \(request.askedAt.iso8601)

            """
    }

    /// Returns the account in `people` whose key made the signature, or `nil` if there is none.
    package func signer(_ signature: [UInt8], among people: People) -> String? {
        people.identities.values.joined().sorted().first { identity in
            guard let key = Self.key(identity) else { return false }
            return Ed25519.isValid(signature, of: Array(text.utf8), by: key)
        }
    }

    /// Returns the raw public key of an identity `ed25519:BASE64`; `nil` for any other identity.
    private static func key(_ identity: String) -> [UInt8]? {
        guard identity.hasPrefix(People.keyPrefix) else { return nil }
        return Data(base64Encoded: String(identity.dropFirst(People.keyPrefix.count))).map(Array.init)
    }
}
