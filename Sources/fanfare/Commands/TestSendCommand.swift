import ArgumentParser
import Foundation
import Model
import Store
import Synchronization
import Sending

struct TestSendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test-send", abstract: "Send a campaign to one device, to look at it there.",
        discussion: """
            The audience, the guards and the holdout do not matter: the device gets the push. It is a run of its own, marked \
            as a test and kept out of the campaign's reports; the silent budget of the device counts it like any other. \
            Exit codes: 0 accepted; 65 refused by APNs; 3 not sent, with the reason; 75 no answer.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments
    @Option(help: "An installation id, a user id, a token or its last 8 characters.") var device: String
    @Option(help: "The variant to send (default: the one the device would get).") var variant: String?
    @OptionGroup var log: LogOptions
    @Flag(help: "Print the result as JSON.") var json = false

    /// The stable shape of `test-send --json`.
    struct Result: Encodable {
        var run: Int64
        var device: Int64
        var installationId: String?
        var token: String
        var environment: String
        var state: String
        var status: Int?
        var reason: String?
    }

    func run() async throws {
        let configuration = try settings.configuration()
        let now = Timestamp(Date())
        let definition = try arguments.definition(configuration, plannedAt: now)
        _ = try VariantRenderers(definition)
        let app = try configuration.app(for: definition.campaign.topic)
        let logger = log.logger
        let sender = try Pipeline.Sender(app, logger: logger)
        let store = try settings.store(configuration)
        let found = try await DeviceLookup.device(device, topic: definition.campaign.deviceTopic, in: store)
        if definition.campaign.pushType == .background { noteBudget(app.silentBudget) }
        let run = try await store.createTestRun(
            definition, occurrence: "test-\(now.iso8601)", device: found.id,
            variant: try definition.campaign.variantIndex(named: variant), now: now, by: ThisProcess.actor)
        let end = try await Broadcast(store: store, sender: sender, logger: logger).execute(run)
        let outcome = try await outcome(of: run, store)
        try show(outcome, run, found)
        try RunCommand.leave(run, after: end)
        if let status = Self.exitStatus(outcome) { throw status.exitCode }
    }

    private func noteBudget(_ budget: Configuration.SilentBudget) {
        Console.note(
            "a background push: it takes one of the \(budget.limit) this device may get in "
                + "\(WrittenDuration.text(budget.window)), and is not sent when they are used up")
    }

    private func outcome(of run: Run, _ store: any AllRoles) async throws -> OutcomeRow {
        let found = FirstOutcome()
        _ = try await store.outcomes(run: run.id) { rows in found.keep(rows) }
        guard let outcome = found.row else { throw Failure(.internalError, "run \(run.id) has no delivery") }
        return outcome
    }

    private func show(_ outcome: OutcomeRow, _ run: Run, _ device: StoredDevice) throws {
        let record = device.record
        if json {
            let result = Result(
                run: run.id, device: device.id, installationId: record.installationID, token: record.token.redacted,
                environment: record.environment.rawValue, state: outcome.state.name,
                status: outcome.status > 0 ? outcome.status : nil, reason: outcome.reason)
            return Console.print(try JSONOutput.text(result))
        }
        let who =
            "\(record.installationID ?? "device \(device.id)") (\(record.token.redacted), \(record.environment.rawValue))"
        let answer = [outcome.status > 0 ? "\(outcome.status)" : nil, outcome.reason].compactMap(\.self)
        Console.print(
            "test \(run.id) of \(run.campaign) to \(who): \(outcome.state.name)"
                + (answer.isEmpty ? "" : " (\(answer.joined(separator: " ")))"))
    }

    /// Nil: as it should be.
    private static func exitStatus(_ outcome: OutcomeRow) -> ExitStatus? {
        switch outcome.state {
        case .accepted: nil
        case .rejected: .invalidData
        case .suppressed: .refused
        case .unknown, .pending: .tryAgain
        }
    }
}

/// The one outcome of a test.
private final class FirstOutcome: Sendable {
    private let kept = Mutex<OutcomeRow?>(nil)

    var row: OutcomeRow? { kept.withLock { $0 } }

    func keep(_ rows: [OutcomeRow]) {
        kept.withLock { $0 = $0 ?? rows.first }
    }
}
