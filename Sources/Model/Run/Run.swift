/// One occurrence of a campaign, with its definition frozen.
package struct Run: Hashable, Sendable {
    package var id: Int64
    package var campaign: String
    /// The occurrence's name, unique within the campaign. If a timer, the daemon, a person and a retried call all name
    /// the same occurrence, they get the same run.
    package var occurrence: String
    package var definition: RunDefinition
    package var state: RunState
    /// A description for people of why the run is paused or failed, or why it finished unsuccessfully.
    package var stateReason: String?
    package var counts: DeliveryCounts
    /// False while the audience is still being stored.
    package var isFrozen: Bool
    /// Whether the run is a manual test on one device. Campaign reports exclude it.
    package var isTest: Bool
    /// Whether a failed run was refused by a guard, or for its own payload, before anything was sent.
    package var isRefused: Bool
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The process that sends the run. `nil` if none does.
    package var owner: String?
    /// The time of the last heartbeat or release by an owner, or of a person's resumption. `nil` if the run never had
    /// an owner.
    package var heartbeatAt: Timestamp?
    /// The person who paused the run and must resume it. `nil` if it paused automatically.
    package var pausedBy: String?
    /// The cause of an automatic pause. ``RunHalt/unsuccessful`` in an unsuccessful finished run.
    package var halt: RunHalt?
    /// The start of a series of automatic pauses without a response from APNs in between. `nil` if the run is not in
    /// such a series.
    package var haltedAt: Timestamp?

    package init(
        id: Int64, campaign: String, occurrence: String, definition: RunDefinition, state: RunState,
        stateReason: String? = nil, counts: DeliveryCounts = DeliveryCounts(), isFrozen: Bool = false,
        isTest: Bool = false, isRefused: Bool = false, createdAt: Timestamp, startedAt: Timestamp? = nil,
        finishedAt: Timestamp? = nil, owner: String? = nil, heartbeatAt: Timestamp? = nil, pausedBy: String? = nil,
        halt: RunHalt? = nil, haltedAt: Timestamp? = nil
    ) {
        self.id = id
        self.campaign = campaign
        self.occurrence = occurrence
        self.definition = definition
        self.state = state
        self.stateReason = stateReason
        self.counts = counts
        self.isFrozen = isFrozen
        self.isTest = isTest
        self.isRefused = isRefused
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.owner = owner
        self.heartbeatAt = heartbeatAt
        self.pausedBy = pausedBy
        self.halt = halt
        self.haltedAt = haltedAt
    }
}

/// The results of a run, ready to print. Every figure comes from recorded deliveries.
package struct Report: Hashable, Sendable {
    package struct Reason: Hashable, Sendable {
        package var status: Int
        package var reason: String
        package var count: Int

        package init(status: Int, reason: String, count: Int) {
            self.status = status
            self.reason = reason
            self.count = count
        }
    }

    /// One line of a breakdown, such as by environment, by locale or by variant.
    package struct Slice: Hashable, Sendable {
        package var name: String
        package var counts: DeliveryCounts

        package init(name: String, counts: DeliveryCounts) {
            self.name = name
            self.counts = counts
        }
    }

    package var run: Run
    package var counts: DeliveryCounts
    package var rejected: [Reason]
    package var unknown: [Reason]
    package var suppressed: [Reason]
    package var byEnvironment: [Slice]
    /// By the rendered locale block, with a row for the deliveries that were never rendered. Empty if nothing is
    /// localized.
    package var byLocale: [Slice]
    /// By the devices' properties when the audience was frozen. Each breakdown adds up to the audience. All are empty
    /// for a run that an earlier version summarized.
    package var byAppVersion: [Slice] = []
    package var byZone: [Slice] = []
    package var byCountry: [Slice] = []
    /// By the start of each wave, and by stage from 1. Empty in a run without waves or stages.
    package var byWave: [Slice] = []
    package var byStage: [Slice] = []
    /// By the variant's name, in the campaign's order. The holdout has no variant.
    package var byVariant: [Slice]
    /// The number of requests, including retries.
    package var attempts: Int
    /// Accepted deliveries with an earlier attempt that got no response. APNs may have accepted them twice.
    package var possibleDuplicates: Int
    /// Deliveries that ended rejected or suppressed after an attempt that got no response. APNs may have accepted that
    /// attempt. `nil` if an earlier version summarized the run.
    package var mayHaveArrived: Int?
    /// Suppressed deliveries with an earlier request. `nil` if an earlier version summarized the run.
    package var suppressedAfterRequest: Int?
    /// The stages in order. Empty in a run without stages.
    package var stages: [StageRecord]
    /// The runs that correct this one, in order.
    package var correctedBy: [Int64] = []
    /// Those of ``correctedBy`` that remove the notification instead of replacing it.
    package var recalledBy: [Int64] = []
    /// `nil` if the run had its signatures, or needed none.
    package var emergencyOverride: EmergencyOverride?
    /// The numbers of devices that this run marked as gone, and that it suspended.
    package var devicesGone: Int
    package var devicesSuspended: Int

    package init(run: Run, counts: DeliveryCounts) {
        self.run = run
        self.counts = counts
        rejected = []
        unknown = []
        suppressed = []
        byEnvironment = []
        byLocale = []
        byVariant = []
        stages = []
        attempts = 0
        possibleDuplicates = 0
        devicesGone = 0
        devicesSuspended = 0
    }
}

/// The state of a run, stored as its raw value. ``RunTransition`` defines the allowed transitions.
package enum RunState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Created, not yet begun. Goes to `running`, `paused`, `cancelled`, `failed` or `missed`.
    case scheduled
    /// Freezing, sending or waiting. Goes to `paused`, `finished`, `cancelled` or `failed`.
    case running
    /// Paused by a person, or automatically for a reason of ``RunHalt``. Goes to `running`, `cancelled` or `failed`.
    /// Goes to `finished` if the last outcomes arrive after the request to pause.
    case paused
    /// Every delivery has a final state. Final.
    case finished
    /// Ended by a person. The remaining deliveries are `suppressed(cancelled)`. Final.
    case cancelled
    /// Ended by an unrecoverable error. Final.
    case failed
    /// Found later than `late_by_max` and not sent. Final.
    case missed
}

extension RunState {
    /// Whether the run can no longer change.
    package var isFinal: Bool {
        switch self {
        case .finished, .cancelled, .failed, .missed: true
        case .scheduled, .running, .paused: false
        }
    }

    /// The states that are not final, in the order of the cases.
    package static var unfinished: [RunState] { allCases.filter { !$0.isFinal } }
}

/// The reason why a run paused automatically, or why a finished run is unsuccessful. It is stored as its raw value.
package enum RunHalt: String, Hashable, Sendable, Codable, CaseIterable {
    /// APNs was unreachable, or rejected the credential. The daemon, `run --due` and the same command continue the run.
    case unreachable, credential
    /// The responses showed that the run itself is faulty. It waits for a person's `resume`.
    case breaker
    /// Found unfinished and without an owner, later than `late_by_max` after its planned time. It waits for a person's
    /// `resume`.
    case late
    /// A stage did not pass. The run waits for a person's `resume`.
    case stage
    /// The next stage waits for a person's approval.
    case approval
    /// The run is much larger than usual and was created paused. It waits for a person's `resume`.
    case volume
    /// The audience has grown beyond the approved size. Nothing resumes the run, and `cancel` ends it.
    case grown
    /// The store was restored from a backup that lacks what the run sent since. The run waits for a person's `resume`.
    case restored
    /// Finished runs only: it reached no device, or too many deliveries were rejected or ended unknown.
    case unsuccessful

    /// The delay before the first automatic attempt to continue. `nil` if only a person ends the halt.
    ///
    /// This switch is the only definition of which halts wait for a person.
    package var firstRetryAfter: Duration? {
        switch self {
        case .unreachable: .seconds(30)
        // APNs asks for a wait of some minutes after a rejected provider token (`ProviderProtocol` section 3).
        case .credential: .seconds(120)
        case .breaker, .late, .stage, .approval, .volume, .grown, .restored, .unsuccessful: nil
        }
    }

    /// Whether only a person's `resume` or `cancel` ends the pause: no timer, no daemon, no second call.
    package var waitsForPerson: Bool { firstRetryAfter == nil }

    /// The halts that end automatically, in the order of the cases.
    package static var automatic: [RunHalt] { allCases.filter { !$0.waitsForPerson } }
}

extension RunHalt {
    /// Whether the halt's cause remains if a person also pauses the run.
    package var outlastsPause: Bool { [.volume, .grown, .restored].contains(self) }
}

/// A transition of a run from one state to another. The allowed transitions are the same for every caller and store.
package struct RunTransition: Hashable, Sendable {
    package var from: RunState
    package var to: RunState

    package init(from: RunState, to: RunState) {
        self.from = from
        self.to = to
    }

    package var isAllowed: Bool { Self.successors(of: from).contains(to) }

    /// Returns the states that may follow a state, excluding itself. Returns none for a final state.
    package static func successors(of state: RunState) -> [RunState] {
        switch state {
        case .scheduled: [.running, .paused, .cancelled, .failed, .missed]
        case .running: [.paused, .finished, .cancelled, .failed]
        // The last outcomes may arrive after a person has requested a pause.
        case .paused: [.running, .finished, .cancelled, .failed]
        case .finished, .cancelled, .failed, .missed: []
        }
    }

    /// Returns the run's state after its owner releases it with the state `wanted`. A person's `cancelled` overrides
    /// the owner's state. An owner cannot finish the run while a breaker that tripped at another sender waits for a
    /// person. `running` means that the run stays as it is.
    package static func release(as wanted: RunState, from current: RunState, halt: RunHalt?) -> RunState {
        if current == .cancelled { return .cancelled }
        return wanted == .finished && halt == .breaker ? .running : wanted
    }

    /// The result of a request by a person or the scheduler, who do not own the run.
    package enum Request: Hashable, Sendable {
        case carriedOut
        /// The run is already in that state.
        case nothingToDo
        case refused
    }

    /// Evaluates a request for a state. A request for the current state changes nothing, with two exceptions. A
    /// repeated `cancelled` ends a run whose owner died before it could. A person's `paused` turns an automatic pause
    /// (`isPausedByItself`) into one that waits for that person. Only the owner makes a run `finished`.
    package func request(isPausedByItself: Bool) -> Request {
        if from == to {
            let isRepeatable = to == .cancelled || (to == .paused && isPausedByItself)
            return isRepeatable ? .carriedOut : .nothingToDo
        }
        return isAllowed && to != .finished ? .carriedOut : .refused
    }
}

/// The names of test runs' occurrences.
package enum TestOccurrence {
    package static let prefix = "test-"
    /// The prefix of test runs that the daemon sends because no person waits for them at a terminal.
    package static let handedOverPrefix = "test-handed-over-"
}
