import ArgumentParser
import Campaigns

@main
struct Fanfare: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanfare",
        abstract: "Broadcasts to Apple devices: campaign files in, localized pushes out, every outcome recorded.",
        discussion: """
            Results go to standard output, everything else to standard error. Exit codes: 0 done; 3 refused by a \
            guard, missed, or finished without reaching a device, unless its devices were left out on purpose; 64 \
            usage; 65 invalid file or data; 66 no such campaign or run; 69 APNs unreachable; 70 internal error; 73 an \
            output file cannot be created; 74 the disk failed; 75 busy or stopped early: run it again; 76 stopped, a \
            breaker is open, or the run is late: a person must decide; 77 credential refused; 78 configuration.
            """,
        version: "0.1.0",
        subcommands: [
            InitCommand.self,
            ValidateCommand.self,
            PlanCommand.self,
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
            TokensCommand.self,
            SchemaCommand.self,
            SimulatorCommand.self,
            DemoCommand.self,
            InstallCommand.self,
        ]
    )

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
            await OwnPost.leave()
            Failure.exit(with: error)
        }
        await OwnPost.leave()
        ThisProcess.leave(ExitStatus.done.rawValue)
    }
}
