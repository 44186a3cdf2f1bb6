package import Model
import Platform
import Store

/// The caller that sends reports.
package enum FeedbackReporter: Sendable {
    /// A backend. It reports for the apps that it sees.
    case backend(sees: @Sendable (_ topic: String) -> Bool)
    /// An installation with a secret of its own. It reports only for itself.
    case installation(ReportingInstallation)

    func mayReport(_ push: PushReference, of topic: String) -> Bool {
        switch self {
        case .backend(let sees): sees(topic)
        case .installation(let installation): installation.device == push.device
        }
    }

    func mayReport(installation id: String, of topic: String) -> Bool {
        switch self {
        case .backend(let sees): sees(topic)
        case .installation(let own): own.installationID == id && own.topic == topic
        }
    }

    /// The pushes that the caller may report about, in words.
    var scope: String {
        switch self {
        case .backend: "of this app"
        case .installation: "to this installation"
        }
    }

    func refusal(of topic: String) -> String {
        switch self {
        case .backend: "topic \"\(topic)\" does not belong to the token's app"
        case .installation: "not the installation_id and topic of this secret; send those of the installation itself"
        }
    }
}

/// The response to a registration: the fields of the device, and the installation's new secret if it was asked for.
package struct RegistrationResult: Codable, Hashable, Sendable {
    package var device: DeviceResult
    package var secret: String?

    private enum CodingKeys: String, CodingKey { case secret }

    package init(_ device: DeviceResult) { self.device = device }

    package init(from decoder: any Decoder) throws {
        device = try DeviceResult(from: decoder)
        secret = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(String.self, forKey: .secret)
    }

    package func encode(to encoder: any Encoder) throws {
        try device.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(secret, forKey: .secret)
    }
}

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
