import APNs
import APNsSimulator
import Foundation
import Logging
import LonePipeline
import Model
import Platform
import SQLiteStore
@testable import Senders
import Sending
import SendingScene
import Store
import Synchronization
import TestSupport
import Testing

/// The fault matrix runs on every transport that a configuration may name, the default first.
extension Configuration.Transport {
    /// It knows which stream a GOAWAY or a refusal is about. libcurl keeps that to itself, so that what was certainly not
    /// processed has to count as unknown (`ProviderProtocol` section 9).
    var knowsStreams: Bool { self == .native }

    fileprivate func make(_ credential: PushCredential, _ limits: LaneLimits, trust: String) -> any Transport {
        let logger = Logger(label: "test")
        let backOff = Backoff(first: .milliseconds(1), longest: .milliseconds(5))
        switch self {
        case .native:
            return NativeTransport(
                credential: credential, limits: limits, trust: trust, logger: logger, backOff: backOff)
        case .curl:
            return CurlTransport(credential: credential, limits: limits, trust: trust, logger: logger, backOff: backOff)
        }
    }
}

/// A store with devices, a simulator that knows them, and a real transport between: what both sides wrote down is compared.
/// The engine's time runs a thousand times as fast as ours, so that back-off of minutes is over at once.
final class FaultScene: Sendable {
    static let devices = 300

    let base: PipelineScene
    let simulator: Simulator
    private let kind: Configuration.Transport
    private let key: SigningKey
    private let started = ContinuousClock.now

    init(_ kind: Configuration.Transport, _ change: (inout SimulatorOptions) -> Void = { _ in }) async throws {
        self.kind = kind
        base = try PipelineScene()
        try await base.addDevices(0..<Self.devices)
        let pem = try SigningKey.generatedPEM()
        let keyPath = base.folder.file("key.p8")
        guard
            FileManager.default.createFile(
                atPath: keyPath, contents: Data(pem.utf8), attributes: [.posixPermissions: 0o600])
        else { throw CocoaError(.fileWriteUnknown) }
        key = try SigningKey(path: keyPath)
        var options = SimulatorOptions(directory: base.folder.path)
        options.sandboxPort = nil
        options.keepsLog = true
        options.keys = [SimulatorKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", pem: pem)]
        for number in 0..<Self.devices {
            options.registry.register(
                token: PipelineScene.token(number), environment: .production, topic: PipelineScene.topic)
        }
        change(&options)
        simulator = try Simulator(options)
        try simulator.start()
    }

    deinit { simulator.stop() }

    private var clock: WallClock {
        let (base, started) = (base, started)
        return WallClock(
            now: { base.clock.now + (ContinuousClock.now - started) * 1000 },
            uptime: { base.clock.uptime + (ContinuousClock.now - started) * 1000 },
            sleep: { duration in
                do {
                    try await Task.sleep(for: duration / 1000)
                } catch {
                    // Cancelled: early, as promised.
                }
            })
    }

    func start(
        _ onUnknown: Campaign.OnUnknown, expiresAfter: Duration = .seconds(20 * 86_400)
    ) async throws -> Run {
        try await base.start(
            try base.definition {
                $0.onUnknown = onUnknown
                $0.expiresAfter = expiresAfter
                // The time between two starts is long for this clock.
                $0.schedule = Schedule(trigger: .none)
                $0.schedule?.lateByMax = .seconds(20 * 86_400)
            })
    }

    /// - Parameters:
    ///   - port: where to send to instead of the simulator.
    ///   - latencies: told how long the answers took.
    func execute(
        _ run: Run, deadline: Duration = .seconds(20), connectsMax: Int = 100, port: Int? = nil,
        journals: SenderJournals = .none, watch: @escaping @Sendable (RunControl) -> Void = { _ in },
        latencies: @escaping @Sendable (LatencyRecorder) -> Void = { _ in }
    ) async throws -> RunEnd {
        var limits = LaneLimits()
        limits.requestDeadline = deadline
        limits.connectAttemptsMax = connectsMax
        // Of its own, as each process has: one remembers that its clock seems to be wrong.
        let source = ProviderTokenSource(
            key: key, teamID: "DEF123GHIJ", keyID: "ABC123DEFG", now: SimulatorOptions.systemMilliseconds)
        let transport = kind.make(.token(source), limits, trust: simulator.authorityPath)
        let endpoint = PushEndpoint(host: "127.0.0.1", port: port ?? simulator.port(for: .production))
        var sender = SendingSetup(
            transport: transport, endpoints: [.production: endpoint], lanesPerEnvironment: 1,
            silentBudget: .init(limit: 3, window: .seconds(3600)))
        sender.journals = journals
        let pipeline = LonePipeline(
            store: base.store, sender: sender, clock: clock, jitter: { 0 }, logger: Logger(label: "test"))
        return try await pipeline.execute(run, as: "test") { control, recorder in
            watch(control)
            latencies(recorder)
        }
    }

    /// A whole run, and what both sides say of it afterwards.
    func books(
        _ onUnknown: Campaign.OnUnknown, deadline: Duration = .seconds(20),
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Books {
        let run = try await start(onUnknown)
        let end = try await execute(run, deadline: deadline)
        #expect(end.isFinished, sourceLocation: sourceLocation)
        return try await books(run, onUnknown, sourceLocation: sourceLocation)
    }

    func books(
        _ run: Run, _ onUnknown: Campaign.OnUnknown, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Books {
        let outcomes = Mutex<[Int: OutcomeRow]>([:])
        let count = try await base.store.outcomes(run: run.id) { rows in
            outcomes.withLock { outcomes in
                for row in rows { if let number = row.number { outcomes[number] = row } }
            }
        }
        #expect(count == Self.devices, sourceLocation: sourceLocation)
        let books = Books(
            report: try await base.report(run, sourceLocation: sourceLocation),
            outcomes: outcomes.withLock { $0 }, log: simulator.log(), counts: simulator.counts(),
            knowsStreams: kind.knowsStreams)
        books.expectAgreement(onUnknown, sourceLocation)
        return books
    }
}

/// What the store and the simulator each wrote down.
struct Books {
    var report: Report
    /// By the device's number.
    var outcomes: [Int: OutcomeRow]
    var log: [SimulatorLogEntry]
    var counts: SimulatorCounts
    var knowsStreams: Bool

    var stored: DeliveryCounts { report.counts }
    var byToken: [String: RequestTally] { log.talliesByToken }
    /// Devices that got it more than once.
    var doubles: Int { byToken.values.count { $0.accepted > 1 } }

    func outcome(_ number: Int) -> OutcomeRow? { outcomes[number] }
    func tally(_ number: Int) -> RequestTally? { byToken[Self.hex(number)] }

    static func hex(_ number: Int) -> String {
        PipelineScene.token(number).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// What holds after every fault, whatever it was.
    func expectAgreement(_ onUnknown: Campaign.OnUnknown, _ sourceLocation: SourceLocation) {
        let tallies = byToken
        for (number, outcome) in outcomes {
            let seen = tallies[Self.hex(number)] ?? RequestTally()
            switch outcome.state {
            case .accepted: #expect(seen.accepted >= 1, "device \(number)", sourceLocation: sourceLocation)
            case .unknown: #expect(outcome.status == 0, "device \(number)", sourceLocation: sourceLocation)
            case .pending: #expect(seen.accepted == 0, "device \(number)", sourceLocation: sourceLocation)
            case .rejected: #expect(seen.refused >= 1, "device \(number)", sourceLocation: sourceLocation)
            case .suppressed: break
            }
            // What APNs certainly did not process is no attempt, as far as the transport knows of it.
            let attempts = seen.requests - (knowsStreams ? seen.untouched : 0)
            #expect(outcome.attempts >= attempts, "device \(number)", sourceLocation: sourceLocation)
        }
        #expect(Set(log.map(\.apnsID)).count == tallies.count, "one id per delivery", sourceLocation: sourceLocation)
        let doubled = outcomes.filter { (tallies[Self.hex($0.key)]?.accepted ?? 0) > 1 }
        #expect(doubled.values.allSatisfy { $0.attempts > 1 }, sourceLocation: sourceLocation)
        #expect(
            doubled.values.count { $0.state == .accepted } <= report.possibleDuplicates, sourceLocation: sourceLocation)
        if onUnknown == .skip { #expect(doubles == 0, sourceLocation: sourceLocation) }
    }
}

extension OutcomeRow {
    /// Of the device, as ``PipelineScene/addDevices(_:environment:)`` names it.
    fileprivate var number: Int? {
        installationID.flatMap { $0.hasPrefix("install-") ? Int($0.dropFirst("install-".count)) : nil }
    }
}
