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
    /// Whether something of a stage has no end and was not put off on purpose: for a wave, quiet hours or the silent budget.
    func isWaiting(stage: Int, at now: Timestamp) throws -> Bool
    /// Whether something of a stage has no end.
    func isPending(stage: Int) throws -> Bool
    /// Devices found gone among those answered in the campaign's last finished run.
    func goneBefore() throws -> (gone: Int, answered: Int)
    /// Stops the run until a person has looked.
    func pause(_ halt: RunHalt, reason: String, at now: Timestamp) throws
    func note(_ detail: String, at now: Timestamp) throws
}

/// What may be leased of a run with stages.
package enum StagePass: Hashable, Sendable {
    /// Stages up to `stage`, the last of them without a limit of its own.
    ///
    /// - `most`: deliveries that may be leased now. An early stage begins with a few and takes as many more as were
    ///   answered, so that one that fails at once costs few people.
    case open(stage: Int, isLast: Bool, most: Int)
    /// A person has to look.
    case paused
}

/// Lets the stages of a run begin one after the other, and stops it where one does not prove itself.
///
/// Asked in the transaction that leases, so that no two senders and no crash come between a verdict and what follows of it.
package struct StageGate {
    /// Deliveries in flight before the first answer.
    package static let firstMost = 8

    private let run: Run
    private let stages: [Stage]
    private let book: any StageBook
    private let now: Timestamp

    /// Nil for a run that has none.
    package init?(_ run: Run, _ book: any StageBook, at now: Timestamp) {
        guard let stages = run.definition.campaign.stages, stages.count > 1, !run.isTest else { return nil }
        self.run = run
        self.stages = stages
        self.book = book
        self.now = now
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
        let record = records[current]
        if current == last { return .open(stage: last, isLast: true, most: .max) }
        if let decision = record.decision, decision.verdict != .go, record.releasedBy == nil {
            // It may have been found while somebody else had paused the run.
            try pause(.stage, record)
            return .paused
        }
        // Nobody is to wait for a verdict that is there.
        guard record.decision == nil else { return .open(stage: current, isLast: false, most: .max) }
        let most = max(Self.firstMost, record.answers.answered) - run.counts.leased
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
            records[current].decision = judge(records[current]).end(records[current].answers, at: now)
            // What is not enough yet may become so with those who wait for a later time.
            let isGood = records[current].decision?.verdict == .go
            if try !isGood && book.isPending(stage: current) { return .wait(until: nil) }
            try book.write(records[current])
            if isGood { try book.note(StageWords(run, records[current]).verdict, at: now) }
        }
        guard let decision = records[current].decision, decision.verdict == .go || records[current].releasedBy != nil
        else {
            try pause(.stage, records[current])
            return .paused
        }
        let opensAt = decision.at + (stages[current].hold ?? .zero)
        if records[current].releasedBy == nil, now < opensAt { return .wait(until: opensAt) }
        return try begin(current + 1, &records) ? .again : .paused
    }

    /// Adds answers in the order they came, and stops the run with the one that shows that too much fails.
    package func count(_ answered: [(settlement: Settlement, environment: PushEnvironment)]) throws {
        let records = try book.records()
        for (stage, own) in Dictionary(grouping: answered, by: { $0.settlement.stage ?? -1 })
            .sorted(by: { $0.key < $1.key }) where records.indices.contains(stage)
        {
            try count(own, records[stage])
        }
    }

    private func count(
        _ answered: [(settlement: Settlement, environment: PushEnvironment)], _ old: StageRecord
    ) throws {
        var record = old
        var groups = try book.groups(of: record.index)
        var added: [StageGroup: StageAnswers] = [:]
        let judge = judge(record)
        for (settlement, environment) in answered {
            guard let answer = StageAnswers(settlement) else { continue }
            let group = StageGroup(environment: environment, locale: settlement.localeIndex)
            let own = (groups[group] ?? StageAnswers()) + answer
            record.answers = record.answers + answer
            groups[group] = own
            added[group] = (added[group] ?? StageAnswers()) + answer
            if record.decision == nil, record.releasedBy == nil {
                record.decision = judge.halt(record.answers, own, of: group, at: now)
            }
        }
        guard record != old else { return }
        try book.add(added, to: record.index)
        try book.write(record)
        if old.decision == nil, record.decision != nil { try pause(.stage, record) }
    }

    private static func current(_ records: [StageRecord]) -> Int? { records.lastIndex { $0.openedAt != nil } }

    /// Refusals were taken back: the stages are judged by what is left, and anew.
    package func recount() throws {
        for var record in try book.records().dropLast() where record.openedAt != nil {
            let groups = try book.tally(of: record.index)
            record.answers = groups.values.reduce(StageAnswers(), +)
            if record.decision?.verdict != .go, record.releasedBy == nil { record.decision = nil }
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
            let before = try book.goneBefore()
            records[index].goneTolerated = StageJudge.goneTolerated(afterGone: before.gone, of: before.answered)
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
