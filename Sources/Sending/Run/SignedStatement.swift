import APNs
import Foundation
package import Model

/// What a person signs with a key of their own, where they have no account here: the bytes of ``text``, by Ed25519.
package struct SignedStatement: Sendable {
    /// Ends in a newline. It names the request, so that it is good for no later one of the same plan.
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

    /// The account in `people` whose key made the signature; nil: none of them.
    package func signer(_ signature: [UInt8], among people: People) -> String? {
        people.identities.values.joined().sorted().first { identity in
            guard let key = Self.key(identity) else { return false }
            return Ed25519.isValid(signature, of: Array(text.utf8), by: key)
        }
    }

    /// The raw public key of `ed25519:BASE64`.
    private static func key(_ identity: String) -> [UInt8]? {
        guard identity.hasPrefix(People.keyPrefix) else { return nil }
        return Data(base64Encoded: String(identity.dropFirst(People.keyPrefix.count))).map(Array.init)
    }
}
