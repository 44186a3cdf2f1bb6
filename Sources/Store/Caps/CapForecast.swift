package import Model

/// Predicts what the caps would do to the devices of an audience, up to 1,000 at a time. The forecast uses the ledger
/// as it is now, and treats every push in flight as settled now. A push that a device would get counts for the other
/// devices of its user, as in the run itself.
package struct CapForecast {
    private static let batchMax = 1_000

    private struct Candidate {
        var device: Int64
        var user: String?
        var wave: Timestamp?
    }

    /// The pushes that a person would get from the run.
    private struct Shown {
        var pushes: UInt32
        /// The time of the latest push.
        var at: Timestamp
    }

    private let preview: CapPreview
    private let classes: [UInt32: String]
    private let now: Timestamp
    private let gap: RestoreGap?
    private var policies: [Timestamp: CapPolicy] = [:]
    private var batch: [Candidate] = []
    /// By person, because one person's devices may be in different batches. Empty if no cap is per user.
    private var shown: [Int64: Shown] = [:]
    package private(set) var slice = Reach.CapSlice()

    /// Creates a forecast; ``CapPolicy`` describes `classes` and `gap`.
    package init(_ preview: CapPreview, classes: [UInt32: String], now: Timestamp, gap: RestoreGap? = nil) {
        self.preview = preview
        self.classes = classes
        self.now = now
        self.gap = gap
    }

    package var isFull: Bool { batch.count >= Self.batchMax }

    /// The rows that decide about the devices that were added since the last ``decide(_:)``.
    package var keys: Set<CapKey> {
        batch.reduce(into: []) {
            $0.formUnion(CapUsage.keys(device: $1.device, person: preview.request.person($1.user)))
        }
    }

    package mutating func add(_ device: Int64, user: String?, wave: Timestamp?) {
        batch.append(Candidate(device: device, user: user, wave: wave))
    }

    package mutating func decide(_ usage: CapUsage) {
        var usage = usage.landed(at: now)
        addShown(to: &usage)
        for candidate in batch {
            let moment = max(candidate.wave ?? preview.startsAt, now)
            let decision = policy(at: moment).decide(
                usage, device: candidate.device, user: candidate.user, run: 0, wave: candidate.wave,
                expiresAt: preview.expiry.moment(wave: candidate.wave))
            switch decision {
            case .send: show(candidate, at: moment, &usage)
            case .wait(let moment, _):
                slice.waiting += 1
                slice.lastSlotAt = max(moment, slice.lastSlotAt ?? moment)
            case .suppress, .move: slice.leftOut += 1
            }
        }
        batch.removeAll(keepingCapacity: true)
    }

    private mutating func show(_ candidate: Candidate, at moment: Timestamp, _ usage: inout CapUsage) {
        let person = preview.request.person(candidate.user)
        guard person != 0 else { return }
        usage.reserve(push(candidate.device, person, at: moment), forgetting: Timestamp(milliseconds: 0))
        let before = shown[person]
        shown[person] = Shown(pushes: (before?.pushes ?? 0) + 1, at: max(moment, before?.at ?? moment))
    }

    /// Adds the pushes of earlier batches to the rows of this batch's persons.
    private func addShown(to usage: inout CapUsage) {
        guard !shown.isEmpty else { return }
        let persons = Set(batch.map { preview.request.person($0.user) })
        for person in persons {
            guard let shown = shown[person] else { continue }
            // The device ids of these pushes do not matter, because each device is decided once.
            for number in 1...Int64(shown.pushes) {
                usage.reserve(push(-number, person, at: shown.at), forgetting: Timestamp(milliseconds: 0))
            }
        }
    }

    private func push(_ device: Int64, _ person: Int64, at moment: Timestamp) -> CapPush {
        CapPush(
            device: device, person: person, run: 0, number: 1, rule: preview.request.rule.code,
            hasCollapseID: preview.request.hasCollapseID, reservedAt: moment, settledAt: moment)
    }

    /// Returns the policy of a moment from a cache. Waves start at a few dozen moments only.
    private mutating func policy(at moment: Timestamp) -> CapPolicy {
        if let known = policies[moment] { return known }
        let policy = CapPolicy(preview.request, classes: classes, at: moment, after: [], gap: gap)
        policies[moment] = policy
        return policy
    }
}
