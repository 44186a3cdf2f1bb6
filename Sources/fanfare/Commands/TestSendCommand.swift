import ArgumentParser
import Campaigns
import Foundation
import Model
import Sending
import Store

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

    func run() async throws {
        let configuration = try settings.configuration()
        let definition = try arguments.definition(configuration, plannedAt: Timestamp(Date()))
        _ = try VariantRenderers(definition)
        let app = try configuration.app(for: definition.campaign.topic)
        let session = try Session(configuration)
        let sending = try SendingHere(session, topic: app.topic, log.logger)
        let test = SendTest(store: session.store)
        let (run, found) = try await test.start(
            definition, device: device, variant: variant, by: session.actor, now: session.now)
        if definition.campaign.pushType == .background { noteBudget(app.silentBudget) }
        let end = try await sending.send(run)
        let outcome = try await test.outcome(of: run)
        try show(outcome, run, found)
        if let failure = end.failure(of: run) { throw failure }
        if let kind = TestResult.failureKind(outcome) { throw ExitStatus(kind).exitCode }
    }

    private func noteBudget(_ budget: Configuration.SilentBudget) {
        Console.note(
            "a background push: it takes one of the \(budget.limit) this device may get in "
                + "\(WrittenDuration.text(budget.window)), and is not sent when they are used up")
    }

    private func show(_ outcome: OutcomeRow, _ run: Run, _ device: StoredDevice) throws {
        if json { return Console.print(try JSONOutput.text(TestResult(run, device, outcome))) }
        let record = device.record
        let who =
            "\(record.installationID ?? "device \(device.id)") (\(record.token.redacted), \(record.environment.rawValue))"
        let answer = [outcome.status > 0 ? "\(outcome.status)" : nil, outcome.reason].compactMap(\.self)
        Console.print(
            "test \(run.id) of \(run.campaign) to \(who): \(outcome.state.name)"
                + (answer.isEmpty ? "" : " (\(answer.joined(separator: " ")))"))
    }
}
