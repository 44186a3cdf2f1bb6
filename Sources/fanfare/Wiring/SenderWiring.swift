import APNs
import Engine
import Foundation
import Logging
import Model

extension Pipeline.Sender {
    /// Loads the app's credential and points its lanes at Apple, or at the configured endpoints.
    init(_ app: Configuration.App, logger: Logger) throws {
        let transport = CurlTransport(
            credential: try PushCredential(app.credential), limits: LaneLimits(), trust: app.endpoints.trust,
            logger: logger)
        self.init(
            transport: transport,
            endpoints: [
                .production: try Self.endpoint(app.endpoints.production) ?? .production,
                .sandbox: try Self.endpoint(app.endpoints.sandbox) ?? .sandbox,
            ],
            lanesPerEnvironment: app.connections, silentBudget: app.silentBudget)
    }

    private static func endpoint(_ text: String?) throws -> PushEndpoint? {
        guard let text else { return nil }
        guard let endpoint = PushEndpoint(parsing: text) else {
            throw Failure(.configuration, "endpoint \"\(text)\" is not host:port; write for instance 127.0.0.1:8443")
        }
        return endpoint
    }
}

extension PushCredential {
    init(_ credential: Configuration.Credential) throws {
        switch credential {
        case .key(let teamID, let keyID, let path):
            let key = try SigningKey(path: path)
            if key.isReadableByOthers {
                Console.note("warning: \(path) can be read by other users of this machine; run: chmod 600 \(path)")
            }
            self = .token(
                ProviderTokenSource(key: key, teamID: teamID, keyID: keyID, now: { Timestamp(Date()).milliseconds }))
        case .certificate(let certificatePath, let privateKeyPath):
            self = .certificate(
                try ClientCertificate(
                    certificatePath: certificatePath, privateKeyPath: privateKeyPath,
                    password: ProcessInfo.processInfo.environment["FANFARE_CERTIFICATE_PASSWORD"],
                    now: Timestamp(Date()).milliseconds))
        }
    }
}
