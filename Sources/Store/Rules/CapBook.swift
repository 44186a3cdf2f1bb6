package import Model

/// The rows of the ledger that one transaction has to do with: what the caps allow by them, and how they change. The store
/// reads them, keeps everybody else from them meanwhile, and writes those that ``changed`` says.
package struct CapBook {
    private var pages: [CapKey: [CapPush]] = [:]
    private var dirty: Set<CapKey> = []

    package init() {}

    package mutating func read(_ key: CapKey, _ bytes: [UInt8]) { pages[key] = CapPage.unpack(bytes) }

    package func has(_ key: CapKey) -> Bool { pages[key] != nil }

    /// As if the outcome of all that is in flight came now.
    func landed(at now: Timestamp) -> CapBook {
        var book = self
        book.pages = pages.mapValues { pushes in
            pushes.map { push in
                var push = push
                push.settledAt = push.settledAt ?? now
                return push
            }
        }
        return book
    }

    package func pushes(_ key: CapKey) -> [CapPush] { pages[key] ?? [] }

    /// To be written, in one order for all; without any pushes, to be deleted.
    package var changed: [(key: CapKey, pushes: [CapPush])] { dirty.sorted().map { ($0, pages[$0] ?? []) } }

    /// Of the device that are not with the person as well.
    private func pushes(device: Int64, without person: Int64 = 0) -> [CapPush] {
        (pages[.device(device)] ?? []).filter { $0.device == device && (person == 0 || $0.person != person) }
    }

    func counted(device: Int64, person: Int64, _ per: FrequencyCap.Subject) -> [CapPush] {
        guard per == .user, person != 0 else { return pushes(device: device) }
        // What the device got under another user counts for this one, too: it is the same screen.
        return (pages[CapKey(.person, person)] ?? []) + pushes(device: device, without: person)
    }

    package mutating func reserve(_ push: CapPush, forgetting past: Timestamp) {
        for key in Self.keys(device: push.device, person: push.person) {
            var pushes = pages.removeValue(forKey: key) ?? []
            pushes.removeAll { old in
                (key.kind == .person || old.device == push.device) && old.settledAt.map { $0 <= past } ?? false
            }
            var push = push
            // A clock that goes by another one may be behind it.
            if let last = pushes.last(where: { $0.device == push.device }) {
                push.reservedAt = max(push.reservedAt, last.reservedAt)
            }
            pushes.append(push)
            pages[key] = pushes
            dirty.insert(key)
        }
    }

    package static func keys(device: Int64, person: Int64) -> [CapKey] {
        person == 0 ? [.device(device)] : [.device(device), CapKey(.person, person)]
    }
}

/// What became of a push that holds slots.
package struct CapOutcome: Hashable, Sendable {
    package var device: Int64
    package var number: Int
    /// False: certainly not sent, and so given back.
    package var mayHaveReachedAPNs: Bool

    package init(_ settlement: Settlement) {
        device = settlement.device
        number = settlement.leaseNumber
        mayHaveReachedAPNs = settlement.mayHaveReachedAPNs
    }
}

extension CapBook {
    /// The persons whose rows hold these pushes, too.
    package func persons(of outcomes: [CapOutcome], run: Int64) -> [CapKey] {
        let devices = Set(outcomes.map(\.device))
        let persons = outcomes.reduce(into: Set<Int64>()) { persons, outcome in
            for push in pages[.device(outcome.device)] ?? []
            where push.person != 0 && push.run == run && devices.contains(push.device) {
                persons.insert(push.person)
            }
        }
        return persons.sorted().map { CapKey(.person, $0) }
    }

    /// From `now` on those that may have left are certainly in the past; the others never were.
    package mutating func settle(_ outcomes: [CapOutcome], run: Int64, at now: Timestamp) {
        for outcome in outcomes {
            guard let person = settle(outcome, run, .device(outcome.device), now), person != 0 else { continue }
            _ = settle(outcome, run, CapKey(.person, person), now)
        }
    }

    /// The person's number; nil where the ledger does not know the push.
    private mutating func settle(_ outcome: CapOutcome, _ run: Int64, _ key: CapKey, _ now: Timestamp) -> Int64? {
        let place = pages[key]?.firstIndex {
            $0.device == outcome.device && $0.run == run && $0.number == outcome.number
        }
        guard let place, let push = pages[key]?[place] else { return nil }
        if outcome.mayHaveReachedAPNs {
            pages[key]?[place].settledAt = push.settledAt.map { max($0, now) } ?? now
        } else {
            pages[key]?.remove(at: place)
        }
        dirty.insert(key)
        return push.person
    }

    /// What a device that goes leaves to the one it turns out to be. The one's own slots stay, for the outcomes of what is in
    /// flight.
    package mutating func inherit(from gone: Int64, by kept: Int64, at now: Timestamp) {
        for push in pushes(device: gone) {
            var copy = push
            copy.device = kept
            copy.number = -abs(push.number)
            copy.reservedAt = now
            copy.settledAt = push.settledAt ?? now + .milliseconds(RegistrationPolicy.flightMaxMs)
            pages[.device(kept), default: []].append(copy)
            dirty.insert(.device(kept))
        }
    }

    /// What `explain` tells of: each alert once.
    package func story(device: Int64, person: Int64, classes: [UInt32: String]) -> [DeviceStory.CappedPush] {
        let others = (pages[CapKey(.person, person)] ?? []).filter { $0.device != device }
        return (pushes(device: device) + others).alerts.compactMap { push in
            classes[push.rule].map { name in
                DeviceStory.CappedPush(pushClass: name, settledAt: push.settledAt, isOwn: push.device == device)
            }
        }
    }

    /// Whether one of the device's pushes ended after this, or has not ended.
    package func holds(_ device: Int64, since moment: Timestamp) -> Bool {
        pushes(device: device).contains { $0.settledAt.map { $0 > moment } ?? true }
    }
}
