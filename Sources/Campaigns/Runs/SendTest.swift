package import Model
import Rendering
package import Store
import Synchronization

/// Sends one push to one device, so that a person can look at it there. The test is a run of its own, kept out of
/// the campaign's reports.
package struct SendTest: Sendable {
    /// The maximum number of tests of one campaign within a millisecond. Further tests are refused as already existing.
    private static let atOneMomentMax = 20

    private let store: any ApprovePlans.PlanStore
    private let segment: String?
    private let named: [String: String]
    private let approvals: ApprovalRules?
    private let limit: TestSendLimit?

    /// - Parameters:
    ///   - segment: the segment of the devices that tests may reach; `nil` for any device. With `approvals`, a test
    ///     needs a segment, or a device that is named.
    ///   - named: installation ids, by the names of the devices.
    ///   - approvals: the configured rules; `nil` if no run needs an approval.
    ///   - limit: the limit in a process that many people use; `nil` for a command of a person who has access to the
    ///     store.
    package init(
        store: any ApprovePlans.PlanStore, segment: String?, named: [String: String] = [:],
        approvals: ApprovalRules? = nil,
        limit: TestSendLimit? = nil
    ) {
        self.store = store
        self.segment = segment
        self.named = named
        self.approvals = approvals
        self.limit = limit
    }

    /// Creates the run of the test.
    ///
    /// - Parameters:
    ///   - device: a name of the configuration, an installation id, a user id, a token or its last 8 characters.
    ///   - variant: `nil` for the variant that the device would get.
    ///   - isHandedOver: whether the daemon sends the run; otherwise, the process that creates the run sends it.
    ///   - sees: returns whether the caller may see devices of a topic.
    package func start(
        _ definition: RunDefinition, device text: String, variant: String?, isHandedOver: Bool = false, by actor: Actor,
        now: Timestamp, sees: (_ topic: String) -> Bool = { _ in true }
    ) async throws -> (run: Run, device: StoredDevice) {
        _ = try VariantRenderers(definition)
        let device = try await DeviceLookup.device(
            named[text] ?? text, topic: definition.campaign.deviceTopic, in: store, sees: sees)
        try await requireListed(device, now: now)
        try limit?.count(try await (approvals?.people(in: store) ?? People()).person(actor.identity))
        let run = try await store.createTestRun(
            definition, occurrence: try await occurrence(definition.campaign.name, isHandedOver, now),
            device: device.id, variant: try definition.campaign.variantIndex(named: variant), now: now, by: actor)
        return (run, device)
    }

    private func requireListed(_ device: StoredDevice, now: Timestamp) async throws {
        guard let segment else {
            let isNamed = device.record.installationID.map { named.values.contains($0) } ?? false
            guard approvals == nil || isNamed else {
                throw Failure(
                    .refused,
                    "nothing was sent: with `approvals`, tests reach only test devices; add this one on the Setup page, or write "
                        + "`test_devices: {Anna: INSTALLATION}` in the configuration"
                )
            }
            return
        }
        let found = try await store.members(ofSegment: segment, after: device.id - 1, limit: 1, now: now)
        guard found.devices.first?.id != device.id else { return }
        throw Failure(
            .refused,
            "\(device.record.installationID ?? device.record.token.redacted) is not in segment \(segment), and tests reach "
                + "no other devices (test_devices in the configuration); add the device, see `fanfare segments show "
                + "\(segment)`, or name another"
        )
    }

    /// Throws if the configuration names no device so.
    package func requireNamed(_ name: String) throws {
        guard named[name] == nil else { return }
        let suggestion = Suggestion.nearest(to: name, among: Array(named.keys))
        throw Failure(
            .notFound,
            "test_devices in the configuration names no device \"\(name)\""
                + (suggestion.map { "; did you mean \"\($0)\"?" } ?? ""))
    }

    /// Names the occurrence by the time. Several tests at one moment get a number each.
    private func occurrence(_ campaign: String, _ isHandedOver: Bool, _ now: Timestamp) async throws -> String {
        let name = (isHandedOver ? TestOccurrence.handedOverPrefix : TestOccurrence.prefix) + now.iso8601
        let names = [name] + (2...Self.atOneMomentMax).map { "\(name)-\($0)" }
        let known = try await store.knownOccurrences(of: campaign, among: names)
        return names.first { !known.contains($0) } ?? name
    }

    /// Returns the outcome of a test of a campaign, and its device. `nil` if the run is no test, or if the device is no
    /// longer stored.
    package func result(of run: Run) async throws -> TestResult? {
        guard run.isTest else { return nil }
        let outcome = try await outcome(of: run)
        return try await store.device(outcome.device).map { TestResult(run, $0, outcome) }
    }

    /// Returns the outcome of the run's first delivery.
    package func outcome(of run: Run) async throws -> OutcomeRow {
        let first = Mutex<OutcomeRow?>(nil)
        _ = try await store.outcomes(run: run.id) { rows in first.withLock { $0 = $0 ?? rows.first } }
        guard let outcome = first.withLock({ $0 }) else {
            throw Failure(.internalError, "run \(run.id) has no delivery")
        }
        return outcome
    }
}

/// Limits the tests that one person sends. A test needs no approval, so unlimited tests could become a broadcast
/// without approval.
package final class TestSendLimit: Sendable {
    /// The maximum number of tests of one person in any ``window``.
    package static let most = 10
    package static let window: Duration = .seconds(600)

    private let uptime: @Sendable () -> Duration
    /// The moments of each person's tests within the window, oldest first.
    private let sent = Mutex<[String: [Duration]]>([:])

    package init(uptime: @escaping @Sendable () -> Duration) { self.uptime = uptime }

    /// Counts one test; throws ``TooManyTests`` if the person has to wait.
    func count(_ person: String) throws {
        let now = uptime()
        try sent.withLock { sent in
            sent = sent.mapValues { $0.filter { now - $0 < Self.window } }.filter { !$0.value.isEmpty }
            let own = sent[person] ?? []
            if own.count >= Self.most, let oldest = own.first {
                throw TooManyTests(person: person, wait: Self.window - (now - oldest))
            }
            sent[person] = own + [now]
        }
    }
}

/// The error for a person who has used up the tests of the current window.
package struct TooManyTests: Error, Hashable, Sendable, CustomStringConvertible {
    package var person: String
    package var wait: Duration

    /// Whole seconds, rounded up.
    package var seconds: Int { max(1, Int(wait.inSeconds.rounded(.up))) }

    package var description: String {
        "\(person) has sent \(TestSendLimit.most) tests within \(WrittenDuration.text(TestSendLimit.window)); the next one may go "
            + "in \(seconds) s"
    }
}

/// The stable shape of `test-send --json`.
package struct TestResult: Codable, Hashable, Sendable {
    package var run: Int64
    package var device: Int64
    package var installationId: String?
    package var token: String
    package var environment: String
    package var state: String
    package var status: Int?
    package var reason: String?

    package init(_ run: Run, _ device: StoredDevice, _ outcome: OutcomeRow) {
        self.run = run.id
        self.device = device.id
        installationId = device.record.installationID
        token = device.record.token.redacted
        environment = device.record.environment.rawValue
        state = outcome.state.name
        status = outcome.status > 0 ? outcome.status : nil
        reason = outcome.reason
    }

    /// Returns the kind of failure to report, or `nil` if APNs accepted the push.
    package static func failureKind(_ outcome: OutcomeRow) -> Failure.Kind? {
        switch outcome.state {
        case .accepted: nil
        case .rejected: .invalidData
        case .suppressed: .refused
        case .unknown, .pending: .tryAgain
        }
    }
}
