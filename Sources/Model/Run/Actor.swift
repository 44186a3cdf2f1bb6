/// The party responsible for an action: a person, a schedule, or the process that sends a run. The audit records the
/// actor of every change.
package struct Actor: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The place from which the action was requested.
    package enum Origin: String, Hashable, Sendable, CaseIterable {
        /// A person at a terminal, or a person's program.
        case command
        case daemon
        /// A systemd unit or cron.
        case timer
        /// A person at a web page.
        case page
        /// A program with an access token.
        case api
    }

    /// The source of the actor's name.
    package enum Authentication: Hashable, Sendable {
        /// The operating system guarantees the account.
        case account(uid: Int64, user: String)
        /// The name is unverified, as in tests.
        case none
    }

    /// The display name, also for the log: `anna (uid 1000)`, or the name of the process that owns a run.
    package var name: String
    package var authentication: Authentication
    package var origin: Origin
    /// The person's account, if it differs from that of the process. See ``identity``.
    package var signedInAs: String?
    /// The uid of ``signedInAs``, if that is an account of the operating system.
    package var signedInUID: Int64?
    /// The arguments, the program first. The code that sets them removes possible secrets.
    package var command: String?

    package init(
        _ name: String, authentication: Authentication = .none, origin: Origin = .command, command: String? = nil
    ) {
        self.name = name
        self.authentication = authentication
        self.origin = origin
        self.command = command
    }

    /// The account to record: that of the person, as ``identity`` has it, or else that of the process. A person who
    /// calls `sudo` must not be recorded as the service's user, because authors may not sign their own work.
    package var recordedAccount: (uid: Int64?, user: String?) {
        if let signedInAs { return (signedInUID, signedInAs) }
        guard case .account(let uid, let user) = authentication else { return (nil, nil) }
        return (uid, user)
    }

    /// Restores a recorded actor, see ``recordedAccount``.
    package init(_ name: String, uid: Int64?, user: String?, origin: Origin, command: String?) {
        self.init(name, origin: origin, command: command)
        // No user of a system has a colon in its name, and no account of a person lacks one.
        if let uid, let user, !user.contains(":") {
            authentication = .account(uid: uid, user: user)
        } else {
            (signedInAs, signedInUID) = (user, uid)
        }
    }

    /// Creates an actor with only a name.
    package init(stringLiteral name: String) { self.init(name) }

    /// Returns the same actor under another name, such as for a process that sends a run on a person's behalf.
    package func named(_ name: String) -> Actor {
        var actor = self
        actor.name = name
        return actor
    }
}

/// The kind of an audit entry. It is stored as its raw value and shown by `fanfare audit`.
package enum EventKind: String, Hashable, Sendable, Codable, CaseIterable {
    case runCreated = "run_created"
    /// A process claimed the run in order to send it.
    case runClaimed = "run_claimed"
    /// A process recovered the requests that a former owner had left in flight.
    case runRecovered = "run_recovered"

    // A run has entered a state: `run_` and the state's raw value, see ``entered(_:)``.
    case runScheduled = "run_scheduled"
    case runRunning = "run_running"
    case runPaused = "run_paused"
    case runFinished = "run_finished"
    case runCancelled = "run_cancelled"
    case runFailed = "run_failed"
    case runMissed = "run_missed"
    /// Paused, because it was found unfinished too late.
    case runLate = "run_late"

    /// A stage of a run began, was approved or passed.
    case runStage = "run_stage"
    /// Sending of everything, or of a campaign, was stopped until the stop is lifted.
    case sendingStopped = "sending_stopped"
    case stopLifted = "stop_lifted"
    /// A sender obeyed a stop. The entry states how many requests of the run it had started since the stop.
    case runStopped = "run_stopped"
    /// A person started a run despite a guard.
    case guardOverridden = "guard_overridden"
    /// The daemon loaded changed campaigns and templates.
    case filesRead = "files_read"
    /// One poll of a feed found more new items than `max_new` allows. None of the items was sent.
    case feedHeld = "feed_held"
    /// The wall clock was set while runs were in progress.
    case clockStepped = "clock_stepped"
    /// A webhook's message was undeliverable for too long and was dropped.
    case webhookGivenUp = "webhook_given_up"
    case devicesImported = "devices_imported"
    case devicesExported = "devices_exported"
    case devicesPruned = "devices_pruned"
    /// A file of reports of apps was imported.
    case feedbackImported = "feedback_imported"
    case outcomesPruned = "outcomes_pruned"
    case backedUp = "backed_up"
    /// A restored backup was opened for the first time. Its unfinished runs are paused.
    case storeRestored = "store_restored"
    /// A person resumed a run of a restored backup, and knows that the store lacks what the run sent since. The run
    /// waits as it did in the backup.
    case restoreConfirmed = "restore_confirmed"
    /// A move of the store to another location began.
    case storeMoved = "store_moved"
    case tokenCreated = "token_created"
    case tokenRevoked = "token_revoked"
    /// The role or the app of a token was changed.
    case tokenChanged = "token_changed"
    case personInvited = "person_invited"
    case personJoined = "person_joined"
    /// The key of an app was uploaded on a page.
    case keyUploaded = "key_uploaded"
    /// An app or a test device was added to the configuration, or removed, on a page.
    case configurationChanged = "configuration_changed"
    case segmentDefined = "segment_defined"
    case segmentChanged = "segment_changed"
    case segmentRemoved = "segment_removed"
    case deviceRemoved = "device_removed"
    /// A campaign or template file was written through the web.
    case fileWritten = "file_written"
    /// A template file was deleted through the web.
    case fileDeleted = "file_deleted"
    /// A file's new text waits for an account that may start runs. The next two kinds record its release or rejection.
    case changeHeld = "change_held"
    case changeReleased = "change_released"
    case changeRejected = "change_rejected"
    case signedIn = "signed_in"
    case signedOut = "signed_out"
    /// Callers sent invalid access tokens or links. The entry states how many, and from where.
    case signInRefused = "sign_in_refused"
    /// A plan waits for signatures.
    case approvalRequested = "approval_requested"
    case planSigned = "plan_signed"
    case planRejected = "plan_rejected"
    /// The person who requested approval of a plan withdrew the request.
    case approvalWithdrawn = "approval_withdrawn"
    /// A run was created with the signatures of its plan.
    case approvalUsed = "approval_used"
    /// A run was started without the signatures that it needed.
    case overridden = "glass_broken"
    /// A person gave values for one start of a campaign's schedule. The entry names the variables.
    case valuesGiven = "values_given"
    case valuesRemoved = "values_removed"

    /// Returns the kind that records that a run has entered a state.
    ///
    /// - Parameter halt: the halt of a run that paused automatically.
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
