package import Model

/// Foretells what the caps would do to the devices of an audience, some hundred at a time: by the ledger as it is now,
/// with the outcome of all that is in flight taken to come now. A push that a device would get counts for the other
/// devices of its user, as it will in the run itself.
package struct CapForecast {
    private static let batchMax = 1_000

    private struct Candidate {
        var device: Int64
        var user: String?
        var wave: Timestamp?
    }

    /// What a person would get of the run.
    private struct Shown {
        var pushes: UInt32
        /// The latest of them.
        var at: Timestamp
    }

    private let preview: CapPreview
    private let classes: [UInt32: String]
    private let now: Timestamp
    private let gap: RestoreGap?
    private var policies: [Timestamp: CapPolicy] = [:]
    private var batch: [Candidate] = []
    /// By person, since the devices of one come anywhere in the order. Empty where no cap is per user.
    private var shown: [Int64: Shown] = [:]
    package private(set) var slice = Reach.CapSlice()

    /// Takes `classes` and `gap` as ``CapPolicy`` does.
    package init(_ preview: CapPreview, classes: [UInt32: String], now: Timestamp, gap: RestoreGap? = nil) {
        self.preview = preview
        self.classes = classes
        self.now = now
        self.gap = gap
    }

    package var isFull: Bool { batch.count >= Self.batchMax }

    /// The rows that decide of those added since ``decide(_:)``.
    package var keys: Set<CapKey> {
        batch.reduce(into: []) {
            $0.formUnion(CapBook.keys(device: $1.device, person: preview.request.person($1.user)))
        }
    }

    package mutating func add(_ device: Int64, user: String?, wave: Timestamp?) {
        batch.append(Candidate(device: device, user: user, wave: wave))
    }

    package mutating func decide(_ book: CapBook) {
        var book = book.landed(at: now)
        addShown(to: &book)
        for candidate in batch {
            let moment = max(candidate.wave ?? preview.startsAt, now)
            let decision = policy(at: moment).decide(
                book, device: candidate.device, user: candidate.user, run: 0, wave: candidate.wave,
                expiresAt: preview.expiry.moment(wave: candidate.wave))
            switch decision {
            case .send: show(candidate, at: moment, &book)
            case .wait(let moment, _):
                slice.waiting += 1
                slice.lastSlotAt = max(moment, slice.lastSlotAt ?? moment)
            case .suppress, .move: slice.leftOut += 1
            }
        }
        batch.removeAll(keepingCapacity: true)
    }

    private mutating func show(_ candidate: Candidate, at moment: Timestamp, _ book: inout CapBook) {
        let person = preview.request.person(candidate.user)
        guard person != 0 else { return }
        book.reserve(push(candidate.device, person, at: moment), forgetting: Timestamp(milliseconds: 0))
        let before = shown[person]
        shown[person] = Shown(pushes: (before?.pushes ?? 0) + 1, at: max(moment, before?.at ?? moment))
    }

    /// Writes down what earlier batches showed to the persons of this one.
    private func addShown(to book: inout CapBook) {
        guard !shown.isEmpty else { return }
        let persons = Set(batch.map { preview.request.person($0.user) })
        for person in persons {
            guard let shown = shown[person] else { continue }
            // Which devices they went to does not matter: none of them comes twice.
            for number in 1...Int64(shown.pushes) {
                book.reserve(push(-number, person, at: shown.at), forgetting: Timestamp(milliseconds: 0))
            }
        }
    }

    private func push(_ device: Int64, _ person: Int64, at moment: Timestamp) -> CapPush {
        CapPush(
            device: device, person: person, run: 0, number: 1, rule: preview.request.rule.code,
            hasCollapseID: preview.request.hasCollapseID, reservedAt: moment, settledAt: moment)
    }

    /// Waves start at some tens of moments.
    private mutating func policy(at moment: Timestamp) -> CapPolicy {
        if let known = policies[moment] { return known }
        let policy = CapPolicy(preview.request, classes: classes, at: moment, after: [], gap: gap)
        policies[moment] = policy
        return policy
    }
}
