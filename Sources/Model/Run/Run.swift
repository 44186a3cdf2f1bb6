/// One occurrence of a campaign, with its definition frozen.
package struct Run: Hashable, Sendable {
    package var id: Int64
    package var campaign: String
    /// Unique with the campaign: timer, daemon, person and a retried call all mean the same run.
    package var occurrence: String
    package var definition: RunDefinition
    package var state: RunState
    /// Why it is paused or failed, or why it is no success although it finished, in words for a person.
    package var stateReason: String?
    package var counts: DeliveryCounts
    /// False while the audience is still being written down.
    package var isFrozen: Bool
    /// Sent to one device by hand to look at it; kept out of campaign reports.
    package var isTest: Bool
    /// Of a failed run: a guard, or its own payload, refused it before anything was sent.
    package var isRefused: Bool
    package var createdAt: Timestamp
    package var startedAt: Timestamp?
    package var finishedAt: Timestamp?
    /// The process that sends it; nil when none does.
    package var owner: String?
    /// When an owner was last heard of or gave the run up, or a person let it go on; nil: nobody ever had it.
    package var heartbeatAt: Timestamp?
    /// The person who paused it and whom it waits for; nil where it paused itself.
    package var pausedBy: String?
    /// What a paused run met, where it paused itself; ``RunHalt/unsuccessful`` in a finished run that is no success.
    package var halt: RunHalt?
    /// The moment of the first of several automatic pauses without a response from APNs in between. `nil` if the run is
    /// not in such a series.
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

/// What became of a run, ready to print: every figure comes from recorded deliveries.
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
    /// By the locale block that was rendered, with a row for the deliveries that never were; empty where nothing is localized.
    package var byLocale: [Slice]
    /// By what the devices were when the audience was frozen. Each adds up to the audience; all are empty for a run that an
    /// earlier version summarized.
    package var byAppVersion: [Slice] = []
    package var byZone: [Slice] = []
    package var byCountry: [Slice] = []
    /// By the start of each wave, and by stage from 1; empty in a run without.
    package var byWave: [Slice] = []
    package var byStage: [Slice] = []
    /// By the variant's name, in the campaign's order; the holdout has no variant.
    package var byVariant: [Slice]
    /// Requests made, retries included.
    package var attempts: Int
    /// Accepted deliveries of which an earlier attempt stayed without an answer: APNs may have had them twice.
    package var possibleDuplicates: Int
    /// Deliveries that ended rejected or suppressed, and of which an earlier attempt stayed without an answer: APNs may
    /// have accepted that attempt. `nil` if an earlier version summarized the run.
    package var mayHaveArrived: Int?
    /// Suppressed deliveries of which a request was started before. `nil` if an earlier version summarized the run.
    package var suppressedAfterRequest: Int?
    /// In order; empty in a run without stages.
    package var stages: [StageRecord]
    /// The runs that put this one right, in order.
    package var correctedBy: [Int64] = []
    /// Nil: it had its signatures, or needed none.
    package var brokenGlass: BrokenGlass?
    /// Devices whose token this run found gone, and those it suspended.
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

/// The state of a run, stored as its word. What may follow what is ``RunTransition``'s to say.
package enum RunState: String, Hashable, Sendable, Codable, CaseIterable {
    /// Created, not yet begun. Goes to `running`, `paused`, `cancelled`, `failed` or `missed`.
    case scheduled
    /// Freezing, sending or waiting. Goes to `paused`, `finished`, `cancelled` or `failed`.
    case running
    /// Stopped by a person, by a breaker or as late. Goes to `running`, `cancelled` or `failed`, and to `finished` when the
    /// last outcomes arrive after the pause was asked for.
    case paused
    /// Every delivery has an end state. Final.
    case finished
    /// Stopped for good by a person; the rest is `suppressed(cancelled)`. Final.
    case cancelled
    /// Met an error it could not go on with. Final.
    case failed
    /// Found later than `late_by_max`, not sent. Final.
    case missed
}

extension RunState {
    /// True when nothing will ever happen to the run again.
    package var isFinal: Bool {
        switch self {
        case .finished, .cancelled, .failed, .missed: true
        case .scheduled, .running, .paused: false
        }
    }

    /// Those in which something may still happen, in the order of the cases.
    package static var unfinished: [RunState] { allCases.filter { !$0.isFinal } }
}

/// Why a run paused itself, or why a finished run is no success, stored as its word.
package enum RunHalt: String, Hashable, Sendable, Codable, CaseIterable {
    /// APNs could not be reached, or refused the credential. The daemon, `run --due` and the same command continue it.
    case unreachable, credential
    /// The answers said that the run itself is wrong. It waits for a person's `resume`.
    case breaker
    /// Found unfinished, with nobody sending it, longer after its time than `late_by_max`. It waits for a person's
    /// `resume`.
    case late
    /// A stage did not prove itself: it waits for a person's `resume`.
    case stage
    /// The next stage waits until somebody approves of it.
    case approval
    /// It is so much more than usual that it was made paused: it waits for a person's `resume`.
    case volume
    /// Its audience has grown beyond what was approved: nothing lets it go, and `cancel` ends it.
    case grown
    /// The store was restored from a backup, and what the run sent since is not in it. It waits for a person's `resume`.
    case restored
    /// Only of a finished run: it reached no device, or too many deliveries were rejected or ended unknown.
    case unsuccessful

    /// The pause before the first automatic attempt to continue. `nil` if only a person ends the halt.
    ///
    /// This switch is the one place that says which halts wait for a person.
    package var firstRetryAfter: Duration? {
        switch self {
        case .unreachable: .seconds(30)
        // APNs asks for some minutes after a refused provider token (`ProviderProtocol` section 3).
        case .credential: .seconds(120)
        case .breaker, .late, .stage, .approval, .volume, .grown, .restored, .unsuccessful: nil
        }
    }

    /// Whether nothing but a person's `resume` or `cancel` ends the pause: no timer, no daemon, no second call.
    package var waitsForPerson: Bool { firstRetryAfter == nil }

    /// The halts that end without a person, in the order of the cases.
    package static var automatic: [RunHalt] { allCases.filter { !$0.waitsForPerson } }
}

extension RunHalt {
    /// What was found is still so when somebody pauses the run as well.
    package var outlastsPause: Bool { [.volume, .grown, .restored].contains(self) }
}

/// A step of a run from one state to another: which are allowed, whoever asks and whatever store records it.
package struct RunTransition: Hashable, Sendable {
    package var from: RunState
    package var to: RunState

    package init(from: RunState, to: RunState) {
        self.from = from
        self.to = to
    }

    package var isAllowed: Bool { Self.successors(of: from).contains(to) }

    /// The states that may follow one, which is never among them; none for a final state.
    package static func successors(of state: RunState) -> [RunState] {
        switch state {
        case .scheduled: [.running, .paused, .cancelled, .failed, .missed]
        case .running: [.paused, .finished, .cancelled, .failed]
        // The last outcomes may arrive after somebody asked for a pause.
        case .paused: [.running, .finished, .cancelled, .failed]
        case .finished, .cancelled, .failed, .missed: []
        }
    }

    /// What an owner's wish to leave a run in some state comes to: a person's `cancelled` is stronger than what the owner
    /// believes, and its end is none while a breaker that fell at another sender waits for a person. `running`: the run is
    /// left as it is.
    package static func release(as wanted: RunState, from current: RunState, halt: RunHalt?) -> RunState {
        if current == .cancelled { return .cancelled }
        return wanted == .finished && halt == .breaker ? .running : wanted
    }

    /// What becomes of a request by a person or the scheduler, who do not hold the run.
    package enum Request: Hashable, Sendable {
        case carriedOut
        /// The run is in that state already.
        case nothingToDo
        case refused
    }

    /// Asking for the state a run is in changes nothing, with two exceptions: `cancelled` again ends a run whose owner
    /// died before it could, and a person's `paused` makes a pause that the run took by itself (`isPausedByItself`) wait
    /// for that person. A run is `finished` by its owner only.
    package func request(isPausedByItself: Bool) -> Request {
        if from == to {
            let isRepeatable = to == .cancelled || (to == .paused && isPausedByItself)
            return isRepeatable ? .carriedOut : .nothingToDo
        }
        return isAllowed && to != .finished ? .carriedOut : .refused
    }
}

/// What the occurrences of test runs are called.
package enum TestOccurrence {
    package static let prefix = "test-"
    /// Of those that the daemon sends, because nobody waits for them at a terminal.
    package static let handedOverPrefix = "test-handed-over-"
}
