import Model
import Store
import Testing

extension ProviderTokenLogContract {
    private static let key = ProviderKey(teamID: "DEF123GHIJ", keyID: "ABC123DEFG", fingerprint: "00ff")

    private static func token(_ number: Int, signedAt: Timestamp = noon) -> StoredProviderToken {
        StoredProviderToken(
            token: "bearer \(number)", signedAt: signedAt, heldUntil: signedAt + .seconds(1200), bootID: "boot",
            sinceBoot: .milliseconds(123_456 + number))
    }

    @PromiseList static var tokens: [Promise] {
        Promise("a provider token comes back as it was put there, for its key alone") { store in
            let none = try await store.providerToken(of: key)
            #expect(none == nil)
            #expect(try await store.replaceProviderToken(nil, with: token(1), of: key) == token(1))
            #expect(try await store.providerToken(of: key) == token(1))
            for other in [
                ProviderKey(teamID: "XXX123GHIJ", keyID: key.keyID, fingerprint: key.fingerprint),
                ProviderKey(teamID: key.teamID, keyID: "XXX123DEFG", fingerprint: key.fingerprint),
                ProviderKey(teamID: key.teamID, keyID: key.keyID, fingerprint: "ff00"),
            ] {
                #expect(try await store.providerToken(of: other) == nil)
            }
        }
        Promise("of several that replace the same provider token one wins, and all are told which") { store in
            _ = try await store.replaceProviderToken(nil, with: token(0), of: key)
            let found = try await withThrowingTaskGroup(of: StoredProviderToken.self) { group in
                for number in 1...20 {
                    group.addTask {
                        try await store.replaceProviderToken(Self.token(0), with: Self.token(number), of: key)
                    }
                }
                return try await group.reduce(into: Set<StoredProviderToken>()) { $0.insert($1) }
            }
            #expect(found.count == 1)
            #expect(try await store.providerToken(of: key) == found.first)
        }
        Promise(
            "the first provider token of a key is put on record once, seen by every process",
            opening: { stores in
                let (left, right) = (try await stores.open(), try await stores.open())
                #expect(try await left.replaceProviderToken(nil, with: token(1), of: key) == token(1))
                #expect(try await right.replaceProviderToken(nil, with: token(2), of: key) == token(1))
                #expect(try await right.providerToken(of: key) == token(1))
            })
        Promise("a provider token that everybody is to keep meanwhile is not replaced by who knows not") { store in
            _ = try await store.replaceProviderToken(nil, with: token(1), of: key)
            var held = token(1)
            held.heldUntil = noon + .seconds(3000)
            #expect(try await store.replaceProviderToken(token(1), with: held, of: key) == held)
            #expect(try await store.replaceProviderToken(token(1), with: token(2), of: key) == held)
            #expect(try await store.replaceProviderToken(held, with: token(2), of: key) == token(2))
        }
        Promise("provider tokens that are long of no use are forgotten") { store in
            let old = ProviderKey(teamID: key.teamID, keyID: "OLD123DEFG", fingerprint: "0000")
            _ = try await store.replaceProviderToken(nil, with: token(1), of: old)
            _ = try await store.replaceProviderToken(nil, with: token(2, signedAt: noon + .seconds(3600)), of: key)
            #expect(try await store.providerToken(of: old) == token(1))
            let later = token(3, signedAt: noon + .seconds(2 * 86_400))
            _ = try await store.replaceProviderToken(try await store.providerToken(of: key), with: later, of: key)
            #expect(try await store.providerToken(of: old) == nil)
            #expect(try await store.providerToken(of: key) == later)
        }
    }
}
