import APNs
import Campaigns
import Foundation
import Model
import Sending
import Store
import WebClient

/// Connects to an endpoint as a sender would. With a key it sends one push to a made-up device token. APNs checks the
/// provider token before the device token, so its response tells a known key from an unknown one. A certificate is not
/// tried.
struct EndpointProbe {
    let app: Configuration.App
    let environment: PushEnvironment
    /// The address of the store, to use the provider token that its senders share. APNs allows a new token every 20
    /// minutes.
    let store: String

    private static let limits: WebLimits = {
        var limits = WebLimits()
        limits.totalTime = .seconds(15)
        return limits
    }()

    /// The maximum age at which a provider token from the store is used.
    private static let tokenAgeMax: Duration = .seconds(50 * 60)

    func reach() async -> Reachability {
        do {
            let endpoint = try SendingSetup.endpoint(app, environment)
            var reached = Reachability(endpoint: "\(endpoint)", isWell: true, summary: "")
            await ask(endpoint, &reached)
            return reached
        } catch {
            return Reachability(endpoint: "", isWell: false, summary: "\(error)")
        }
    }

    private func ask(_ endpoint: PushEndpoint, _ reached: inout Reachability) async {
        let client = HTTPClient(addresses: .any, limits: Self.limits, trust: app.endpoints.trust)
        // Another check reports an unusable key.
        let token = try? await authorization()
        let request = token.map { push($0, to: endpoint) } ?? WebRequest(.get, "https://\(endpoint)/")
        let start = ContinuousClock.now
        do throws(WebError) {
            let response = try await client.send(request)
            guard response.isHTTP2 else {
                reached.isWell = false
                reached.summary = "does not support HTTP/2; a proxy may inspect TLS: exempt this host from inspection"
                return
            }
            let milliseconds = (ContinuousClock.now - start) / .milliseconds(1)
            reached.summary = "responds over HTTP/2, with a trusted certificate, in \(Int(milliseconds)) ms"
            if case .certificate = app.credential {
                reached.credential = .skipped(.credential, "a certificate is checked locally, not over the network")
            } else if token != nil {
                reached.credential =
                    ProbeAnswer(
                        status: response.status, body: response.body, topic: app.topic,
                        credential: app.credential.name(in: environment) ?? "the key"
                    ).finding
            }
        } catch {
            reached.isWell = false
            reached.summary = Self.summary(error)
        }
    }

    private static func summary(_ error: WebError) -> String {
        switch error {
        case .untrusted(_, let reason):
            "cannot be trusted: \(reason); check the CA certificates, or `trust` in the configuration"
        case .failed(_, let reason):
            "cannot be reached: \(reason); check DNS, the network and the firewall (TCP 443 or 2197)"
        default: "\(error); check the network and the firewall (TCP 443 or 2197)"
        }
    }

    private func push(_ authorization: String, to endpoint: PushEndpoint) -> WebRequest {
        let madeUp = (0..<8).map { _ in String(UInt32.random(in: .min ... .max) | 1 << 28, radix: 16) }.joined()
        return WebRequest(
            .post(body: Array(#"{"aps":{"content-available":1}}"#.utf8)),
            "https://\(endpoint)/3/device/\(madeUp.prefix(64))",
            headers: [
                "authorization": authorization, "apns-topic": app.topic, "apns-push-type": "background",
                "apns-priority": "5", "apns-expiration": "0",
            ])
    }

    /// Returns the authorization header, or `nil` for a certificate.
    private func authorization() async throws -> String? {
        guard let (teamID, keyID, path) = keyFile else { return nil }
        let key = try SigningKey(path: path)
        let now = Timestamp(Date())
        if let known = await recorded(ProviderKey(teamID: teamID, keyID: keyID, fingerprint: try key.fingerprint())),
            known.signedAt <= now, now - known.signedAt < Self.tokenAgeMax
        {
            return known.token
        }
        return try ProviderToken.authorization(signedWith: key, teamID: teamID, keyID: keyID, at: now.milliseconds)
    }

    private var keyFile: (teamID: String, keyID: String, path: String)? {
        switch app.credential {
        case .key(let team, let id, let path): (team, id, path)
        case .keys(let team, let keys): keys[environment].map { (team, $0.id, $0.path) }
        case .certificate: nil
        }
    }

    private func recorded(_ key: ProviderKey) async -> StoredProviderToken? {
        guard let opened = try? await StoreOpening.open(store, .reading) else { return nil }
        defer { try? opened.store.close() }
        return try? await opened.store.providerToken(of: key)
    }
}

/// The response of APNs to a push to a made-up device token.
struct ProbeAnswer {
    let status: Int
    let body: [UInt8]
    let topic: String
    let credential: String

    private struct Body: Decodable {
        var reason: String?
    }

    var finding: Finding {
        let reason = (try? JSONDecoder().decode(Body.self, from: Data(body)))?.reason ?? "\(status)"
        switch (status, reason) {
        case (200, _), (400, "BadDeviceToken"), (410, _): return .ok(.credential, "APNs accepts the credential")
        case (403, "ExpiredProviderToken"):
            return .wrong(
                .credential, "APNs responds 403 \(reason); set this machine's clock (timedatectl set-ntp true)")
        case (403, "BadEnvironmentKeyIdInToken"):
            return .wrong(
                .credential,
                "APNs responds 403 \(reason): the key is for the other environment; configure a key for each")
        case (403, _):
            return .wrong(
                .credential,
                "APNs responds 403 \(reason): it does not know the key; compare team_id, key_id and the file with "
                    + "developer.apple.com, and check that the key was not revoked")
        case (400, "BadTopic"), (400, "TopicDisallowed"), (400, "DeviceTokenNotForTopic"):
            return .wrong(
                .credential, "APNs responds 400 \(reason): the key may not send to \(topic); compare topic and team_id")
        default:
            return .warning(
                .credential,
                "APNs responds \(status) \(reason), which says nothing about the credential; try again later")
        }
    }
}
