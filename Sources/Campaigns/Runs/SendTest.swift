package import Model
package import Store
import Synchronization

/// One push to one device, to look at it there: a run of its own, kept out of the campaign's reports.
package struct SendTest: Sendable {
    private let store: any RunLog & DeviceRegistry & OutcomeReader

    package init(store: any RunLog & DeviceRegistry & OutcomeReader) {
        self.store = store
    }

    /// Makes the run.
    ///
    /// - Parameters:
    ///   - device: an installation id, a user id, a token or its last 8 characters.
    ///   - variant: nil: the one the device would get.
    package func start(
        _ definition: RunDefinition, device text: String, variant: String?, by actor: Actor, now: Timestamp
    ) async throws -> (run: Run, device: StoredDevice) {
        let device = try await DeviceLookup.device(text, topic: definition.campaign.deviceTopic, in: store)
        let run = try await store.createTestRun(
            definition, occurrence: "test-\(now.iso8601)", device: device.id,
            variant: try definition.campaign.variantIndex(named: variant), now: now, by: actor)
        return (run, device)
    }

    /// What became of it.
    package func outcome(of run: Run) async throws -> OutcomeRow {
        let first = Mutex<OutcomeRow?>(nil)
        _ = try await store.outcomes(run: run.id) { rows in first.withLock { $0 = $0 ?? rows.first } }
        guard let outcome = first.withLock({ $0 }) else {
            throw Failure(.internalError, "run \(run.id) has no delivery")
        }
        return outcome
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

    /// Nil: as it should be.
    package static func failureKind(_ outcome: OutcomeRow) -> Failure.Kind? {
        switch outcome.state {
        case .accepted: nil
        case .rejected: .invalidData
        case .suppressed: .refused
        case .unknown, .pending: .tryAgain
        }
    }
}
