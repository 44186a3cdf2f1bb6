import Model

/// What the silent budget must decide, worked out the long way: every push is remembered for ever, every window is
/// counted anew.
struct SilentModel {
    struct Push {
        var run: Int64
        /// Of the delivery's leases.
        var number: Int
        /// When the outcome came; nil while in flight.
        var end: Timestamp?
    }

    enum State: Hashable {
        case fresh
        case waiting(until: Timestamp, forBudget: Bool)
        case inFlight
        case ended(DeliveryState, String?)
    }

    struct Delivery {
        var state = State.fresh
        var leases = 0
        var attempts = 0
    }

    struct Run {
        var key: String?
        var expiresAt: Timestamp?
        var deliveries: [Int64: Delivery]
    }

    let budget: Configuration.SilentBudget
    private(set) var pushes: [Int64: [Push]] = [:]
    var runs: [Int64: Run] = [:]

    init(_ budget: Configuration.SilentBudget) {
        self.budget = budget
    }

    /// The devices that must be leased.
    mutating func lease(_ run: Int64, now: Timestamp) -> Set<Int64> {
        var leased: Set<Int64> = []
        for (device, delivery) in runs[run]?.deliveries ?? [:] {
            switch delivery.state {
            case .fresh: break
            case .waiting(let moment, _) where moment <= now: break
            case .waiting, .inFlight, .ended: continue
            }
            if decide(run, device, now: now) { leased.insert(device) }
        }
        return leased
    }

    private mutating func decide(_ run: Int64, _ device: Int64, now: Timestamp) -> Bool {
        let expiresAt = runs[run]?.expiresAt
        if let expiresAt, now >= expiresAt {
            end(run, device, .suppressed, "expired")
            return false
        }
        let counted = (pushes[device] ?? []).map { $0.end ?? now }.filter { $0 > now - budget.window }.sorted()
        if counted.count < budget.limit {
            runs[run]?.deliveries[device]?.state = .inFlight
            let number = (runs[run]?.deliveries[device]?.leases ?? 0) + 1
            pushes[device, default: []].append(Push(run: run, number: number, end: nil))
            return true
        }
        let free = counted[counted.count - budget.limit] + budget.window
        if let expiresAt, free >= expiresAt {
            end(run, device, .suppressed, "silent_budget")
        } else if others(run, device).contains(where: { $0 > run }) {
            end(run, device, .suppressed, "coalesced")
        } else {
            runs[run]?.deliveries[device]?.state = .waiting(until: free, forBudget: true)
            for older in others(run, device) { end(older, device, .suppressed, "coalesced") }
        }
        return false
    }

    /// Runs of the same key in which the device waits for its budget.
    private func others(_ run: Int64, _ device: Int64) -> [Int64] {
        guard let key = runs[run]?.key else { return [] }
        return runs.filter { id, other in
            guard id != run, other.key == key, case .waiting(_, true)? = other.deliveries[device]?.state else {
                return false
            }
            return true
        }.map(\.key)
    }

    private mutating func end(_ run: Int64, _ device: Int64, _ state: DeliveryState, _ reason: String?) {
        runs[run]?.deliveries[device]?.state = .ended(state, reason)
    }

    mutating func settle(_ run: Int64, _ settlement: Settlement, now: Timestamp) {
        let device = settlement.device
        let index = pushes[device]?.firstIndex { $0.run == run && $0.number == settlement.leaseNumber }
        let isLate = runs[run]?.deliveries[device].map { $0.state != .inFlight || $0.leases >= settlement.leaseNumber }
        if settlement.mayHaveReachedAPNs {
            if let index { pushes[device]?[index].end = now }
        } else if isLate == false, let index {
            pushes[device]?.remove(at: index)
        }
        guard isLate == false else { return }
        runs[run]?.deliveries[device]?.leases = settlement.leaseNumber
        runs[run]?.deliveries[device]?.attempts = settlement.attempt
        switch settlement.verdict {
        case .accepted: end(run, device, .accepted, nil)
        case .rejected: end(run, device, .rejected, settlement.reason)
        case .unknown: end(run, device, .unknown, settlement.reason)
        case .suppressed(let reason): end(run, device, .suppressed, reason.rawValue)
        case .retry(let moment): runs[run]?.deliveries[device]?.state = .waiting(until: moment, forBudget: false)
        }
    }

    /// A crash: what was in flight may have arrived, and goes out again if it may.
    mutating func recover(_ run: Int64, maxAttempts: Int, now: Timestamp) {
        for (device, delivery) in runs[run]?.deliveries ?? [:] where delivery.state == .inFlight {
            let attempt = delivery.attempts + 1
            let number = delivery.leases + 1
            runs[run]?.deliveries[device]?.attempts = attempt
            runs[run]?.deliveries[device]?.leases = number
            if attempt < maxAttempts {
                runs[run]?.deliveries[device]?.state = .waiting(until: now, forBudget: false)
            } else {
                end(run, device, .unknown, "Interrupted")
            }
            if let index = pushes[device]?.firstIndex(where: { $0.run == run && $0.number == number }) {
                pushes[device]?[index].end = now
            }
        }
    }
}
