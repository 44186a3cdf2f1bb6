/// The accounts of each person: `anna: [os:anna, token:anna-mac, git:anna@example.org]`, with tokens by name only.
package struct People: Hashable, Sendable {
    /// The prefix of a public key in Base64, with which a person signs without an account.
    package static let keyPrefix = "ed25519:"

    /// The accounts, by person.
    package var identities: [String: [String]]

    package init(_ identities: [String: [String]] = [:]) { self.identities = identities }

    /// Returns the person with this account. An account that `people` does not list is a separate person, named after
    /// it.
    package func person(_ identity: String) -> String {
        owner(of: identity) ?? AccountName.canonical(identity)
    }

    /// Tells whether an account may count as a person: a listed account, or any account if none is listed. A key counts
    /// only if it is listed.
    package func knows(_ identity: String) -> Bool {
        if identities.isEmpty { return !identity.hasPrefix(Self.keyPrefix) }
        return owner(of: identity) != nil
    }

    private func owner(of identity: String) -> String? {
        identities.first { $0.value.contains { AccountName.isSame($0, identity) } }?.key
    }
}

/// `people` as written in the configuration, where an access token may be given by its name or by its id (`token:#17`).
///
/// Only the store knows the name of the token with an id. All code that looks up a person gets a ``People`` from
/// ``people(tokenNames:)``, so no code can overlook an id.
package struct ConfiguredPeople: Hashable, Sendable {
    private static let tokenPrefix = "token:"

    /// The accounts, by person.
    package var identities: [String: [String]]

    package init(_ identities: [String: [String]] = [:]) { self.identities = identities }

    /// The ids of tokens that `people` lists.
    package var tokenIDs: Set<Int64> {
        Set(identities.values.joined().compactMap(Self.tokenID))
    }

    /// The names of tokens that `people` lists.
    package var tokenNames: Set<String> {
        Set(identities.values.joined().filter { $0.hasPrefix(Self.tokenPrefix) && Self.tokenID($0) == nil })
    }

    /// Returns the accounts, with tokens by name.
    ///
    /// - Parameter tokenNames: the names of those tokens in ``tokenIDs`` that exist. An id without a name is no
    ///   account.
    package func people(tokenNames: [Int64: String]) -> People {
        People(
            identities.mapValues { accounts in
                accounts.map { account in
                    Self.tokenID(account).flatMap { tokenNames[$0] }.map { Self.tokenPrefix + $0 } ?? account
                }
            })
    }

    /// Returns the person to whom a token of this name would belong; `nil` if `people` does not name it.
    package func person(ofTokenNamed name: String) -> String? {
        identities.first { $0.value.contains { AccountName.isSame($0, Self.tokenPrefix + name) } }?.key
    }

    /// Returns the id in `token:#17`; `nil` for any other account.
    package static func tokenID(_ account: String) -> Int64? {
        guard account.hasPrefix(tokenPrefix + "#") else { return nil }
        let digits = account.dropFirst(tokenPrefix.count + 1)
        guard let id = Int64(digits), id > 0, digits.utf8.elementsEqual("\(id)".utf8) else { return nil }
        return id
    }
}
