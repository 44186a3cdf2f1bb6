import CampaignFiles
package import Model
import Rendering
import Senders
import Sending
import Store

/// The reason why a use case failed: a kind that every front end can distinguish, and sentences that say what happened,
/// where, and what to do.
package struct Failure: Error, Hashable, Sendable {
    package enum Kind: Hashable, Sendable, CaseIterable {
        /// Refused by a guard.
        case refused
        /// Invalid file or data.
        case invalidData
        /// The store, or a row of it, cannot be read. No caller can help.
        case unusableStore
        /// No such campaign, run or device.
        case notFound
        /// APNs unreachable.
        case unavailable
        /// A breaker is open, or the run is late: a person must decide.
        case halted
        /// An error inside Fanfare.
        case internalError
        /// Busy, or stopped early: retry.
        case tryAgain
        /// The run is not over. The caller can end it, or wait.
        case runNotOver
        /// APNs refuses the credential.
        case credentialRefused
        /// An output file cannot be created.
        case cannotMake
        /// A disk or file system failed.
        case inputOutput
        /// The configuration is wrong.
        case configuration
    }

    package var kind: Kind
    /// The sentences, each on a line of its own.
    package var messages: [String]

    package init(_ kind: Kind, _ messages: String...) {
        self.kind = kind
        self.messages = messages
    }

    /// Creates a failure from all problems of a file, each with its place.
    package init(_ kind: Kind, _ diagnostics: [Diagnostic]) {
        self.kind = kind
        messages = diagnostics.map(\.description)
    }

    /// Returns the same failure with more messages.
    package func with(_ more: [String]) -> Failure {
        var failure = self
        failure.messages += more
        return failure
    }

    /// Converts an error that a use case threw. Returns `nil` for any other error.
    package init?(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let refusal as GuardRefusal: self.init(.refused, refusal.description)
        case let refusal as FileRefusal: self.init(refusal.failureKind, refusal.description)
        case let unapproved as Unapproved: self.init(.refused, unapproved.description)
        case let unseen as RestoredUnseen: self.init(.halted, unseen.description)
        case let changed as RunChanged: self.init(.refused, changed.description)
        case let refusal as SegmentRefusal: self.init(.refused, refusal.description)
        case let limit as TooManyTests: self.init(.tryAgain, limit.description)
        case let drift as PlanDrift: self.init(.refused, drift.description)
        case let error as StoreError: self.init(error.failureKind, error.description)
        case let refusal as ReadRefusal: self.init(.tryAgain, refusal.description)
        case let error as PayloadRenderer.RenderError: self.init(.invalidData, error.description)
        case let error as RunVariables.VariableError: self.init(.invalidData, error.description)
        case let error as SenderError: self.init(error.failureKind, error.description)
        case let error as SendingError: self.init(.configuration, error.description)
        case let error as ImportError: self.init(error.failureKind, error.description)
        case is CancellationError: self.init(.tryAgain, "stopped early; run the same command again")
        default: return nil
        }
    }
}

extension Failure: CustomStringConvertible {
    package var description: String { messages.joined(separator: "\n") }
}

extension FileRefusal {
    fileprivate var failureKind: Failure.Kind {
        switch self {
        case .editingIsOff, .unconditional, .changedMeanwhile, .used: .refused
        case .wrong, .tooLarge, .taken, .noText, .unsuitable: .invalidData
        }
    }
}

extension SenderError {
    fileprivate var failureKind: Failure.Kind {
        switch self {
        case .otherDaemon, .lockFileBusy, .registrationLost: .tryAgain
        case .noLocks, .senderFolder, .lockFileDamaged, .folderCopied: .configuration
        }
    }
}

extension StoreError {
    fileprivate var failureKind: Failure.Kind {
        switch self {
        case .audienceSQL(.notSetUp): .configuration
        case .newerVersion, .olderVersion, .notADatabase, .notAStore, .corrupt, .unreadableRun, .notStorable:
            .unusableStore
        case .noSuchSegment, .unsuitableValue, .audienceTooLarge,
            .audienceSQL, .segmentCycle, .segmentsTooDeep, .segmentIsAmbiguous, .segmentIsDynamic,
            .segmentIsStatic, .deviceOfOtherTopic, .occurrenceTaken, .runIsOver, .illegalChange, .awaitsApproval,
            .grownBeyondApproval, .tooManySeeds,
            .outcomesPruned:
            .invalidData
        case .accessTokenExists, .lastAdmin, .approvalClosed, .moveGivenUp, .runChanged, .segmentIsUsed: .refused
        case .noSuchRun, .noSuchDevice, .noSuchAccessToken: .notFound
        case .busy, .diskFull, .journalFull, .changedMeanwhile, .lostClaim, .senderLost, .notFinished, .unreachable,
            .outcomeUnknown, .inUse, .readOnlyFileSystem, .exhausted, .displaced:
            .tryAgain
        case .accessRefused, .accessWithdrawn, .noFolder, .cannotOpen, .readOnly, .noStore, .notAFile, .moved, .moving,
            .arriving:
            .configuration
        case .cannotMake, .backupExists: .cannotMake
        case .inputOutput: .inputOutput
        case .failed: .internalError
        }
    }
}

extension ImportError {
    fileprivate var failureKind: Failure.Kind {
        switch self {
        case .unreadable: .notFound
        case .header: .invalidData
        case .rejectsUnwritable: .cannotMake
        case .stopped: .tryAgain
        }
    }
}
