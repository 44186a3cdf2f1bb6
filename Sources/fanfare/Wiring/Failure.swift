import APNs
import APNsSimulator
import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Store
import Sending
import Campaigns
import Daemon

/// An error a command ends with: what to print, and the code to exit with.
struct Failure: Error {
    var status: ExitStatus
    /// Each on a line of its own.
    var messages: [String]

    init(_ status: ExitStatus, _ messages: String...) {
        self.status = status
        self.messages = messages
    }

    /// The same with more to say.
    func with(_ more: [String]) -> Failure {
        var failure = self
        failure.messages += more
        return failure
    }

    /// A file with problems: all of them, each with its place.
    init(_ status: ExitStatus, _ diagnostics: [Diagnostic]) {
        self.status = status
        messages = diagnostics.map(\.description)
    }

    /// Prints and leaves; the only way out of a command that failed.
    static func exit(with error: any Error) -> Never {
        guard let failure = failure(for: error) else { Fanfare.exit(withError: error) }
        for message in failure.messages {
            // A diagnostic already says that it is an error, and where.
            Console.error(
                message.contains(": error: ") || message.contains(": warning: ") ? message : "error: \(message)")
        }
        Fanfare.exit(withError: failure.status.exitCode)
    }

    /// Nil for errors of the argument parser, which prints its own.
    private static func failure(for error: any Error) -> Failure? {
        switch error {
        case let failure as Failure: failure
        case is ExitCode, is ValidationError, is CleanExit: nil
        case let refusal as GuardRefusal: Failure(.refused, refusal.description)
        case let drift as PlanDrift: Failure(.refused, drift.description)
        case let error as StoreError: Failure(error.status, error.description)
        case let error as PayloadRenderer.RenderError: Failure(.invalidData, error.description)
        case let error as RunVariables.VariableError: Failure(.invalidData, error.description)
        case let failure as FeedFailure: Failure(.tryAgain, failure.description)
        case let error as EngineError: Failure(error.status, error.description)
        case let error as CredentialError: Failure(.configuration, error.description)
        case let error as ImportError: Failure(error.status, error.description)
        case let error as SimulatorError: Failure(.configuration, error.description)
        case let error as TransportError: Failure(.unavailable, error.description)
        case is CancellationError: Failure(.tryAgain, "stopped before it was done; run the same command again")
        default: isFromArgumentParser(error) ? nil : Failure(.internalError, "\(error)")
        }
    }

    private static func isFromArgumentParser(_ error: any Error) -> Bool {
        String(reflecting: type(of: error)).hasPrefix("ArgumentParser.")
    }
}

extension EngineError {
    var status: ExitStatus {
        switch self {
        case .otherDaemon: .tryAgain
        case .runVanished, .noEndpoint: .configuration
        }
    }
}

extension StoreError {
    var status: ExitStatus {
        switch self {
        case .newerVersion, .olderVersion, .notADatabase, .notAStore, .corrupt, .noSuchSegment, .unsuitableValue,
            .audienceTooLarge,
            .audienceSQL, .segmentCycle, .segmentsTooDeep, .segmentIsDynamic, .segmentIsStatic, .deviceOfOtherTopic,
            .occurrenceTaken, .runIsOver, .illegalChange, .outcomesPruned:
            .invalidData
        case .backupExists: .refused
        case .noSuchRun, .noSuchDevice: .notFound
        case .busy, .diskFull, .lostClaim, .notFinished: .tryAgain
        case .noFolder, .cannotOpen, .readOnly: .configuration
        case .failed: .internalError
        }
    }
}

extension ImportError {
    var status: ExitStatus {
        switch self {
        case .unreadable: .notFound
        case .header: .invalidData
        case .rejectsUnwritable: .configuration
        }
    }
}
