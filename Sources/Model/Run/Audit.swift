/// In whose name something is done: a person, a schedule, or the process that sends a run. The audit puts it on record
/// with everything that is changed.
package struct Actor: Hashable, Sendable, ExpressibleByStringLiteral {
    /// From where it was asked for.
    package enum Origin: String, Hashable, Sendable, CaseIterable {
        /// A person at a terminal, or a program of theirs.
        case command
        case daemon
        /// A systemd unit or cron.
        case timer
        /// A person at a web page.
        case page
        /// A program with an access token.
        case api
    }

    /// How the name is known.
    package enum Authentication: Hashable, Sendable {
        /// The operating system vouches for the account.
        case account(uid: Int64, user: String)
        /// Nobody said, as in tests.
        case none
    }

    /// For a person to read, and for the log: `anna (uid 1000)`, or the name of the process that has a run.
    package var name: String
    package var authentication: Authentication
    package var origin: Origin
    /// The account that a person came with, where it is another than that of the process; see ``identity``.
    package var signedInAs: String?
    /// The uid of ``signedInAs``, if that is an account of the operating system.
    package var signedInUID: Int64?
    /// The arguments, the program first; values that may be secret are left out by whoever fills it in.
    package var command: String?

    package init(
        _ name: String, authentication: Authentication = .none, origin: Origin = .command, command: String? = nil
    ) {
        self.name = name
        self.authentication = authentication
        self.origin = origin
        self.command = command
    }

    /// As it is on record: without a uid, the user is an account that a page or a program came with.
    package init(_ name: String, uid: Int64?, user: String?, origin: Origin, command: String?) {
        let account = uid.flatMap { uid in user.map { Authentication.account(uid: uid, user: $0) } }
        self.init(name, authentication: account ?? .none, origin: origin, command: command)
        if account == nil { signedInAs = user }
    }

    /// The account that the operating system vouches for.
    package var account: (uid: Int64, user: String)? {
        guard case .account(let uid, let user) = authentication else { return nil }
        return (uid, user)
    }

    /// A name alone.
    package init(stringLiteral name: String) { self.init(name) }

    /// The same authority under another name: a process that sends a run for somebody.
    package func named(_ name: String) -> Actor {
        var actor = self
        actor.name = name
        return actor
    }
}

/// What an entry of the audit trail records, stored as its word and shown by `fanfare audit`.
package enum EventKind: String, Hashable, Sendable, Codable, CaseIterable {
    case runCreated = "run_created"
    /// A process took the run to send it.
    case runClaimed = "run_claimed"
    /// What a process that ended had left in flight was put in order.
    case runRecovered = "run_recovered"

    // A run has entered a state: `run_` and the state's word, see ``entered(_:)``.
    case runScheduled = "run_scheduled"
    case runRunning = "run_running"
    case runPaused = "run_paused"
    case runFinished = "run_finished"
    case runCancelled = "run_cancelled"
    case runFailed = "run_failed"
    case runMissed = "run_missed"
    /// Paused, because it was found unfinished too late.
    case runLate = "run_late"

    /// A stage of a run began, was approved or proved itself.
    case runStage = "run_stage"
    /// Everything, or a campaign, is not sent until somebody lifts that.
    case sendingStopped = "sending_stopped"
    case stopLifted = "stop_lifted"
    /// A sender obeyed a stop, and how much of the run it had started since.
    case runStopped = "run_stopped"
    /// A person started a run in spite of a guard.
    case guardOverridden = "guard_overridden"
    /// The daemon took over changed campaigns and templates.
    case filesRead = "files_read"
    /// A feed had more new items at once than `max_new` allows: none was sent.
    case feedHeld = "feed_held"
    /// Somebody set the wall clock while runs went on.
    case clockStepped = "clock_stepped"
    /// A webhook's message was undeliverable for too long and was dropped.
    case webhookGivenUp = "webhook_given_up"
    case devicesImported = "devices_imported"
    case devicesExported = "devices_exported"
    case devicesPruned = "devices_pruned"
    case outcomesPruned = "outcomes_pruned"
    case backedUp = "backed_up"
    /// A restored backup was opened for the first time: what was open in it is paused.
    case storeRestored = "store_restored"
    /// Somebody began to move the store to another place.
    case storeMoved = "store_moved"
    case tokenCreated = "token_created"
    case tokenRevoked = "token_revoked"
    case segmentDefined = "segment_defined"
    case segmentChanged = "segment_changed"
    case segmentRemoved = "segment_removed"
    case deviceRemoved = "device_removed"
    /// A campaign or template file was written by way of the web.
    case fileWritten = "file_written"
    /// A file's new text waits for an account that may start runs, which released or rejected it.
    case changeHeld = "change_held"
    case changeReleased = "change_released"
    case changeRejected = "change_rejected"
    case signedIn = "signed_in"
    case signedOut = "signed_out"
    /// Callers sent access tokens or links that are not good: how many, and from where.
    case signInRefused = "sign_in_refused"
    /// A plan waits for signatures.
    case approvalRequested = "approval_requested"
    case planSigned = "plan_signed"
    case planRejected = "plan_rejected"
    /// A run was made with the signatures of its plan.
    case approvalUsed = "approval_used"
    /// A run was started without the signatures that it needed.
    case glassBroken = "glass_broken"

    /// The kind that records that a run has entered a state.
    ///
    /// - Parameter halt: of a run that paused itself.
    package static func entered(_ state: RunState, halt: RunHalt? = nil) -> EventKind {
        switch state {
        case .paused where halt == .late: .runLate
        case .scheduled: .runScheduled
        case .running: .runRunning
        case .paused: .runPaused
        case .finished: .runFinished
        case .cancelled: .runCancelled
        case .failed: .runFailed
        case .missed: .runMissed
        }
    }
}
