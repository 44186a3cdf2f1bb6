import APNs
import Campaigns
import Foundation
import Logging
import Model
import Senders
import Sending
import Store

extension Configuration {
    /// Returns the paces that the senders of an app share: the pace of the app and the pace of all apps.
    func sharedPaces(of topic: String) -> [SharedPace] {
        let app = (try? app(for: topic))?.pace.map { SharedPace(name: "app \(topic)", pace: $0) }
        return [pace.map { SharedPace(name: "all apps", pace: $0) }, app].compactMap(\.self)
    }
}

extension SendingSetup {
    /// Returns a setup with the configuration's settings for all runs and for the runs of one app.
    func following(_ configuration: Configuration, topic: String) -> SendingSetup {
        var sender = self
        sender.paces = configuration.sharedPaces(of: topic)
        sender.success = configuration.success
        return sender
    }

    /// Loads the app's credentials and points its lanes at Apple, or at the configured endpoints. An environment
    /// without a key gets no lanes. Throws if the lanes could not use a file that they need, because the run would
    /// otherwise pause later.
    init(_ app: Configuration.App, _ tokens: ProviderTokens, logger: Logger) throws {
        let all: [PushEnvironment: PushEndpoint] = [
            .production: try Self.endpoint(app, .production), .sandbox: try Self.endpoint(app, .sandbox),
        ]
        let endpoints = all.filter { app.credential.environments.contains($0.key) }
        if app.transport == .native { try Self.refuseProxy(endpoints.values.map(\.host)) }
        if let fault = TrustFile.fault(of: app) { throw Failure(.configuration, fault) }
        self.init(
            transports: try UnreadableSecret.explained { try Self.credentials(app, tokens) }.mapValues {
                Self.transport(app, $0, logger)
            },
            endpoints: endpoints, lanesPerEnvironment: app.connections, silentBudget: app.silentBudget)
        frequencyCaps = app.frequencyCaps
        for environment in endpoints.keys { credentials[environment] = app.credential.name(in: environment) }
    }

    private static func credentials(
        _ app: Configuration.App, _ tokens: ProviderTokens
    ) throws -> [PushEnvironment: PushCredential] {
        switch app.credential {
        case .key(let teamID, let keyID, let path):
            let credential = try PushCredential(.init(id: keyID, path: path), teamID: teamID, tokens)
            return Dictionary(uniqueKeysWithValues: PushEnvironment.allCases.map { ($0, credential) })
        case .keys(let teamID, let keys):
            return try keys.mapValues { try PushCredential($0, teamID: teamID, tokens) }
        case .certificate(let certificatePath, let privateKeyPath, let passwordPath):
            let credential = try PushCredential(
                certificatePath: certificatePath, privateKeyPath: privateKeyPath, passwordPath: passwordPath)
            return Dictionary(uniqueKeysWithValues: PushEnvironment.allCases.map { ($0, credential) })
        }
    }

    private static func transport(
        _ app: Configuration.App, _ credential: PushCredential, _ logger: Logger
    ) -> any APNs.Transport {
        let trust = app.endpoints.trust
        return switch app.transport {
        case .curl: CurlTransport(credential: credential, limits: LaneLimits(), trust: trust, logger: logger)
        case .native: NativeTransport(credential: credential, limits: LaneLimits(), trust: trust, logger: logger)
        }
    }

    /// Throws if a proxy is set. A direct connection would fail late with an unclear error, or break a network policy.
    private static func refuseProxy(_ hosts: [String]) throws {
        for host in hosts {
            if let reason = ProxySetting.refusal(of: host, in: ProcessInfo.processInfo.environment) {
                throw Failure(.configuration, reason)
            }
        }
    }

    /// Returns the configured endpoint of an environment, or Apple's.
    static func endpoint(_ app: Configuration.App, _ environment: PushEnvironment) throws -> PushEndpoint {
        switch environment {
        case .production: try endpoint(app.endpoints.production) ?? .production
        case .sandbox: try endpoint(app.endpoints.sandbox) ?? .sandbox
        }
    }

    private static func endpoint(_ text: String?) throws -> PushEndpoint? {
        guard let text else { return nil }
        guard let endpoint = PushEndpoint(parsing: text) else {
            throw Failure(.configuration, "endpoint \"\(text)\" is not host:port; write for example 127.0.0.1:8443")
        }
        return endpoint
    }
}

/// Explains how to fix a key file that this process cannot read. A service reads the copies that systemd created when
/// the service started. A command of a user other than root has no such copy.
enum UnreadableSecret {
    static func explained<Value>(
        environment: [String: String] = ProcessInfo.processInfo.environment, isRoot: Bool = geteuid() == 0,
        _ body: () throws -> Value
    ) throws -> Value {
        do {
            return try body()
        } catch CredentialError.unreadable(let path, let reason) {
            guard let summary = summary(path, environment, isRoot: isRoot) else {
                throw CredentialError.unreadable(path: path, reason: reason)
            }
            throw Failure(.configuration, summary)
        }
    }

    private static func summary(_ path: String, _ environment: [String: String], isRoot: Bool) -> String? {
        let url = URL(fileURLWithPath: path)
        let (name, folder) = (url.lastPathComponent, url.deletingLastPathComponent().path)
        if let copies = environment["CREDENTIALS_DIRECTORY"], !copies.isEmpty {
            guard !path.hasPrefix(copies) else { return nil }
            return "the service got no copy of \(name) when it started; if the file is in \(folder) now, run: "
                + "systemctl restart fanfare"
        }
        guard !isRoot, access(path, R_OK) != 0, errno == EACCES else { return nil }
        return
            "cannot read \(path): Permission denied; the daemon has a copy of such a key and sends for this user (run: "
            + "systemctl start fanfare), or make the file readable for this user"
    }
}

extension LocalSender {
    /// Returns the sender of this process for all apps of a configuration, which is queried for each setup.
    ///
    /// - Parameter setup: the setup to use for every topic, if it was loaded before.
    static func of(
        _ session: Session, actor: Actor, registration: SenderRegistration, tokens: ProviderTokens,
        setup: SendingSetup? = nil,
        logger: Logger, configuration: @escaping @Sendable () -> Configuration
    ) throws -> LocalSender {
        let (journals, stops) = (try session.journals(), try session.stops())
        return LocalSender(
            store: session.store, actor: actor, clock: session.clock,
            jitter: { Double.random(in: 0...1) }, logger: logger, registration: registration, journals: journals,
            stops: stops
        ) { topic in
            let configuration = configuration()
            return try (setup ?? SendingSetup(configuration.app(for: topic), tokens, logger: logger))
                .journaling(in: journals, obeying: stops).following(configuration, topic: topic)
        }
    }
}

extension PushCredential {
    init(_ file: Configuration.KeyFile, teamID: String, _ tokens: ProviderTokens) throws {
        let key = try SigningKey(path: file.path)
        if key.isReadableByOthers {
            Console.note(
                "warning: \(file.path) can be read by other users of this machine; run: chmod 600 \(file.path)")
        }
        self = .token(try tokens.source(of: key, teamID: teamID, keyID: file.id))
    }

    init(certificatePath: String, privateKeyPath: String?, passwordPath: String?) throws {
        let password =
            try passwordPath.map { try SecretFile.text(of: $0, holding: "the certificate's password") }
            ?? ProcessInfo.processInfo.environment["FANFARE_CERTIFICATE_PASSWORD"]
        self = .certificate(
            try ClientCertificate(
                certificatePath: certificatePath, privateKeyPath: privateKeyPath,
                password: password,
                now: Timestamp(Date()).milliseconds))
    }
}

extension ProviderTokens {
    /// Creates the tokens of this process, shared with all other processes on the store.
    convenience init(_ session: Session, logger: Logger) {
        let clock = session.clock
        self.init(log: session.store, now: { clock.now().milliseconds }, logger: logger)
    }
}

/// The proxy that the environment sets for connections to a host, by the variables that curl obeys.
enum ProxySetting {
    private static let variables = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]

    /// Returns the name of the variable that sets a proxy, or `nil` if none applies. A host of this machine needs no
    /// proxy.
    static func variable(for host: String, in environment: [String: String]) -> String? {
        isThisMachine(host) ? nil : variable(ofCurlFor: host, in: environment)
    }

    /// Returns the variable as curl sees it. curl also uses a proxy for this machine.
    private static func variable(ofCurlFor host: String, in environment: [String: String]) -> String? {
        guard !isExcepted(host, environment["no_proxy"] ?? environment["NO_PROXY"] ?? "") else { return nil }
        return variables.first { !(environment[$0] ?? "").isEmpty }
    }

    /// Returns why the native transport cannot connect to a host, or `nil` if it can.
    static func refusal(of host: String, in environment: [String: String]) -> String? {
        variable(for: host, in: environment).map { variable in
            "\(variable) is set, but the native transport supports no proxy; write transport: curl in the "
                + "configuration, or name \(host) in no_proxy if this machine reaches it directly"
        }
    }

    /// Returns how the environment's proxy affects a transport that connects to these hosts.
    static func use(
        by transport: Configuration.Transport, to hosts: [String], in environment: [String: String]
    ) -> ProxyUse {
        switch transport {
        case .native:
            let reasons = hosts.compactMap { refusal(of: $0, in: environment) }
            return reasons.first.map { ProxyUse.inTheWay(reason: $0) } ?? ProxyUse.direct
        case .curl:
            let names = hosts.compactMap { variable(ofCurlFor: $0, in: environment) }
            guard let name = names.first else { return .direct }
            return .used(variable: name, proxy: address(environment[name] ?? ""))
        }
    }

    /// Returns the host and port of a proxy, without a user and a password.
    private static func address(_ proxy: String) -> String {
        let parts = URLComponents(string: proxy.contains("://") ? proxy : "http://\(proxy)")
        guard let parts, let host = parts.host, !host.isEmpty else { return "a proxy" }
        return "the proxy " + host + (parts.port.map { ":\($0)" } ?? "")
    }

    /// Tells whether curl's exceptions include the host. They are names with their subdomains, separated by commas or
    /// blanks, or `*` for every host.
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
