/// The provider tokens of one connection: which were verified, to which key it is bound, and how often they changed.
struct TokenSession {
    private struct Seen {
        var text: [UInt8]
        var token: ProviderToken
        var firstUsedMs: Int64
    }

    private static let lifetimeSeconds: Int64 = 3600
    private static let updateIntervalSeconds: Int64 = 20 * 60
    private static let seenMax = 32

    private var seen: [Seen] = []
    private var current = 0

    /// The key of the token that passed last.
    var key: VerificationKey? { seen.isEmpty ? nil : seen[current].token.key }

    /// Why APNs refuses this `authorization`; nil when it does not. A token is verified once per connection and then
    /// known by its bytes.
    mutating func refusal(
        of authorization: UnsafeRawBufferPointer?, policy: SimulatorPolicy, environment: SimulatorEnvironment,
        nowMs: Int64
    ) -> SimulatorReason? {
        guard let text = bearer(authorization, lenient: policy.isLenientWithTokens) else {
            return .missingProviderToken
        }
        if let index = index(of: text) {
            current = index
            return fault(in: seen[index].token, policy, nowMs)
        }
        guard let token = ProviderToken(text, keys: policy.keys, lenient: policy.isLenientWithTokens) else {
            return .invalidProviderToken
        }
        guard token.key.key.environments.contains(environment) else { return .badEnvironmentKeyIdInToken }
        if let first = seen.first {
            guard first.token.key.key.teamID == token.key.key.teamID else { return .invalidProviderToken }
            guard first.token.key === token.key else { return .unrelatedKeyIdInToken }
        }
        if let fault = fault(in: token, policy, nowMs) { return fault }
        guard updates(with: token, nowMs) <= policy.tokenUpdatesTolerated else { return .tooManyProviderTokenUpdates }
        if seen.count == Self.seenMax { seen.remove(at: 1) }
        seen.append(Seen(text: Array(text), token: token, firstUsedMs: nowMs))
        current = seen.count - 1
        return nil
    }

    private func fault(in token: ProviderToken, _ policy: SimulatorPolicy, _ nowMs: Int64) -> SimulatorReason? {
        let now = nowMs / 1000
        if token.issuedAt > now + Int64(policy.tokenClockSkewSeconds) { return .invalidProviderToken }
        return token.issuedAt < now - Self.lifetimeSeconds ? .expiredProviderToken : nil
    }

    /// How many others were new within 20 minutes of `token`, in use on this connection as well as by `iat`: a token of
    /// 45 minutes that was renewed is no fault of a connection that had just been opened with the old one.
    private func updates(with token: ProviderToken, _ nowMs: Int64) -> Int {
        seen.count { other in
            other.token.signedPart != token.signedPart
                && nowMs - other.firstUsedMs < Self.updateIntervalSeconds * 1000
                && abs(token.issuedAt - other.token.issuedAt) < Self.updateIntervalSeconds
        }
    }

    private func index(of text: UnsafeRawBufferPointer) -> Int? {
        if !seen.isEmpty, text.isEqual(to: seen[current].text) { return current }
        return seen.firstIndex { text.isEqual(to: $0.text) }
    }

    private func bearer(_ authorization: UnsafeRawBufferPointer?, lenient: Bool) -> UnsafeRawBufferPointer? {
        guard let authorization, authorization.count > Self.scheme.count else { return nil }
        let isBearer = authorization.hasPrefix(Self.scheme) || lenient && authorization.hasPrefix(Self.capitalScheme)
        return isBearer ? UnsafeRawBufferPointer(rebasing: authorization[Self.scheme.count...]) : nil
    }

    private static let scheme = Array("bearer ".utf8)
    private static let capitalScheme = Array("Bearer ".utf8)
}
