package import APNs
import Foundation
import Logging
package import LonePipeline
package import Model
package import SQLiteStore
package import Sending
package import Store
package import TestSupport
package import Testing

/// A real store in a temporary folder, scripted lanes and a clock that stands still.
package final class PipelineScene: Sendable {
    package static let topic = "com.example.app"

    package let folder: TemporaryDirectory
    package let store: SQLiteFileStore
    package let clock = ManualClock()

    package init() throws {
        folder = try TemporaryDirectory()
        store = try SQLiteFileStore(path: folder.file("store.sqlite"))
    }

    package static func token(_ number: Int) -> [UInt8] {
        [UInt8](repeating: 7, count: 28) + withUnsafeBytes(of: UInt32(number).bigEndian) { Array($0) }
    }

    /// Returns the number from which a token was created.
    package static func number(_ token: [UInt8]) -> Int {
        token.suffix(4).reduce(0) { $0 << 8 | Int($1) }
    }

    package func addDevices(_ numbers: Range<Int>, environment: PushEnvironment = .production) async throws {
        let records = try numbers.map { number in
            var record = DeviceRecord(
                token: try #require(DeviceToken(bytes: Self.token(number))), environment: environment, topic: Self.topic
            )
            record.installationID = "install-\(number)"
            record.locale = number % 2 == 0 ? "de-AT" : "en-US"
            record.registeredAt = clock.now - .seconds(86_400)
            return record
        }
        _ = try await store.importDevices(records, now: clock.now)
    }

    package func definition(
        _ pushType: PushType = .alert, change: (inout Campaign) -> Void = { _ in }
    ) throws -> RunDefinition {
        var campaign = Campaign(name: "c", topic: Self.topic, pushType: pushType, template: "t")
        campaign.expiresAfter = .seconds(4 * 3600)
        change(&campaign)
        var template = Template(name: "t")
        if pushType == .alert {
            template.alert = .localized(
                try ["en", "de"].map {
                    .init(
                        locale: try #require(LocaleTag($0)), title: nil, subtitle: nil,
                        body: TemplateText(literal: "Hello \($0)"))
                })
        }
        return RunDefinition(campaign: campaign, template: template, variables: [:], plannedAt: clock.now)
    }

    /// Creates a run as after all confirmations and approvals. Returns an existing run unchanged.
    package func start(_ definition: RunDefinition, occurrence: String = "o") async throws -> Run {
        try await store.createRun(definition, occurrence: occurrence, now: clock.now, by: "test").run
    }

    package func pipeline(
        _ transport: any Transport, lanes: Int = 2, leaseMax: Int = 1000, caps: [FrequencyCap] = [],
        endpoints: [PushEnvironment: PushEndpoint] = [.production: .production, .sandbox: .sandbox]
    ) -> LonePipeline {
        var sender = SendingSetup(
            transport: transport, endpoints: endpoints, lanesPerEnvironment: lanes,
            silentBudget: .init(limit: 3, window: .seconds(3600)))
        sender.leaseMax = leaseMax
        sender.frequencyCaps = caps
        return LonePipeline(
            store: store, sender: sender, clock: clock.clock, jitter: { 0 }, logger: Logger(label: "test"))
    }

    /// Executes a run without a watcher.
    package func execute(
        _ run: Run, _ transport: any Transport, owner: String = "test", leaseMax: Int = 1000
    ) async throws -> RunEnd {
        try await pipeline(transport, leaseMax: leaseMax).execute(run, as: Actor(owner)) { _, _ in }
    }

    /// Returns the report, after it has recounted the counts and checked that they balance.
    package func report(_ run: Run, sourceLocation: SourceLocation = #_sourceLocation) async throws -> Report {
        let check = try await store.check(run.id)
        #expect(check.problems.isEmpty, "\(check.problems)", sourceLocation: sourceLocation)
        #expect(check.recounted.closes, sourceLocation: sourceLocation)
        #expect(check.recounted == check.stored, sourceLocation: sourceLocation)
        return try await store.report(run.id)
    }
}

extension ManualClock {
    package var clock: WallClock {
        WallClock(
            boot: "manual", now: { self.now }, uptime: { self.uptime }, sleep: { await self.sleep($0) })
    }
}

extension RunEnd {
    /// Whether every delivery has a final state.
    package var isFinished: Bool {
        switch self {
        case .finished, .noDeviceReached, .unsuccessful: true
        default: false
        }
    }
}
