import APNs
import APNsSimulator
import ArgumentParser
import Campaigns
import Daemon

/// The exit codes of every command.
enum ExitStatus: Int32, CaseIterable {
    case done = 0
    /// Refused by a guard, missed, or finished without reaching any device, unless that was intended. A later command
    /// for the same occurrence exits with the same code.
    case refused = 3
    /// Invalid file or data.
    case invalidData = 65
    /// No such campaign, run, device, or other named object.
    case notFound = 66
    /// APNs unreachable.
    case unavailable = 69
    /// An error inside Fanfare.
    case internalError = 70
    /// An output file cannot be created.
    case cannotMake = 73
    /// A disk or file system failed.
    case inputOutput = 74
    /// Busy, or stopped early: run the same command again.
    case tryAgain = 75
    /// The run was stopped, a breaker is open, or the run is late. A person must decide, and no timer continues the
    /// run.
    case halted = 76
    /// APNs refuses the credential.
    case credentialRefused = 77
    /// The configuration is wrong.
    case configuration = 78

    init(_ kind: Failure.Kind) {
        self =
            switch kind {
            case .refused: .refused
            case .invalidData, .unusableStore: .invalidData
            case .notFound: .notFound
            case .unavailable: .unavailable
            case .halted: .halted
            case .internalError: .internalError
            case .tryAgain, .runNotOver: .tryAgain
            case .credentialRefused: .credentialRefused
            case .cannotMake: .cannotMake
            case .inputOutput: .inputOutput
            case .configuration: .configuration
            }
    }

    /// The meaning of the code, as help texts and the guide show it.
    var meaning: String {
        switch self {
        case .done: "done"
        case .refused:
            "refused by a guard, missed, or finished without reaching a device, unless its devices were left out on purpose"
        case .invalidData: "invalid file or data"
        case .notFound: "no such campaign or run"
        case .unavailable: "APNs unreachable"
        case .internalError: "internal error"
        case .cannotMake: "an output file cannot be created"
        case .inputOutput: "the disk failed"
        case .tryAgain: "busy or stopped early: run it again"
        case .halted: "stopped, a breaker is open, or the run is late: a person must decide"
        case .credentialRefused: "credential refused"
        case .configuration: "configuration"
        }
    }

    var exitCode: ExitCode { ExitCode(rawValue) }
}

extension Failure {
    /// Prints the error and exits the process. A command that fails exits only here.
    static func exit(with error: any Error) -> Never {
        guard let failure = of(error) else {
            let (text, status) = (Fanfare.fullMessage(for: error), Fanfare.exitCode(for: error))
            if !text.isEmpty { if status.isSuccess { Console.print(text) } else { Console.line(text) } }
            ThisProcess.exitImmediately(status.rawValue)
        }
        for message in failure.messages {
            // A diagnostic already contains its severity and place.
            Console.error(
                message.contains(": error: ") || message.contains(": warning: ") ? message : "error: \(message)")
        }
        ThisProcess.exitImmediately(ExitStatus(failure.kind).rawValue)
    }

    /// Converts an error to a failure. Returns `nil` for an error that the argument parser prints.
    static func of(_ error: any Error) -> Failure? {
        switch error {
        case is ExitCode, is ValidationError, is CleanExit: nil
        case let failure as FeedFailure: Failure(.tryAgain, failure.description)
        case let error as CredentialError: Failure(error.isPassing ? .tryAgain : .configuration, error.description)
        case let error as SimulatorError: Failure(.configuration, error.description)
        case let error as TransportError: Failure(.unavailable, error.description)
        default:
            Failure(error) ?? (isFromArgumentParser(error) ? nil : Failure(.internalError, "\(error)"))
        }
    }

    private static func isFromArgumentParser(_ error: any Error) -> Bool {
        String(reflecting: type(of: error)).hasPrefix("ArgumentParser.")
    }
}
