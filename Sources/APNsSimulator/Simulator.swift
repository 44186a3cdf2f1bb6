import HTTP2
import Synchronization

/// A simulated APNs: an HTTP/2 server over TLS that makes Apple's checks, in two environments, and can simulate faults.
/// It is for tests, rehearsals and the demo.
///
/// Any thread may use it. Every request is in ``log()`` and ``counts()`` before its response is sent.
package final class Simulator: Sendable {
    private struct Running {
        var loops: [EventLoop] = []
        var hasStarted = false
    }

    private let policy: SimulatorPolicy
    private let state: SimulatorState
    private let authority: CertificateAuthority
    private let endpoint: Endpoint
    private let ports = SimulatorPorts()
    private let running = Mutex(Running())
    /// The PEM file of the certificate authority that clients must trust.
    package let authorityPath: String

    private struct Endpoint: Sendable {
        var host: String
        var ports: [SimulatorEnvironment: Int] = [:]
        var threads: Int
        var tls: TLSContext
        var settings: ServerSettings
        var seed: UInt64
    }

    /// Reads the keys, creates the certificates and writes `ca.pem`. Opens no port yet.
    package init(_ options: SimulatorOptions) throws {
        policy = try SimulatorPolicy(options)
        state = try SimulatorState(options, policy: policy)
        let nowMs = policy.nowMs() - options.clockOffsetMs
        authority = try CertificateAuthority(nowMs: nowMs)
        authorityPath = options.directory + "/ca.pem"
        try TextFile.write(authority.pem, to: authorityPath)
        let clientAuthorities: [UInt8]? =
            switch options.clientCertificates {
            case .notAsked: nil
            case .own: authority.pem
            case .authority(let path): try TextFile.read(path)
            }
        let identity = try authority.serverIdentity(host: options.host, nowMs: nowMs)
        var settings = ServerSettings(
            vocabulary: RequestHeader.vocabulary, streamLimit: options.streamsBeforeAcceptance,
            headerListBytesMax: options.headerListBytesMax,
            bodyBytesMax: max(options.payloadBytesMax, options.voipPayloadBytesMax) + 1)
        settings.connectionWindowBytes = options.connectionWindowBytes
        var endpoint = Endpoint(
            host: options.host, threads: max(1, options.threads),
            tls: try TLSContext(server: identity, clientAuthorities: clientAuthorities), settings: settings,
            seed: options.seed)
        endpoint.ports[.production] = options.productionPort
        endpoint.ports[.sandbox] = options.sandboxPort
        guard !endpoint.ports.isEmpty else { throw SimulatorError.noEnvironment }
        self.endpoint = endpoint
    }

    deinit {
        stop()
    }

    /// Binds the ports and serves them. A second call does nothing.
    package func start() throws {
        try running.withLock { running in
            guard !running.hasStarted else { return }
            let loops = try (0..<endpoint.threads).map { try EventLoop(named: "apns-sim-\($0)") }
            let listeners = try listeners(on: loops)
            do {
                for loop in loops { try loop.start() }
            } catch {
                for loop in loops { loop.stop() }
                throw error
            }
            for listener in listeners.values { listener.listen() }
            ports.set(listeners)
            running = Running(loops: loops, hasStarted: true)
        }
    }

    private func listeners(on loops: [EventLoop]) throws(SocketError) -> [SimulatorEnvironment: HTTP2Listener] {
        let numbers = ConnectionNumbers()
        var listeners: [SimulatorEnvironment: HTTP2Listener] = [:]
        for (environment, port) in endpoint.ports {
            listeners[environment] = try HTTP2Listener(
                host: endpoint.host, port: port, loops: loops, tls: endpoint.tls, settings: endpoint.settings,
                numbers: numbers, admit: { [state] in Self.admission(state.actionAtConnect(to: environment)) }
            ) { [policy, state, ports] connection in
                PushConnection(connection, environment: environment, policy: policy, state: state, ports: ports)
            }
        }
        return listeners
    }

    private static func admission(_ action: FaultAction?) -> HTTP2Listener.Admission {
        switch action {
        case .close: .close
        case .silence, .silentConnection: .stall
        default: .serve
        }
    }

    /// Closes every connection immediately, waits for the threads and completes the log file. Idempotent. A stopped
    /// simulator cannot be restarted.
    package func stop() {
        let loops = running.withLock { running in
            defer { running = Running(hasStarted: true) }
            return running.loops
        }
        ports.set([:])
        for loop in loops { loop.stop() }
        state.closeLog()
    }

    /// Returns 0 before ``start()``, after ``stop()``, and for an environment that is not served.
    package func port(for environment: SimulatorEnvironment) -> Int {
        ports[environment]?.port ?? 0
    }

    /// Returns every request so far, in order of arrival. Empty unless the options keep the log.
    package func log() -> [SimulatorLogEntry] { state.logEntries() }

    /// Returns the devices' screens. Empty unless the options keep them.
    package func devices() -> SimulatedDevices { state.currentDevices() ?? SimulatedDevices() }

    /// Changes the screens, for instance takes devices offline or online.
    package func changeDevices(_ change: (inout SimulatedDevices) -> Void) {
        state.changeDevices(change)
    }

    package func counts() -> SimulatorCounts { state.currentCounts() }

    /// Changes the known device tokens. The change applies from the next request on.
    package func changeRegistry(_ change: (inout SimulatorRegistry) -> Void) {
        state.change(change)
    }

    /// Replaces the fault script. Its counters and times restart.
    package func setFaults(_ rules: [FaultRule]) {
        state.setFaults(rules, seed: endpoint.seed)
    }

    /// Replaces ``SimulatorOptions/answerDelayMs``.
    package func setAnswerDelay(milliseconds: Int) {
        state.setAnswerDelay(milliseconds: milliseconds)
    }

    /// Refuses new connections until ``openPort(of:)``. Open connections continue. The refusal is in effect when the
    /// method returns.
    package func closePort(of environment: SimulatorEnvironment) async {
        await withCheckedContinuation { continuation in
            guard let listener = ports[environment] else { return continuation.resume() }
            listener.refuse { continuation.resume() }
        }
    }

    /// Accepts new connections again, on the same port.
    package func openPort(of environment: SimulatorEnvironment) {
        ports[environment]?.resume()
    }

    /// Closes every connection of an environment with no GOAWAY. The method returns before they are closed.
    package func endConnections(of environment: SimulatorEnvironment) {
        ports[environment]?.endConnections()
    }

    /// Creates a client certificate for one app and its private key. The simulator's own authority signs the
    /// certificate. Writes both as PEM into the directory, which must exist.
    package func issueClientCertificate(
        topic: String, environment: SimulatorEnvironment, directory: String
    ) throws -> (certificatePath: String, keyPath: String) {
        let identity = try authority.clientIdentity(topic: topic, environment: environment, nowMs: policy.nowMs())
        let base = "\(directory)/\(topic)-\(environment.rawValue)"
        try TextFile.write(identity.certificateChain, to: base + ".cert.pem")
        try TextFile.write(identity.privateKey, to: base + ".key.pem")
        return (base + ".cert.pem", base + ".key.pem")
    }
}

/// The listening ports of a simulator, one for each environment. They can be closed and opened while the simulator
/// runs. Any thread may use them.
final class SimulatorPorts: Sendable {
    private let listeners = Mutex<[SimulatorEnvironment: HTTP2Listener]>([:])

    func set(_ new: [SimulatorEnvironment: HTTP2Listener]) {
        listeners.withLock { $0 = new }
    }

    subscript(_ environment: SimulatorEnvironment) -> HTTP2Listener? {
        listeners.withLock { $0[environment] }
    }

    /// Ends every connection and refuses new ones until the port resumes.
    func beginOutage(of environment: SimulatorEnvironment) {
        guard let listener = self[environment] else { return }
        listener.refuse()
        listener.endConnections()
    }
}
