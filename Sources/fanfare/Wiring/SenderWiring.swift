import APNs
import Campaigns
import Foundation
import Logging
import Model
import Sending
import Synchronization

extension Pipeline.Sender {
    /// Two heartbeats and something to spare.
    private static let usualTrustWindow: Duration = .milliseconds(2_500)

    /// What it starts and hears is written down, and nothing starts while nobody can tell whether its run goes on.
    func journaling(in journals: SenderJournals) -> Pipeline.Sender {
        var sender = self
        sender.journals = journals
        sender.trustWindow = Self.usualTrustWindow
        return sender
    }

    /// Loads the app's credential and points its lanes at Apple, or at the configured endpoints.
    init(_ app: Configuration.App, logger: Logger) throws {
        let endpoints: [PushEnvironment: PushEndpoint] = [
            .production: try Self.endpoint(app.endpoints.production) ?? .production,
            .sandbox: try Self.endpoint(app.endpoints.sandbox) ?? .sandbox,
        ]
        self.init(
            transport: try Self.transport(app, endpoints.values.map(\.host), logger), endpoints: endpoints,
            lanesPerEnvironment: app.connections, silentBudget: app.silentBudget)
    }

    private static func transport(
        _ app: Configuration.App, _ hosts: [String], _ logger: Logger
    ) throws -> any APNs.Transport {
        let credential = try PushCredential(app.credential)
        if case .token(let source) = credential { ProviderTokenAges.watch(source, topic: app.topic) }
        let trust = app.endpoints.trust
        switch app.transport {
        case .curl:
            return CurlTransport(credential: credential, limits: LaneLimits(), trust: trust, logger: logger)
        case .native:
            try refuseProxy(hosts)
            return NativeTransport(credential: credential, limits: LaneLimits(), trust: trust, logger: logger)
        }
    }

    /// Going past a proxy that somebody set would fail late and in the dark, or break a rule of the house.
    private static func refuseProxy(_ hosts: [String]) throws {
        for host in hosts {
            guard let variable = ProxySetting.variable(for: host, in: ProcessInfo.processInfo.environment) else {
                continue
            }
            throw Failure(
                .configuration,
                "\(variable) is set, and the native transport knows no proxy; write transport: curl in the "
                    + "configuration, or name \(host) in no_proxy if the way to it is open")
        }
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

/// The proxy that the environment sets for connections to a host, by the variables that curl obeys.
enum ProxySetting {
    private static let variables = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]

    /// The name of the variable that sets one; nil: the way is open. A host of this machine needs no proxy.
    static func variable(for host: String, in environment: [String: String]) -> String? {
        guard !isThisMachine(host), !isExcepted(host, environment["no_proxy"] ?? environment["NO_PROXY"] ?? "") else {
            return nil
        }
        return variables.first { !(environment[$0] ?? "").isEmpty }
    }

    /// As curl reads it: names with all below them, separated by commas or blanks, or a star for every host.
    private static func isExcepted(_ host: String, _ exceptions: String) -> Bool {
        let host = host.lowercased()
        return exceptions.lowercased().split { $0 == "," || $0 == " " }.contains { exception in
            let name = exception.hasPrefix(".") ? exception.dropFirst() : exception
            return exception == "*" || host == name || host.hasSuffix(".\(name)")
        }
    }

    private static func isThisMachine(_ host: String) -> Bool {
        host == "localhost" || host.hasPrefix("127.") || host == "::1" || host == "[::1]"
    }
}

/// The provider tokens of this process, for whoever asks how old they are.
enum ProviderTokenAges {
    private static let sources = Mutex<[String: ProviderTokenSource]>([:])

    static func watch(_ source: ProviderTokenSource, topic: String) {
        sources.withLock { $0[topic] = source }
    }

    /// By topic; those that were never used have none.
    static func all() -> [(topic: String, age: Duration)] {
        let sources = sources.withLock { $0 }
        return sources.sorted { $0.key < $1.key }.compactMap { topic, source in source.age.map { (topic, $0) } }
    }
}
