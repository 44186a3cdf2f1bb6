import ArgumentParser
import Campaigns
import Foundation
import Model
import Rendering
import Sending
import Store

struct PlanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan", abstract: "Show which devices would get which text, without sending anything.",
        discussion: """
            The hash at the end names this plan: `run --plan HASH` sends it, or says what has changed since and sends \
            nothing. With --save the plan is kept for 90 days with its values: `run --plan NUMBER` sends it, and the web \
            pages show it at /plans/NUMBER. With --save and --occurrence the values also become those of that start of the \
            schedule: the daemon then sends them. Exit code 3 when a guard of the campaign would refuse the run.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments
    @Option(help: "An occurrence of the campaign's schedule, such as 2026-12-01T09:00.") var occurrence: String?
    @Flag(help: "Plan a run that is started now, regardless of the schedule.") var now = false
    @Flag(help: "Record the plan, for approvers to sign with `fanfare approve`.") var forApproval = false
    @Option(help: "What to tell the approvers; with --for-approval.") var note: String?
    @Flag(help: "Keep the plan with its values, under a number.") var save = false
    @Flag(help: "Remove the values of an occurrence; with --occurrence.") var removeValues = false
    @Flag(help: "Show a sample payload of every text, not only of the first.") var samples = false
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        if note != nil, !forApproval { throw ValidationError("--note needs --for-approval") }
        if removeValues, occurrence == nil || save || !arguments.variables.isEmpty {
            throw ValidationError("--remove-values needs --occurrence, without --save and --var")
        }
        guard !save || !CampaignSource.isPath(arguments.campaign) else {
            throw ValidationError("with --save, give the campaign's name, not the path of its file")
        }
    }

    func run() async throws {
        let configuration = try settings.configuration()
        let session = try await settings.session(
            configuration, forApproval || save || removeValues ? .writing : .reading)
        if removeValues { try await remove(configuration, session) }
        let (definition, typed, files) = try CampaignArguments.definitionWithFiles(
            arguments.campaign, arguments.variables, configuration, plannedAt: session.now)
        // With --save, the values become those of the start, in place of its earlier ones.
        let givesValues = save && occurrence != nil && !typed.isEmpty
        let planned = try await session.useCases.planning(definition.campaign.topic)
            .plan(
                definition, typed: givesValues ? nil : typed, occurrence: occurrence, isNow: now, by: session.actor,
                now: session.now)
        let text = PlanText(
            plan: planned.plan, unset: planned.unset, showsAllSamples: samples, isForApproval: forApproval)
        Console.print(json ? try ResultJSON.text(planned.result) : text.text)
        if forApproval { try await ask(for: planned, files, session) }
        if save {
            let values = definition.variables.filter { typed.contains($0.key) }
            try await keep(planned, values, configuration, session)
        }
        if !planned.plan.refusals.isEmpty { throw ExitStatus.refused.exitCode }
    }

    /// Removes the values of the occurrence, and shows what it sends then.
    private func remove(_ configuration: Configuration, _ session: Session) async throws {
        let source = try CampaignSource.load(arguments.campaign, configuration)
        let removed = try await session.useCases.values.remove(
            from: occurrence ?? "", of: source, by: session.actor, now: session.now)
        Console.note(
            removed ? "removed the values of \(occurrence ?? "")" : "\(occurrence ?? "") has no values of its own")
    }

    private func keep(
        _ planned: PlanCampaign.Planned, _ values: [String: String], _ configuration: Configuration, _ session: Session
    ) async throws {
        let kept = try await session.useCases.plans.keep(
            planned, file: arguments.campaign, by: session.actor, now: session.now)
        let next =
            kept.isScheduled || kept.token == nil ? "" : "; `fanfare run \(kept.file) --plan \(kept.id)` sends it"
        Console.note("kept as plan \(kept.id)\(next)")
        guard let occurrence, !values.isEmpty else { return }
        let source = try CampaignSource.load(arguments.campaign, configuration)
        let start = try await session.useCases.values.give(
            values, to: occurrence, of: source, by: session.actor, now: session.now)
        Console.note("the start \(start.occurrence.key) sends these values")
    }

    private func ask(
        for planned: PlanCampaign.Planned, _ files: [String: String], _ session: Session
    ) async throws {
        guard planned.unset.isEmpty else {
            throw Failure(
                .invalidData,
                "a plan for approval needs all its variables: give \(planned.unset.joined(separator: ", ")) with --var")
        }
        try await session.ask(for: planned.plan, occurrence: planned.occurrence, note: note, files: files)
    }
}

struct RenderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "render", abstract: "Print a campaign's payload for a language or a device, as it would be sent.",
        discussion: """
            The payload goes to standard output, its size and the headers that would go with it to standard error. With \
            --device language, variant, fields and badge are the device's.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments

    @Option(help: "The device's language, a BCP 47 tag such as de-AT (default: the template's default_locale).")
    var locale: String?

    @Option(help: "An installation id, a user id, a token or its last 8 characters.") var device: String?
    @Option(help: "The variant to print (default: the device's, or the first).") var variant: String?
    @Flag(help: "Indent the JSON.") var pretty = false
    @Flag(help: "Print payload, size and headers as JSON.") var json = false

    func validate() throws {
        guard locale == nil || device == nil else { throw ValidationError("give --locale or --device, not both") }
    }

    func run() async throws {
        let configuration = try settings.configuration()
        let (definition, unset) = try arguments.definition(configuration, plannedAt: WallClock.system.now())
            .filledForShow()
        let rendering =
            if let device {
                try await RenderPayload.rendering(
                    definition, device: device, variant: variant,
                    in: try await settings.session(configuration, .reading).store)
            } else {
                try RenderPayload.rendering(definition, locale: locale, variant: variant)
            }
        if !unset.isEmpty { Console.note("not set yet: \(unset.joined(separator: ", "))") }
        if json { return Console.print(try ResultJSON.text(rendering.result)) }
        for line in rendering.notes { Console.note(line) }
        Console.print(pretty ? try Self.indented(rendering.payload) : rendering.payload)
    }

    private static func indented(_ payload: String) throws -> String {
        let value = try JSONSerialization.jsonObject(with: Data(payload.utf8))
        let data = try JSONSerialization.data(
            withJSONObject: value, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        return String(decoding: data, as: UTF8.self)
    }
}

struct TestSendCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test-send", abstract: "Send a campaign to one device, as a test.",
        discussion: """
            The audience, the guards and the holdout are ignored: the device gets the push. The test is a run of its \
            own, marked as a test and kept out of the campaign's reports; the device's silent budget counts it \
            like any other. Exit codes: 0 accepted; 65 rejected by APNs; 3 not sent, with the reason; 75 no response.
            """)

    @OptionGroup var settings: Settings
    @OptionGroup var arguments: CampaignArguments
    @Option(help: "An installation id, a user id, a token or its last 8 characters.") var device: String?
    @Option(help: "The name of a device, from test_devices in the configuration; in place of --device.") var to: String?
    @Option(help: "The variant to send (default: the one the device would get).") var variant: String?
    @OptionGroup var log: LogOptions
    @Flag(help: "Print the result as JSON.") var json = false

    func validate() throws {
        guard (device == nil) != (to == nil) else { throw ValidationError("give either --device or --to") }
    }

    func run() async throws {
        let configuration = try settings.configuration()
        let session = try await settings.session(configuration)
        if let to { try session.useCases.tests.requireNamed(to) }
        let definition = try arguments.definition(configuration, plannedAt: session.now)
        let prepared = try await session.useCases.start.prepare(definition, typed: [], occurrence: nil)
        var sending = CommandSender.testing(session, log)
        let isOwn = try await sending.prepare(prepared.app)
        let test = session.useCases.tests
        let (run, found) = try await test.start(
            definition, device: to ?? device ?? "", variant: variant, isHandedOver: !isOwn, by: session.actor,
            now: session.now)
        let environment = found.record.environment
        Console.note(
            Console.warned(
                "sending to \(environment.summary(devices: 1)), \(found.record.installationID ?? found.record.token.redacted), "
                    + "and to no other", on: .notes))
        if definition.campaign.pushType == .background { noteBudget(prepared.app.silentBudget) }
        let end = isOwn ? try await sending.send(run) : try await sending.handedOver(run)
        let outcome = try await test.outcome(of: run)
        try show(outcome, run, found)
        if let failure = end.failure(of: run, session.runs) { throw failure }
        if let kind = TestResult.failureKind(outcome) { throw ExitStatus(kind).exitCode }
    }

    private func noteBudget(_ budget: Configuration.SilentBudget) {
        Console.note(
            "a background push: it uses one of the \(budget.limit) that this device may get in "
                + "\(WrittenDuration.text(budget.window)), and is not sent when they are used up")
    }

    private func show(_ outcome: OutcomeRow, _ run: Run, _ device: StoredDevice) throws {
        if json { return Console.print(try ResultJSON.text(TestResult(run, device, outcome))) }
        let record = device.record
        let who =
            "\(record.installationID ?? "device \(device.id)") (\(record.token.redacted), \(record.environment.rawValue))"
        let answer = [outcome.status > 0 ? "\(outcome.status)" : nil, outcome.reason].compactMap(\.self)
        Console.print(
            "test \(run.id) of \(run.campaign) to \(who): \(outcome.state.name)"
                + (answer.isEmpty ? "" : " (\(answer.joined(separator: " ")))"))
    }
}
