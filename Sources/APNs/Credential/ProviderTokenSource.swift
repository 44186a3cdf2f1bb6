import Glibc
import Synchronization

/// Gives out the one provider token of a key; make one source per (key, environment) and process.
///
/// APNs takes a token for an hour and wants no new one within 20 minutes (`ProviderProtocol` section 3). The age is
/// measured by a monotonic clock from the moment of signing; the wall clock only fills `iat`. Any thread may ask.
package final class ProviderTokenSource: Sendable {
    /// Age at which a token is replaced, before jitter.
    package static let renewalAge: Duration = .seconds(45 * 60)
    package static let renewalJitter: Duration = .seconds(5 * 60)
    /// APNs answers TooManyProviderTokenUpdates to new tokens within this time.
    package static let renewalIntervalMin: Duration = .seconds(20 * 60)
    /// Shortly before APNs takes a token no more.
    private static let ageMax: Duration = .seconds(58 * 60)
    /// A wall clock that moved by more than this since signing explains an expired young token.
    private static let clockDriftMax: Duration = .seconds(60)

    private struct State {
        var token: ProviderToken?
        /// By ``uptime``.
        var signedAt: Duration = .zero
        var renewalAge: Duration = .zero
        /// APNs called this generation expired.
        var expiredGeneration = 0
        /// APNs wants no new token before, by ``uptime``.
        var heldUntil: Duration = .zero
    }

    private let key: SigningKey
    private let teamID: String
    private let keyID: String
    private let now: @Sendable () -> Int64
    private let uptime: @Sendable () -> Duration
    private let jitter: @Sendable () -> Double
    private let state = Mutex(State())

    /// - Parameters:
    ///   - now: the wall clock in milliseconds since 1970.
    ///   - uptime: a clock that never jumps and counts time spent suspended.
    ///   - jitter: from -1 to 1, so that several processes do not renew together.
    package init(
        key: SigningKey, teamID: String, keyID: String,
        now: @escaping @Sendable () -> Int64,
        uptime: @escaping @Sendable () -> Duration = ProviderTokenSource.timeSinceBoot,
        jitter: @escaping @Sendable () -> Double = { Double.random(in: -1...1) }
    ) {
        self.key = key
        self.teamID = teamID
        self.keyID = keyID
        self.now = now
        self.uptime = uptime
        self.jitter = jitter
    }

    /// The token to use now, signed if there is none or the last one is due.
    package func authorization() throws(CredentialError) -> ProviderToken {
        try state.withLock { (state) throws(CredentialError) in
            guard let token = state.token else { return try sign(&state) }
            let age = uptime() - state.signedAt
            if state.expiredGeneration == token.generation {
                if age < Self.renewalIntervalMin, !wallClockMoved(since: token, age: age) {
                    throw .clockWrong(tokenAgeSeconds: age.components.seconds)
                }
                return try sign(&state)
            }
            let isDue = age >= state.renewalAge && (uptime() >= state.heldUntil || age >= Self.ageMax)
            return isDue ? try sign(&state) : token
        }
    }

    /// Of the token in use; nil before the first.
    package var age: Duration? { state.withLock { $0.token == nil ? nil : uptime() - $0.signedAt } }

    /// APNs answered ExpiredProviderToken to a request with this generation. Older generations are ignored, so that
    /// many answers to one token cause one renewal.
    package func markExpired(_ generation: Int) {
        state.withLock { $0.expiredGeneration = max($0.expiredGeneration, generation) }
    }

    /// APNs answered TooManyProviderTokenUpdates: the token is kept in use, and none is signed for 20 minutes unless it
    /// gets too old meanwhile.
    package func holdRenewal() {
        state.withLock { $0.heldUntil = uptime() + Self.renewalIntervalMin }
    }

    private func sign(_ state: inout State) throws(CredentialError) -> ProviderToken {
        let token = try ProviderToken(
            signedWith: key, teamID: teamID, keyID: keyID, at: now(),
            generation: (state.token?.generation ?? 0) + 1)
        state.token = token
        state.signedAt = uptime()
        state.renewalAge = Self.renewalAge + Self.renewalJitter * min(1, max(-1, jitter()))
        return token
    }

    private func wallClockMoved(since token: ProviderToken, age: Duration) -> Bool {
        let drift = .milliseconds(now() - token.signedAt) - age
        return drift > Self.clockDriftMax || drift < .zero - Self.clockDriftMax
    }

    /// CLOCK_BOOTTIME: monotonic, and goes on while a virtual machine is suspended.
    package static let timeSinceBoot: @Sendable () -> Duration = {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

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

/// Base64 with the URL alphabet and without padding (RFC 4648 section 5), as JSON web tokens use it.
enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for byte in group { bits = bits << 8 | UInt32(byte) }
            bits <<= UInt32(8 * (3 - group.count))
            for character in 0...group.count {
                text.append(alphabet[Int(bits >> UInt32(18 - 6 * character)) & 63])
            }
        }
        return text
    }
}
