package import Model

/// The records of a run's stages, within the transaction that reads them.
package protocol StageStore {
    /// Returns the records in order, and locks them until the transaction ends.
    func records() throws -> [StageRecord]
    func write(_ record: StageRecord) throws
    /// Returns the responses of one stage by group.
    func groups(of stage: Int) throws -> [StageGroup: StageAnswers]
    func add(_ answers: [StageGroup: StageAnswers], to stage: Int) throws
    func replace(_ answers: [StageGroup: StageAnswers], of stage: Int) throws
    /// Returns the same, counted from the deliveries that have an end state.
    func tally(of stage: Int) throws -> [StageGroup: StageAnswers]
    /// Returns the number of deliveries of one stage in flight.
    func unanswered(of stage: Int) throws -> [PushEnvironment: Int]
    /// Returns the numbers of deliveries of one stage that were suppressed before they were ever sent.
    func leftOut(of stage: Int) throws -> [SuppressionReason: Int]
    /// Returns the number of deliveries of one stage that ended with an error of APNs: 429 or a 5xx.
    func apnsErrors(of stage: Int) throws -> Int
    /// Returns the stage and the group of the suppressed deliveries to these devices that had been sent before.
    func attempted(_ devices: [Int64]) throws -> [(stage: Int, group: StageGroup)]
    /// Returns whether a delivery of a stage has no end state and was not put off on purpose: for a wave, quiet hours
    /// or the silent budget.
    func isWaiting(stage: Int, at now: Timestamp) throws -> Bool
    /// Returns whether a delivery of a stage has no end state.
    func isPending(stage: Int) throws -> Bool
    /// Returns the numbers of gone devices and of responses for each of the campaign's last
    /// ``StageEvaluator/historyRuns`` finished runs.
    func goneBefore() throws -> [(gone: Int, answered: Int)]
    /// Returns the same for the last ``StageEvaluator/appHistoryRuns`` finished runs of the app's other campaigns.
    func goneBeforeInApp() throws -> [(gone: Int, answered: Int)]
    /// Returns the accepted pushes of one stage by variant, and how many of their devices reached a goal.
    func reached(of stage: Int, _ goal: StageGoal) throws -> [Int?: Proportion]
    /// Returns the opens of the campaign's last ``StageEvaluator/historyRuns`` finished runs with feedback. They count
    /// up to this number of minutes after each push.
    func opensBefore(within minutes: Int, at now: Timestamp) throws -> [StageOpens.Earlier]
    /// Returns the same for the last ``StageEvaluator/appHistoryRuns`` finished runs of the app's other campaigns.
    func opensBeforeInApp(within minutes: Int, at now: Timestamp) throws -> [StageOpens.Earlier]
    /// Returns the number of requests of the last stage whose variant is another one.
    func sent(otherThan variant: Int) throws -> Int
    /// Pauses the run until a person resumes it.
    func pause(_ halt: RunHalt, reason: String, at now: Timestamp) throws
    func note(_ detail: String, at now: Timestamp) throws
}

/// The permission to lease from a run with stages.
package enum StagePermit: Hashable, Sendable {
    /// Stages up to `stage` are open. The last stage has no limit of its own.
    ///
    /// - `most`: the number of deliveries that may be leased now. An early stage begins with a few and takes more as
    ///   more responses arrive, so that a stage that fails immediately affects few people.
    case open(stage: Int, isLast: Bool, most: Int)
    /// The run waits for a person.
    case paused
}

/// Starts the stages of a run one after the other, and halts the run if a stage does not pass.
///
/// It is evaluated in the transaction that leases, so that no other sender and no crash comes between a verdict and its
/// consequences.
package struct StageController {
    /// The limit of deliveries in flight before the first response. Afterwards one delivery is allowed for each
    /// ``answersForEach`` responses, if that is more. The fewer are in flight, the fewer rejections prove a failure:
    /// see ``StageEvaluator/halt(_:_:of:unanswered:at:)``. With these values, 12 responses are enough if half are
    /// rejected. With a first limit of 8 and one more for each response, it would take up to 17.
    package static let firstMost = 3
    package static let answersForEach = 4

    /// Returns the maximum number of deliveries in flight.
    package static func most(afterAnswers answered: Int) -> Int { max(firstMost, answered / answersForEach) }

    /// The minimum number of deliveries read for an early stage. Some of them may be suppressed.
    private static let lookedMin = 64

    /// Returns how many held deliveries to read if `taken` of them may be leased.
    package static func looked(_ isLast: Bool, taken: Int, limit: Int) -> Int {
        isLast ? limit : min(limit, max(taken, lookedMin))
    }

    private let run: Run
    private let stages: [Stage]
    private let store: any StageStore
    private let now: Timestamp

    /// Returns `nil` for a test run, and for a run with fewer than two stages.
    package init?(_ run: Run, _ store: any StageStore, at now: Timestamp) {
        guard let stages = run.definition.campaign.stages, stages.count > 1, !run.isTest else { return nil }
        self.run = run
        self.stages = stages
        self.store = store
        self.now = now
    }

    /// Returns what may be leased. Call it before each lease.
    package func permit() throws -> StagePermit {
        var records = try store.records()
        guard let last = records.indices.last, records.count == stages.count else {
            try store.pause(
                .stage, reason: "its stages are not recorded; check whether the store was changed by hand", at: now)
            return .paused
        }
        guard let current = Self.current(records) else {
            // The approver needs to know the number of devices, so the freeze comes first.
            if stages[0].needsApproval, !run.isFrozen { return .open(stage: 0, isLast: false, most: 0) }
            return try begin(0, &records) ? try permit() : .paused
        }
        if let halted = records.first(where: \.isHalted) {
            // The stage may have been halted while a person had paused the run, so pause the run again.
            try pause(.stage, halted)
            return .paused
        }
        if current == last { return .open(stage: last, isLast: true, most: .max) }
        let record = records[current]
        // The stage already has a verdict, so its in-flight limit no longer applies.
        guard record.decision == nil else { return .open(stage: current, isLast: false, most: .max) }
        let most = Self.most(afterAnswers: record.answers.answered) - run.counts.leased
        return .open(stage: current, isLast: false, most: max(0, most))
    }

    /// The next step if nothing of the open stages can be leased now.
    package enum Step: Hashable, Sendable {
        /// There may be more to lease.
        case again
        /// Nothing can be leased before this time; `nil` if only another event changes that.
        case wait(until: Timestamp?)
        case paused

        /// Returns the lease of a caller that found nothing, and whether nothing is left to read for now.
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

    /// Decides on the open stage, and starts the next one. Call it when nothing was found to lease.
    package func goOn() throws -> Step {
        var records = try store.records()
        guard let current = Self.current(records), current < records.count - 1 else { return .wait(until: nil) }
        // Check the cheap conditions first. Requests in flight still get responses, and the devices of a stage are
        // known only after the freeze.
        guard run.isFrozen, run.counts.leased == 0, run.counts.pending > 0 else { return .wait(until: nil) }
        if records[current].decision == nil || records[current].releasedBy != nil {
            if try store.isWaiting(stage: current, at: now) { return .wait(until: nil) }
        }
        if records[current].decision == nil {
            let look: StageLook = try store.isPending(stage: current) ? .interim : .last
            var decision = evaluator(of: records[current]).decision(on: records[current].answers, look: look, at: now)
            // Deliveries that wait for a later time may still turn the verdict into *go*.
            if decision.verdict != .go, look == .interim { return .wait(until: nil) }
            let leftOut = try store.leftOut(of: current)
            if !leftOut.isEmpty {
                decision.leftOut = Dictionary(uniqueKeysWithValues: leftOut.map { ($0.key.rawValue, $0.value) })
            }
            if decision.answers.unknown > 0 { decision.apnsErrors = try store.apnsErrors(of: current) }
            records[current].decision = decision
            try store.write(records[current])
            if decision.verdict == .go { try store.note(StageSummary(run, records[current]).verdict, at: now) }
        }
        guard let decision = records[current].decision, !records[current].isHalted else {
            try pause(.stage, records[current])
            return .paused
        }
        if isHolding(records[current]), let moment = holdsUntil(decision, stages[current].hold) {
            return .wait(until: moment)
        }
        guard try compareOpens(&records[current]) else {
            try pause(.stage, records[current])
            return .paused
        }
        guard try chooseVariant(&records[current]) else {
            try store.pause(.approval, reason: StageSummary(run, records[current]).choice, at: now)
            return .paused
        }
        return try begin(current + 1, &records) ? .again : .paused
    }

    /// Whether the hold of a stage with a verdict matters. A person who resumes a run in spite of a verdict ends the
    /// hold, unless the variant of the rest is still to be decided.
    private func isHolding(_ record: StageRecord) -> Bool {
        record.releasedBy == nil || stages[record.index].decides != nil && record.decision?.variants == nil
    }

    /// Compares the opens of a stage with the usual ones, once. Returns `false` if they are too low.
    private func compareOpens(_ record: inout StageRecord) throws -> Bool {
        guard let percent = stages[record.index].opensAtLeastPercent, let hold = stages[record.index].hold,
            record.releasedBy == nil, record.decision?.opens == nil
        else { return true }
        let minutes = OpensRule.minutes(hold)
        let reached = try store.reached(of: record.index, .opened(within: .seconds(60 * minutes)))
        var earlier = try store.opensBefore(within: minutes, at: now)
        let isOfApp = earlier.isEmpty
        if isOfApp { earlier = try store.opensBeforeInApp(within: minutes, at: now) }
        let opens = StageOpens(
            at: now, opened: reached.values.reduce(0) { $0 + $1.count },
            accepted: reached.values.reduce(0) { $0 + $1.total }, minutes: minutes, atLeastPercent: percent,
            earlier: earlier, isOfApp: isOfApp && !earlier.isEmpty)
        let isTooLow = OpensRule.isTooLow(opens, in: stages)
        if isTooLow {
            var halt = StageDecision(.halt, at: now, record.answers, tolerated: stages[record.index].tolerated)
            halt.opens = opens
            record.afterGo = halt
        } else {
            record.decision?.opens = opens
        }
        try store.write(record)
        if !isTooLow { try store.note(StageSummary(run, record).verdict, at: now) }
        return !isTooLow
    }

    /// Decides once which variant the rest gets. Returns `false` while a person has to choose.
    private func chooseVariant(_ record: inout StageRecord) throws -> Bool {
        guard let rule = stages[record.index].decides, let goal = StageGoal(rule, run.definition.campaign) else {
            return true
        }
        if record.decision?.variants == nil {
            let reached = try store.reached(of: record.index, goal)
            let counts = run.definition.campaign.variants.indices.map { variant in
                let found = reached[variant] ?? Proportion(0, of: 0)
                return VariantDecision.Count(accepted: found.total, reached: found.count)
            }
            record.decision?.variants = VariantDecision(rule, counts, at: now)
            try store.write(record)
            try store.note(StageSummary(run, record).decided, at: now)
        }
        return record.decision?.variants?.variant != nil
    }

    /// Returns when the hold that delays the next stage ends, or ended; `nil` if there is none.
    package static func heldUntil(_ run: Run, _ records: [StageRecord]) -> Timestamp? {
        guard let stages = run.definition.campaign.stages, let current = current(records), current < stages.count,
            let decision = records[current].decision
        else { return nil }
        let isFree = decision.verdict != .go || records[current].releasedBy != nil
        if isFree, stages[current].decides == nil || decision.variants != nil { return nil }
        return stages[current].hold.map(decision.end(of:))
    }

    /// Returns `nil` if the hold is over.
    private func holdsUntil(_ decision: StageDecision, _ hold: Duration?) -> Timestamp? {
        guard let end = hold.map(decision.end(of:)), end > now else { return nil }
        return end
    }

    /// Adds responses, and halts the run if they show that too much fails. Responses of released stages count as well.
    package func count(_ answered: [(settlement: Settlement, environment: PushEnvironment)]) throws {
        var added: [Int: [StageGroup: StageAnswers]] = [:]
        for (settlement, environment) in answered {
            guard let stage = settlement.stage, let answer = StageAnswers(settlement) else { continue }
            let group = StageGroup(environment: environment, locale: settlement.localeIndex)
            added[stage, default: [:]].merge([group: answer], uniquingKeysWith: +)
        }
        try add(added)
    }

    /// Adds deliveries that were suppressed instead of being sent again. Their outcome is unknown.
    package func leaveOut(_ devices: [Int64]) throws {
        guard !devices.isEmpty else { return }
        var added: [Int: [StageGroup: StageAnswers]] = [:]
        for (stage, group) in try store.attempted(devices) {
            added[stage, default: [:]].merge([group: .lost], uniquingKeysWith: +)
        }
        try add(added)
    }

    private func add(_ added: [Int: [StageGroup: StageAnswers]]) throws {
        guard !added.isEmpty else { return }
        let records = try store.records()
        for (stage, groups) in added.sorted(by: { $0.key < $1.key }) where records.indices.contains(stage) {
            try add(groups, to: records[stage])
        }
    }

    private func add(_ groups: [StageGroup: StageAnswers], to old: StageRecord) throws {
        var record = old
        let sum = groups.values.reduce(StageAnswers(), +)
        record.answers = record.answers + sum
        try store.add(groups, to: record.index)
        let halt = record.isJudged && sum.failed + sum.gone > 0 ? try halt(record) : nil
        if record.decision == nil { record.decision = halt } else if let halt { record.afterGo = halt }
        try store.write(record)
        if halt != nil { try pause(.stage, record) }
    }

    private func halt(_ record: StageRecord) throws -> StageDecision? {
        let evaluator = evaluator(of: record)
        let groups = try store.groups(of: record.index)
        // Deliveries in flight can only prevent a halt, so evaluate without them first, which is cheaper.
        guard evaluator.halt(groups, unanswered: [:], at: now) != nil else { return nil }
        return evaluator.halt(groups, unanswered: try store.unanswered(of: record.index), at: now)
    }

    private static func current(_ records: [StageRecord]) -> Int? { records.lastIndex { $0.openedAt != nil } }

    /// Returns the current stage as it is after a step of the wall clock: its hold lasts as long as before. Returns
    /// `nil` if no hold changes.
    ///
    /// - Parameter start: when the machine started, by the wall clock before the step. A hold that began before that
    ///   time may have begun before an error of the clock that a step back ends, so no step back shortens it.
    package static func shifted(_ records: [StageRecord], by step: ClockStep, start: Timestamp) -> StageRecord? {
        guard let current = current(records), current < records.count - 1, var decision = records[current].decision
        else { return nil }
        let from = decision.heldFrom ?? decision.at
        guard step.by > .zero || from >= start else { return nil }
        decision.heldFrom = from + step.by
        var record = records[current]
        record.decision = decision
        return record
    }

    /// Recounts the stages after rejections were taken back, so that each stage is evaluated again with its remaining
    /// responses.
    package func recount() throws {
        for var record in try store.records().dropLast() where record.openedAt != nil {
            let groups = try store.tally(of: record.index)
            record.answers = groups.values.reduce(StageAnswers(), +)
            if record.decision?.verdict != .go, record.releasedBy == nil { record.decision = nil }
            if record.releasedBy == nil { record.afterGo = nil }
            try store.replace(groups, of: record.index)
            try store.write(record)
        }
    }

    private func evaluator(of record: StageRecord) -> StageEvaluator {
        StageEvaluator(stages, record.index, goneTolerated: record.goneTolerated)
    }

    /// Starts a stage. Returns `false` if a person must approve it first.
    private func begin(_ index: Int, _ records: inout [StageRecord]) throws -> Bool {
        if stages[index].needsApproval, records[index].approvedBy == nil {
            try pause(.approval, records[index])
            return false
        }
        records[index].openedAt = now
        if index == 0 {
            records[index].goneTolerated =
                try StageEvaluator.goneTolerated(after: store.goneBefore())
                ?? StageEvaluator.goneTolerated(after: store.goneBeforeInApp())
        } else {
            records[index].goneTolerated = records[index - 1].goneTolerated
        }
        try store.write(records[index])
        try store.note(StageSummary(run, records[index]).opened, at: now)
        return true
    }

    private func pause(_ halt: RunHalt, _ record: StageRecord) throws {
        let summary = StageSummary(run, record)
        try store.pause(halt, reason: halt == .approval ? summary.approval : summary.verdict, at: now)
    }
}
