/// Compares the store with the requests that the simulator received.
struct Proof {
    private(set) var violations: [String] = []
    /// The number of deliveries that were accepted more than once, permitted or not.
    private(set) var doubles = 0
    private(set) var budgetViolations = 0

    /// - Parameter cancelled: the runs that were cancelled while they were sending.
    init(_ scene: Scene, _ store: StoreRecord, _ wire: WireLog, cancelled: Set<Int64> = []) {
        let expected = scene.devices * scene.runs
        if store.deliveries.count != expected {
            violations.append("\(store.deliveries.count) deliveries instead of \(expected)")
        }
        violations += store.problems
        let acceptances = wire.acceptances
        for delivery in store.deliveries {
            judge(
                delivery, accepted: acceptances[delivery.id, default: 0], scene,
                isCancelled: cancelled.contains(delivery.run))
        }
        let known = Set(store.deliveries.map(\.id))
        let strangers = acceptances.keys.filter { !known.contains($0) }
        if !strangers.isEmpty { violations.append("\(strangers.count) pushes of no delivery") }
        if scene.isSilent {
            budgetViolations = wire.budgetViolations(limit: Scene.budget.limit, windowMs: Scene.budget.windowMs)
            if budgetViolations > 0 { violations.append("\(budgetViolations) background pushes over the budget") }
            violations += slotsEaten(store, wire, Scene.budget.limit, "silent_budget") { "\($0.device)" }
        }
        if let cap = scene.cap {
            budgetViolations = wire.capViolations(
                limit: cap.limit, windowMs: Scene.budget.windowMs, of: cap.subject(of:))
            if budgetViolations > 0 { violations.append("\(budgetViolations) pushes over the cap") }
            violations += slotsEaten(store, wire, cap.limit, "frequency_cap") { cap.subject(of: $0.token) }
        }
        violations += outOfOrder(store, wire)
    }

    /// Returns the devices or users whose pushes were refused for the budget or the cap too early. Only pushes that
    /// arrived, or may have arrived, use up a slot.
    private func slotsEaten(
        _ store: StoreRecord, _ wire: WireLog, _ limit: Int, _ reason: String,
        of subject: (StoreRecord.Delivery) -> String
    ) -> [String] {
        let troubles = wire.troubles
        return Dictionary(grouping: store.deliveries, by: subject).compactMap { subject, deliveries in
            guard deliveries.contains(where: { $0.reason == reason }) else { return nil }
            let had = deliveries.reduce(0) {
                $0 + troubles[$1.id, default: 0] + $1.doubts + ($1.state == 1 ? 1 : 0)
            }
            return had >= limit ? nil : "\(subject): refused as \(reason) after \(had) pushes that may have arrived"
        }
    }

    /// Returns a violation for each stage whose first request came before the stage started, or before a delivery of an
    /// earlier stage was first requested. A stage without any request is a violation, too.
    private func outOfOrder(_ store: StoreRecord, _ wire: WireLog) -> [String] {
        let asked = wire.firstAsked
        let deliveries = Dictionary(grouping: store.deliveries, by: \.run)
        return Dictionary(grouping: store.stages, by: \.run).flatMap { run, stages in
            var latest = Int.min
            return stages.sorted { $0.stage < $1.stage }.compactMap { stage in
                let members = deliveries[run, default: []].filter { ($0.stage ?? stages.count - 1) == stage.stage }
                let times = members.compactMap { asked[$0.id] }
                defer { latest = times.reduce(latest, max) }
                guard let first = times.min() else { return "run \(run), stage \(stage.stage): nobody of it was asked" }
                let opened = stage.openedAt ?? .max
                guard first < latest || first < opened else { return nil }
                return "run \(run), stage \(stage.stage): asked at \(first), begun at \(opened), "
                    + "the last of those before it asked at \(latest)"
            }
        }
    }

    private mutating func judge(
        _ delivery: StoreRecord.Delivery, accepted: Int, _ scene: Scene, isCancelled: Bool
    ) {
        let name = "run \(delivery.run), device \(delivery.device)"
        let facts =
            "state \(delivery.state), \(delivery.attempts) attempts, \(delivery.doubts) doubts, \(accepted) accepted"
        switch delivery.state {
        case 1 where accepted == 0, 0: violations.append("\(name): no end, or one that is not true: \(facts)")
        // A delivery that was accepted and ended otherwise must have been in doubt.
        case 2 where accepted > 0 && delivery.doubts == 0, 4 where accepted > 0 && delivery.doubts == 0:
            violations.append("\(name): sent all the same: \(facts)")
        case 3 where delivery.doubts == 0: violations.append("\(name): unknown without a doubt: \(facts)")
        // A delivery that is in doubt when its run is cancelled is not sent again.
        case 3 where scene.onUnknown == .resend && delivery.attempts < Scene.attemptsMax && !isCancelled:
            violations.append("\(name): unknown with attempts left: \(facts)")
        default: break
        }
        guard accepted > 1 else { return }
        doubles += 1
        if scene.mayForget { return }
        if scene.onUnknown == .skip || delivery.doubts == 0 || accepted > 1 + delivery.doubts {
            violations.append("\(name): a double without right: \(facts)")
        }
    }
}
