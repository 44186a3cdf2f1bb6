package import Model
package import Senders
package import Store

/// A store, and its senders.
package struct OpenedStore: Sendable {
    package let store: any AllRoles
    package let senders: SenderFolder

    package init(store: any AllRoles, senders: SenderFolder) {
        self.store = store
        self.senders = senders
    }

    package func deviceCounts() async throws -> [DeviceCount] { try await store.deviceCounts() }

    /// See ``RunLog/startedPast(_:now:)``.
    package func startedPast(_ campaigns: [Campaign], now: Timestamp) async throws -> Set<String> {
        try await store.startedPast(campaigns, now: now)
    }

    /// Returns the values that people gave for coming starts of schedules.
    package func startValues(now: Timestamp) async throws -> StartValues { try await .read(store, now: now) }

    /// Returns the number of a topic's devices in each language. Reads all devices.
    package func languages(ofTopic topic: String, now: Timestamp) async throws -> [String: Int] {
        try await FallbackLanguages.languages(ofTopic: topic, in: store, now: now)
    }
}

/// Checks everything that has to be right before a push can leave this machine, and changes nothing.
///
/// Every check reports that all is well, or what to do. A failed check does not prevent the others. If the
/// configuration cannot be read, only the machine is checked.
package struct DiagnoseInstallation: Sendable {
    /// The facts that only the machine and the adapters know.
    package struct Probes: Sendable {
        /// The time after which a lock is reported. Almost all transactions end sooner.
        package static let lockedFor: Duration = .seconds(4)

        /// Opens a store with its senders, for reading. Writes nothing.
        package var openStore: @Sendable (_ address: String) async throws -> OpenedStore
        /// Returns the process that keeps the store file locked for ``lockedFor`` or longer, for a person. `nil` if
        /// other processes can write.
        package var storeLock: @Sendable (_ path: String) async -> String?
        /// Loads and tries the credential for an environment. Throws the fault.
        package var credential: @Sendable (Configuration.Credential, PushEnvironment) throws -> CredentialFacts
        /// Returns the effect of the environment's proxy on the app's pushes.
        package var proxy: @Sendable (Configuration.App) -> ProxyUse
        /// Connects to the endpoint of the app's pushes in an environment, without sending a push.
        package var reach: @Sendable (Configuration.App, PushEnvironment, _ store: String) async -> Reachability
        /// Returns why this machine cannot listen on an address such as `127.0.0.1:8787`, or `nil` if it can.
        package var portFault: @Sendable (_ address: String) -> PortFault?
        package var machine: MachineFacts
        /// `nil` if this machine has no unit of the service.
        package var service: ServiceFacts?

        package init(
            openStore: @escaping @Sendable (_ address: String) async throws -> OpenedStore,
            credential: @escaping @Sendable (Configuration.Credential, PushEnvironment) throws -> CredentialFacts,
            proxy: @escaping @Sendable (Configuration.App) -> ProxyUse,
            reach: @escaping @Sendable (Configuration.App, PushEnvironment, _ store: String) async -> Reachability,
            portFault: @escaping @Sendable (_ address: String) -> PortFault? = { _ in nil },
            storeLock: @escaping @Sendable (_ path: String) async -> String? = { _ in nil },
            machine: MachineFacts, service: ServiceFacts? = nil
        ) {
            self.portFault = portFault
            self.storeLock = storeLock
            self.service = service
            self.openStore = openStore
            self.credential = credential
            self.proxy = proxy
            self.reach = reach
            self.machine = machine
        }
    }

    private let source: ConfigurationSource
    private let environment: [String: String]
    private let probes: Probes
    private let now: Timestamp

    package init(
        source: ConfigurationSource, environment: [String: String], probes: Probes, now: Timestamp
    ) {
        self.source = source
        self.environment = environment
        self.probes = probes
        self.now = now
    }

    /// - Parameter network: whether to connect to every endpoint as well. Otherwise nothing leaves the machine.
    package func diagnose(network: Bool) async -> DiagnosisResult {
        let (configuration, read) = readConfiguration()
        guard let configuration else {
            return result(read + MachineChecks(probes.machine).all(nil))
        }
        let campaigns = FileChecks(configuration, configurationPath: source.path, environment: environment)
            .campaigns(await startValues(configuration))
        var findings = read + campaigns + credentials(configuration) + files(configuration)
        findings += [await port(configuration)]
        findings += MachineChecks(probes.machine).all(configuration)
        findings += await stores(configuration).all() + configuration.apps.map(proxy)
        findings +=
            network ? await reach(configuration) : [.skipped(.network, "not checked; add --network to connect to APNs")]
        return result(findings)
    }

    /// Checks what a running service needs and does not report by itself. The service has the store open and the port
    /// in use, reads the campaign files, and reports their state and that of the disk in ``ReadHealth``.
    ///
    /// - Parameter tokens: the access tokens of the store; `nil` if they could not be read.
    func findings(tokens: [AccessToken]?) -> [Finding] {
        let (configuration, read) = readConfiguration()
        guard let configuration else { return read + MachineChecks(probes.machine).all(nil) }
        var findings = read + credentials(configuration) + files(configuration)
        findings += people(configuration, tokens)
        findings += FileChecks(configuration, configurationPath: source.path, environment: environment)
            .unusedTemplates()
        findings += MachineChecks(probes.machine).all(configuration) + configuration.apps.map(proxy)
        return findings
    }

    /// Returns the values of coming starts, or none if the store cannot be read, which another check reports.
    private func startValues(_ configuration: Configuration) async -> StartValues {
        guard let opened = try? await probes.openStore(configuration.store) else { return StartValues() }
        defer { try? opened.store.close() }
        return (try? await opened.startValues(now: now)) ?? StartValues()
    }

    /// Checks the rights of the files, and what the configuration says of other files.
    private func files(_ configuration: Configuration) -> [Finding] {
        let files = FileChecks(configuration, configurationPath: source.path, environment: environment)
        var findings = files.rights() + files.roleHeader()
        findings += configuration.apps.compactMap(TrustFile.fault).map { .wrong(.configuration, $0) }
        if let service = probes.service, service.reads(source.path) {
            findings += ServiceChecks(configuration, path: source.path, service: service).all()
        }
        return findings
    }

    private func people(_ configuration: Configuration, _ tokens: [AccessToken]?) -> [Finding] {
        let store = stores(configuration)
        guard let tokens else {
            return store.namesTokens
                ? [.skipped(.configuration, "could not check `people`, because the access tokens cannot be read")] : []
        }
        return store.missingTokens(tokens)
    }

    private func stores(_ configuration: Configuration) -> StoreChecks {
        StoreChecks(
            address: configuration.store, people: configuration.approvals?.people ?? ConfiguredPeople(), probes: probes,
            now: now)
    }

    private func result(_ findings: [Finding]) -> DiagnosisResult {
        let machine = probes.machine
        return DiagnosisResult(
            version: machine.version, system: machine.system, libraries: machine.libraries, user: machine.user,
            checks: findings)
    }

    private func readConfiguration() -> (Configuration?, [Finding]) {
        do {
            let (configuration, warnings) = try source.read()
            let topics = configuration.apps.map(\.topic).joined(separator: ", ")
            let overridden = environment.keys.filter { $0.hasPrefix("FANFARE_") }.sorted()
            let more = overridden.isEmpty ? "" : "; from the environment: \(overridden.joined(separator: ", "))"
            return (
                configuration,
                [.ok(.configuration, "\(source.path ?? ""): \(topics)\(more)")]
                    + warnings.map { .warning(.configuration, $0.description) }
            )
        } catch {
            return (nil, Finding.sentences(of: error).map { .wrong(.configuration, $0) })
        }
    }

    private func credentials(_ configuration: Configuration) -> [Finding] {
        configuration.apps.flatMap { app in
            let checks = CredentialChecks(app: app, now: now, tried: probes.credential)
            return checks.all()
        }
    }

    /// Checks whether the port is free, or used by this store's daemon.
    private func port(_ configuration: Configuration) async -> Finding {
        let address = configuration.http.listen
        switch probes.portFault(address) {
        case nil: return .ok(.port, "http.listen \(address) is free")
        case .taken:
            switch await hasDaemon(configuration) {
            case true: return .ok(.port, "http.listen \(address): the daemon uses it")
            case nil:
                return .skipped(
                    .port,
                    "http.listen \(address) is in use; without the store, Fanfare cannot tell whether by the daemon")
            case false:
                return .wrong(
                    .port,
                    "http.listen \(address): another program has the port; choose another one, or stop that program")
            }
        case .other(let reason):
            return .wrong(.port, "http.listen \(address): \(reason); name an address and a port of this machine")
        }
    }

    /// Returns `nil` if the store cannot be opened, so that its senders are not known.
    private func hasDaemon(_ configuration: Configuration) async -> Bool? {
        do {
            let opened = try await probes.openStore(configuration.store)
            defer { try? opened.store.close() }
            return opened.senders.daemon() != nil
        } catch StoreError.noStore, StoreError.noFolder {
            return false
        } catch {
            return nil
        }
    }

    private func proxy(_ app: Configuration.App) -> Finding {
        switch probes.proxy(app) {
        case .direct: .ok(.proxy, "\(app.topic): no proxy set for the \(app.transport.rawValue) transport")
        case .used(let variable, let proxy):
            .ok(
                .proxy,
                "\(app.topic): the \(app.transport.rawValue) transport goes to APNs through \(proxy), which \(variable) "
                    + "names; no_proxy exempts a host")
        case .inTheWay(let reason): .wrong(.proxy, "\(app.topic): \(reason)")
        }
    }

    private func reach(_ configuration: Configuration) async -> [Finding] {
        var findings: [Finding] = []
        for app in configuration.apps {
            for environment in PushEnvironment.allCases where app.credential.environments.contains(environment) {
                let found = await probes.reach(app, environment, configuration.store)
                let text = "\(app.topic), \(environment.rawValue): \(found.endpoint) \(found.summary)"
                findings.append(found.isWell ? .ok(.network, text) : .wrong(.network, text, isOutage: true))
                if var answer = found.credential {
                    let name = app.credential.name(in: environment) ?? app.topic
                    answer.message = "\(app.topic), \(environment.rawValue): \(name): \(answer.message)"
                    findings.append(answer)
                }
            }
        }
        return findings
    }
}

/// The result of trying a credential.
package struct CredentialFacts: Hashable, Sendable {
    /// `nil` for keys, which do not expire.
    package var expiresAt: Timestamp?
    /// The topics that a certificate is for; empty for keys.
    package var topics: [String]

    package init(expiresAt: Timestamp? = nil, topics: [String] = []) {
        self.expiresAt = expiresAt
        self.topics = topics
    }
}

/// The effect of a proxy in the environment on an app's pushes.
package enum ProxyUse: Hashable, Sendable {
    /// No proxy is named for the app's endpoints.
    case direct
    /// The transport connects through the proxy, which is named without user and password.
    case used(variable: String, proxy: String)
    /// The transport does not support proxies, so the proxy blocks it.
    case inTheWay(reason: String)
}

/// The result of an attempt to connect.
package struct Reachability: Hashable, Sendable {
    /// `api.push.apple.com:443`
    package var endpoint: String
    package var isWell: Bool
    /// The result, shown after the endpoint. If the attempt failed, the text says what to do.
    package var summary: String
    /// What the response says about the credential; `nil` if no request was made.
    package var credential: Finding?

    package init(endpoint: String, isWell: Bool, summary: String) {
        self.endpoint = endpoint
        self.isWell = isWell
        self.summary = summary
    }
}

/// The reason why this machine cannot listen on a port.
package enum PortFault: Hashable, Sendable {
    /// Another process has the port.
    case taken
    case other(String)
}

/// The result of one check.
package struct Finding: Codable, Hashable, Sendable {
    /// The order is that of the report.
    package enum Check: String, Codable, Hashable, Sendable, CaseIterable {
        case configuration, files, credential, rights, clock, limits, store, daemon, disk, port, proxy, network
        // Checks of a running service.
        case log, runs, stops, webhooks
    }

    package enum State: String, Codable, Hashable, Sendable {
        case ok
        /// There is no failure, but a person should look at the message.
        case warning
        /// The check has found a failure.
        case wrong
        case skipped
    }

    /// `isOutage` is no part of the shape.
    private enum CodingKeys: String, CodingKey {
        case check, state, message
    }

    package var check: Check
    package var state: State
    /// The facts and, if there is a problem, what to do.
    package var message: String
    /// Whether a server cannot be reached, so that the same command may find nothing wrong later.
    package var isOutage = false

    package static func ok(_ check: Check, _ message: String) -> Finding {
        Finding(check: check, state: .ok, message: message)
    }
    package static func warning(_ check: Check, _ message: String) -> Finding {
        Finding(check: check, state: .warning, message: message)
    }
    package static func wrong(_ check: Check, _ message: String, isOutage: Bool = false) -> Finding {
        Finding(check: check, state: .wrong, message: message, isOutage: isOutage)
    }
    package static func skipped(_ check: Check, _ message: String) -> Finding {
        Finding(check: check, state: .skipped, message: message)
    }

    /// Returns the messages of an error, which already say what to do.
    static func sentences(of error: any Error) -> [String] { Failure(error)?.messages ?? ["\(error)"] }
}

/// The stable shape of `doctor --json`.
package struct DiagnosisResult: Codable, Hashable, Sendable {
    package var version: String
    package var system: String
    package var libraries: String
    package var user: String
    package var checks: [Finding]
    package var isWell: Bool

    package init(version: String, system: String, libraries: String, user: String, checks: [Finding]) {
        self.version = version
        self.system = system
        self.libraries = libraries
        self.user = user
        self.checks = Finding.Check.allCases.flatMap { check in checks.filter { $0.check == check } }
        isWell = !checks.contains { $0.state == .wrong }
    }

    /// `nil` if nothing is wrong. `unavailable` if only connections to APNs or to the server of the store are wrong.
    package var failure: Failure.Kind? {
        if isWell { return nil }
        return checks.contains { $0.state == .wrong && !$0.isOutage } ? .configuration : .unavailable
    }
}
