package import Model

/// The check that the verdicts on a run's stages follow from their responses, and that no stage began before its turn.
package enum StageCheck {
    package static let name = "stages"
    package static let promise =
        "every verdict on a stage matches its responses and opens, and no stage began too early"

    package static func faults(_ run: Run, _ store: some StageStore) throws -> [StoreFault] {
        let records = try store.records()
        guard let stages = run.definition.campaign.stages, !records.isEmpty else { return [] }
        guard stages.count == records.count else {
            return [
                StoreFault(
                    run: run.id,
                    "it has \(records.count.counted("stage")) recorded, and \(stages.count) in its definition")
            ]
        }
        var faults: [String] = []
        for (stage, record) in zip(stages, records) {
            let name = "stage \(record.index + 1)"
            let evaluator = StageEvaluator(stages, record.index, goneTolerated: record.goneTolerated)
            for decision in [record.decision, record.afterGo].compactMap(\.self) {
                if decision.verdict != .go, !record.answers.cover(decision.answers) {
                    faults.append("\(name): its verdict counts more responses than there are")
                }
                if record.index < stages.count - 1, !evaluator.confirms(decision) {
                    faults.append("\(name): its responses do not match the verdict \(decision.verdict.rawValue)")
                }
                if let opens = decision.opens, OpensRule.isTooLow(opens, in: stages) != (decision.verdict == .halt) {
                    faults.append("\(name): its opens do not match the verdict \(decision.verdict.rawValue)")
                }
            }
            faults += try variantFaults(record, stage, in: records, store, name)
            if let later = record.afterGo, record.decision?.verdict != .go || later.verdict != .halt {
                faults.append("\(name): a second verdict can only pause a stage that had passed")
            }
            if let moment = record.openedAt {
                faults += early(record, stage, at: moment, before: records.prefix(record.index), name)
            }
            let groups = try store.groups(of: record.index)
            if groups.values.reduce(StageAnswers(), +) != record.answers {
                faults.append("\(name): its responses differ from the sum of the responses for each text")
            }
            // A rejected delivery that is sent again gets two responses, so there may be more responses than end
            // states.
            for (group, own) in try store.tally(of: record.index) where !(groups[group] ?? StageAnswers()).cover(own) {
                faults.append("\(name): more deliveries have an outcome than have a response")
            }
        }
        return faults.map { StoreFault(run: run.id, $0) }
    }

    /// Checks the decision which variant the rest gets, and the variant of every request of the rest.
    private static func variantFaults(
        _ record: StageRecord, _ stage: Stage, in records: [StageRecord], _ store: some StageStore, _ name: String
    ) throws -> [String] {
        guard let rule = stage.decides else { return [] }
        let hasRest = records.last?.openedAt != nil
        guard let decided = record.decision?.variants, let variant = decided.variant else {
            return hasRest ? ["\(name): the rest began although no variant was chosen"] : []
        }
        var faults: [String] = []
        if !decided.isConfirmed(by: rule) {
            faults.append("\(name): its counts do not match the choice of the variant")
        }
        let others = hasRest ? try store.sent(otherThan: variant) : 0
        if others > 0 {
            faults.append("\(name): \(others.counted("push", "pushes")) of the rest went out with another variant")
        }
        return faults
    }

    private static func early(
        _ record: StageRecord, _ stage: Stage, at moment: Timestamp, before: ArraySlice<StageRecord>, _ name: String
    ) -> [String] {
        var faults: [String] = []
        // An earlier stage that passed may still be halted after this stage began.
        func mayBegin(after other: StageRecord) -> Bool {
            other.releasedBy != nil || other.decision?.verdict == .go && other.afterGo.map { $0.at >= moment } ?? true
        }
        if !before.allSatisfy(mayBegin) {
            faults.append("\(name) began although an earlier stage had not passed")
        }
        if stage.needsApproval, record.approvedBy == nil {
            faults.append("\(name) began without an approval")
        }
        return faults
    }
}

extension StageAnswers {
    fileprivate func cover(_ other: StageAnswers) -> Bool {
        answered >= other.answered && failed >= other.failed && gone >= other.gone && unknown >= other.unknown
    }
}
