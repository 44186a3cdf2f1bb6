package import Model

/// What is on record of a run's stages, in the transaction that asks.
package protocol StageBook {
    /// In order, and nobody else's until the transaction ends.
    func records() throws -> [StageRecord]
    func write(_ record: StageRecord) throws
    /// Answers of one stage by group.
    func groups(of stage: Int) throws -> [StageGroup: StageAnswers]
    func add(_ answers: [StageGroup: StageAnswers], to stage: Int) throws
    func replace(_ answers: [StageGroup: StageAnswers], of stage: Int) throws
    /// The same of the deliveries that have an end, counted.
    func tally(of stage: Int) throws -> [StageGroup: StageAnswers]
    /// In flight, of one stage.
    func unanswered(of stage: Int) throws -> [PushEnvironment: Int]
    /// Deliveries of one stage that were left out before they were ever sent.
    func leftOut(of stage: Int) throws -> [SuppressionReason: Int]
    /// Deliveries of one stage that ended with an error of APNs: 429 or a 5xx.
    func apnsErrors(of stage: Int) throws -> Int
    /// The stage and the group of those, among deliveries that were left out, which had been sent before.
    func attempted(_ devices: [Int64]) throws -> [(stage: Int, group: StageGroup)]
    /// Whether something of a stage has no end and was not put off on purpose: for a wave, quiet hours or the silent budget.
    func isWaiting(stage: Int, at now: Timestamp) throws -> Bool
    /// Whether something of a stage has no end.
    func isPending(stage: Int) throws -> Bool
    /// Devices found gone among those answered in each of the campaign's last ``StageJudge/historyRuns`` finished runs.
    func goneBefore() throws -> [(gone: Int, answered: Int)]
    /// The same for the last ``StageJudge/appHistoryRuns`` finished runs of the app's other campaigns.
    func goneBeforeInApp() throws -> [(gone: Int, answered: Int)]
    /// Stops the run until a person has looked.
    func pause(_ halt: RunHalt, reason: String, at now: Timestamp) throws
    func note(_ detail: String, at now: Timestamp) throws
}

/// What may be leased of a run with stages.
package enum StagePass: Hashable, Sendable {
    /// Stages up to `stage`, the last of them without a limit of its own.
    ///
    /// - `most`: deliveries that may be leased now. An early stage begins with a few and takes more as more are answered,
    ///   so that one that fails at once costs few people.
    case open(stage: Int, isLast: Bool, most: Int)
    /// A person has to look.
    case paused
}

/// Lets the stages of a run begin one after the other, and stops it where one does not prove itself.
///
/// Asked in the transaction that leases, so that no two senders and no crash come between a verdict and what follows of it.
package struct StageGate {
    /// Deliveries in flight before the first answer, and after it one for so many answers. The fewer are in flight, the
    /// fewer refusals show a failure: see ``StageJudge/halt(_:_:of:unanswered:at:)``. With these, 12 answers do where half
    /// are refused; with 8 and one for each answer it would take up to 17.
    package static let firstMost = 3
    package static let answersForEach = 4

    /// In flight, at most.
    package static func most(afterAnswers answered: Int) -> Int { max(firstMost, answered / answersForEach) }

    /// Of an early stage so many deliveries are looked at, at least, though fewer may be taken: others may be left out.
    private static let lookedMin = 64

    /// How many that were held are to be read, when so many may be taken.
    package static func looked(_ isLast: Bool, taken: Int, limit: Int) -> Int {
        isLast ? limit : min(limit, max(taken, lookedMin))
    }

    private let run: Run
    private let stages: [Stage]
    private let book: any StageBook
    private let now: Timestamp
    private let steps: [ClockStep]

    /// Nil for a run that has none.
    ///
    /// - Parameter steps: of the wall clock, oldest first: none shortens a hold.
    package init?(_ run: Run, _ book: any StageBook, at now: Timestamp, after steps: [ClockStep] = []) {
        guard let stages = run.definition.campaign.stages, stages.count > 1, !run.isTest else { return nil }
        self.run = run
        self.stages = stages
        self.book = book
        self.now = now
        self.steps = steps
    }

    /// To be asked before anything is leased.
    package func pass() throws -> StagePass {
        var records = try book.records()
        guard let last = records.indices.last, records.count == stages.count else {
            try book.pause(.stage, reason: "its stages are not on record; was the store changed by hand?", at: now)
            return .paused
        }
        guard let current = Self.current(records) else {
            // Whoever approves of it is to know how many there are.
            if stages[0].needsApproval, !run.isFrozen { return .open(stage: 0, isLast: false, most: 0) }
            return try begin(0, &records) ? try pass() : .paused
        }
        if let halted = records.first(where: \.isHalted) {
            // It may have been found while somebody else had paused the run.
            try pause(.stage, halted)
            return .paused
        }
        if current == last { return .open(stage: last, isLast: true, most: .max) }
        let record = records[current]
        // Nobody is to wait for a verdict that is there.
        guard record.decision == nil else { return .open(stage: current, isLast: false, most: .max) }
        let most = Self.most(afterAnswers: record.answers.answered) - run.counts.leased
        return .open(stage: current, isLast: false, most: max(0, most))
    }

    /// What follows when nothing of the stages that are open can be leased now.
    package enum Step: Hashable, Sendable {
        /// There may be more to lease.
        case again
        /// Nothing before then; nil: until something else happens.
        case wait(until: Timestamp?)
        case paused

        /// The lease of whoever found nothing, and whether nothing is left to look at for now.
        package func lease(
            _ empty: Lease, nextDue: () throws -> Timestamp?
        ) rethrows -> (lease: Lease, isExhausted: Bool) {
            switch self {
            case .again: return (empty, false)
            case .paused: return (Lease(pausedAfter: empty.cursor), true)
            case .wait(let moment):
                var lease = empty
                lease.nextDue = [moment, try nextDue()].compactMap(\.self).min()
                return (lease, true)
            }
        }
    }

    /// To be asked when nothing was found to lease: decides on the stage that is open, and lets the next one begin.
    package func goOn() throws -> Step {
        var records = try book.records()
        guard let current = Self.current(records), current < records.count - 1 else { return .wait(until: nil) }
        // Cheap questions first: what is in flight will be answered, and who is in a stage is known when all are.
        guard run.isFrozen, run.counts.leased == 0, run.counts.pending > 0 else { return .wait(until: nil) }
        if records[current].decision == nil || records[current].releasedBy != nil {
            if try book.isWaiting(stage: current, at: now) { return .wait(until: nil) }
        }
        if records[current].decision == nil {
            let look: StageLook = try book.isPending(stage: current) ? .interim : .last
            var decision = judge(records[current]).end(records[current].answers, look: look, at: now)
            // What is not enough yet may become so with those who wait for a later time.
            if decision.verdict != .go, look == .interim { return .wait(until: nil) }
            let leftOut = try book.leftOut(of: current)
            if !leftOut.isEmpty {
                decision.leftOut = Dictionary(uniqueKeysWithValues: leftOut.map { ($0.key.rawValue, $0.value) })
            }
            if decision.answers.unknown > 0 { decision.apnsErrors = try book.apnsErrors(of: current) }
            records[current].decision = decision
            try book.write(records[current])
            if decision.verdict == .go { try book.note(StageWords(run, records[current]).verdict, at: now) }
        }
        guard let decision = records[current].decision, !records[current].isHalted else {
            try pause(.stage, records[current])
            return .paused
        }
        if records[current].releasedBy == nil, let moment = holdsUntil(decision, stages[current].hold) {
            return .wait(until: moment)
        }
        return try begin(current + 1, &records) ? .again : .paused
    }

    /// When the hold ends, or ended, that keeps back all that is left of a run; nil: none does.
    package static func heldUntil(_ run: Run, _ records: [StageRecord]) -> Timestamp? {
        guard let stages = run.definition.campaign.stages, let current = current(records), current < stages.count,
            let decision = records[current].decision, decision.verdict == .go, records[current].releasedBy == nil
        else { return nil }
        return stages[current].hold.map { decision.at + $0 }
    }

    /// Nil: no longer. A hold goes by the wall clock as a rolling window does.
    private func holdsUntil(_ decision: StageDecision, _ hold: Duration?) -> Timestamp? {
        guard let hold, hold > .zero else { return nil }
        let window = RollingWindow(limit: 1, length: hold, for: .late, at: now, after: steps)
        guard case .wait(let moment, _) = window.decide(ends: [decision.at], expiresAt: nil) else { return nil }
        return moment
    }

    /// Adds answers, and stops the run when they show that too much fails: also those of a stage that was let go.
    package func count(_ answered: [(settlement: Settlement, environment: PushEnvironment)]) throws {
        var added: [Int: [StageGroup: StageAnswers]] = [:]
        for (settlement, environment) in answered {
            guard let stage = settlement.stage, let answer = StageAnswers(settlement) else { continue }
            let group = StageGroup(environment: environment, locale: settlement.localeIndex)
            added[stage, default: [:]].merge([group: answer], uniquingKeysWith: +)
        }
        try add(added)
    }

    /// The same of deliveries that were left out instead of being sent once more: nobody knows what became of them.
    package func leaveOut(_ devices: [Int64]) throws {
        guard !devices.isEmpty else { return }
        var added: [Int: [StageGroup: StageAnswers]] = [:]
        for (stage, group) in try book.attempted(devices) {
            added[stage, default: [:]].merge([group: .lost], uniquingKeysWith: +)
        }
        try add(added)
    }

    private func add(_ added: [Int: [StageGroup: StageAnswers]]) throws {
        guard !added.isEmpty else { return }
        let records = try book.records()
        for (stage, groups) in added.sorted(by: { $0.key < $1.key }) where records.indices.contains(stage) {
            try add(groups, to: records[stage])
        }
    }

    private func add(_ groups: [StageGroup: StageAnswers], to old: StageRecord) throws {
        var record = old
        let sum = groups.values.reduce(StageAnswers(), +)
        record.answers = record.answers + sum
        try book.add(groups, to: record.index)
        let halt = record.isJudged && sum.failed + sum.gone > 0 ? try halt(record) : nil
        if record.decision == nil { record.decision = halt } else if let halt { record.afterGo = halt }
        try book.write(record)
        if halt != nil { try pause(.stage, record) }
    }

    private func halt(_ record: StageRecord) throws -> StageDecision? {
        let judge = judge(record)
        let groups = try book.groups(of: record.index)
        // What is in flight can only speak for the run.
        guard judge.halt(groups, unanswered: [:], at: now) != nil else { return nil }
        return judge.halt(groups, unanswered: try book.unanswered(of: record.index), at: now)
    }

    private static func current(_ records: [StageRecord]) -> Int? { records.lastIndex { $0.openedAt != nil } }

    /// Refusals were taken back: the stages are judged by what is left, and anew.
    package func recount() throws {
        for var record in try book.records().dropLast() where record.openedAt != nil {
            let groups = try book.tally(of: record.index)
            record.answers = groups.values.reduce(StageAnswers(), +)
            if record.decision?.verdict != .go, record.releasedBy == nil { record.decision = nil }
            if record.releasedBy == nil { record.afterGo = nil }
            try book.replace(groups, of: record.index)
            try book.write(record)
        }
    }

    private func judge(_ record: StageRecord) -> StageJudge {
        StageJudge(stages, record.index, goneTolerated: record.goneTolerated)
    }

    /// False: somebody has to approve of it first.
    private func begin(_ index: Int, _ records: inout [StageRecord]) throws -> Bool {
        if stages[index].needsApproval, records[index].approvedBy == nil {
            try pause(.approval, records[index])
            return false
        }
        records[index].openedAt = now
        if index == 0 {
            records[index].goneTolerated =
                try StageJudge.goneTolerated(after: book.goneBefore())
                ?? StageJudge.goneTolerated(after: book.goneBeforeInApp())
        } else {
            records[index].goneTolerated = records[index - 1].goneTolerated
        }
        try book.write(records[index])
        try book.note(StageWords(run, records[index]).opened, at: now)
        return true
    }

    private func pause(_ halt: RunHalt, _ record: StageRecord) throws {
        let words = StageWords(run, record)
        try book.pause(halt, reason: halt == .approval ? words.approval : words.verdict, at: now)
    }
}
