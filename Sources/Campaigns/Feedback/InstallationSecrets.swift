package import Model
import Platform
import Store

/// Makes and checks the secrets with which installations report by themselves, for apps without a backend of their own
/// between them and Fanfare.
package struct InstallationSecrets: Sendable {
    let store: any FeedbackLog
    let makeSecret: @Sendable () -> String
    let clock: WallClock

    /// Returns a new secret of a device. An earlier one of the device is no longer valid.
    package func renew(ofDevice device: Int64) async throws -> String {
        let secret = makeSecret()
        guard try await store.setInstallationSecret(hash: Self.hash(secret), of: device, now: clock.now()) else {
            throw Failure(.refused, "the device was removed in the meantime; register it again")
        }
        return secret
    }

    /// Returns the installation that presents a secret, or `nil` if none has it.
    package func installation(presenting secret: String) async throws -> ReportingInstallation? {
        guard AccessSecret.isPlausible(secret) else { return nil }
        return try await store.installation(secretHash: Self.hash(secret))
    }

    private static func hash(_ secret: String) -> [UInt8] { Digest.sha256(Array(secret.utf8)) }
}
