import ArgumentParser
import CVersion
import Campaigns

@main
struct Fanfare: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanfare",
        abstract: "Broadcasts to Apple devices: campaign files in, localized pushes out, every outcome recorded.",
        discussion: """
            Results go to standard output, everything else to standard error. \
            Exit codes: \(exitCodes.map { "\($0.code) \($0.meaning)" }.joined(separator: "; ")).
            """,
        version: String(cString: fanfare_version()),
        subcommands: [
            InitCommand.self,
            ValidateCommand.self,
            PlanCommand.self, PlansCommand.self,
            RenderCommand.self,
            TestSendCommand.self,
            RunCommand.self,
            ServeCommand.self,
            ScheduleCommand.self,
            StatusCommand.self,
            StopCommand.self,
            PauseCommand.self,
            ResumeCommand.self,
            ApproveCommand.self,
            RejectCommand.self,
            WithdrawCommand.self,
            ApprovalsCommand.self,
            ChangesCommand.self,
            CancelCommand.self,
            CorrectCommand.self,
            RecallCommand.self,
            ReportCommand.self,
            PruneOutcomesCommand.self,
            ExplainCommand.self,
            VerifyCommand.self,
            AuditCommand.self,
            BackupCommand.self, RestoreCommand.self,
            MoveCommand.self,
            DoctorCommand.self,
            FeedsCommand.self,
            DevicesCommand.self,
            SegmentsCommand.self,
            EventsCommand.self,
            ExportCommand.self,
            TokensCommand.self,
            SchemaCommand.self,
            GuideCommand.self,
            SimulatorCommand.self,
            DemoCommand.self,
            InstallCommand.self,
        ]
    )

    /// Every exit code in order, with its meaning.
    static var exitCodes: [(code: Int32, meaning: String)] {
        (ExitStatus.allCases.map { ($0.rawValue, $0.meaning) } + [(ExitCode.validationFailure.rawValue, "usage")])
            .sorted { $0.0 < $1.0 }
    }

    /// The prefix that the argument parser writes before its own errors, the same as in ``Failure/exit(with:)``.
    static var _errorPrefix: String { "error: " }

    static func main() async {
        ThisProcess.keepMemoryPrivate()
        do {
            var command = try parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            await OwnRegistration.releaseAll()
            Failure.exit(with: error)
        }
        await OwnRegistration.releaseAll()
        ThisProcess.exitImmediately(ExitStatus.done.rawValue)
    }
}
