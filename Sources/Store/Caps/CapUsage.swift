package import Model

/// The rows of the ledger that one transaction needs. They decide what the caps allow, and hold the changes. The store
/// reads the rows, locks them against other transactions, and writes those in ``changed``.
package struct CapUsage {
    private var rows: [CapKey: CapUsageRow] = [:]
    /// The key of the row that was read last. Queries about neighbouring devices usually follow each other.
    private var lastRead: CapKey?
    private var hasPersons = false

    package init() {}

    package mutating func read(_ key: CapKey, _ bytes: [UInt8]) {
        let row = CapUsageRow(CapRowFormat.unpack(bytes), isByDevice: key.kind == .devices)
        hasPersons = hasPersons || row.pushes.contains { $0.person != 0 }
        rows[key] = row
        lastRead = key
    }

    package func has(_ key: CapKey) -> Bool { key == lastRead || rows[key] != nil }

    /// Returns the usage as if every push in flight got its outcome now.
    func landed(at now: Timestamp) -> CapUsage {
        var usage = self
        usage.rows = rows.mapValues { $0.landed(at: now) }
        return usage
    }

    package func pushes(_ key: CapKey) -> [CapPush] { rows[key]?.pushes ?? [] }

    /// The rows to write, in the same order for every transaction. A row without pushes is to be deleted.
    package var changed: [(key: CapKey, pushes: [CapPush])] {
        rows.filter(\.value.isChanged).sorted { $0.key < $1.key }.map { ($0.key, $0.value.pushes) }
    }

    private func pushes(device: Int64) -> ArraySlice<CapPush> { rows[.device(device)]?.pushes(of: device) ?? [] }

    func counted(device: Int64, person: Int64, _ per: FrequencyCap.Subject) -> [CapPush] {
        let own = pushes(device: device)
        guard per == .user, person != 0 else { return own.isEmpty ? [] : Array(own) }
        // A push that the device got under another user counts for this user too: it appears on the same screen.
        return (rows[CapKey(.person, person)]?.pushes ?? []) + own.filter { $0.person != person }
    }

    package mutating func reserve(_ push: CapPush, forgetting past: Timestamp) {
        let key = CapKey.device(push.device)
        rows[key, default: CapUsageRow(isByDevice: true)].reserve(push, forgetting: past)
        guard push.person != 0 else { return }
        rows[CapKey(.person, push.person), default: CapUsageRow(isByDevice: false)].reserve(push, forgetting: past)
    }

    package static func keys(device: Int64, person: Int64) -> [CapKey] {
        person == 0 ? [.device(device)] : [.device(device), CapKey(.person, person)]
    }
}

/// One row of the ledger. A row of neighbouring devices is sorted by device, and each device's pushes are in the order
/// of reservation. A person's row is in the order of reservation. A query for a device therefore reads only a few
/// pushes.
private struct CapUsageRow {
    private(set) var pushes: [CapPush]
    private(set) var isChanged = false
    private let isByDevice: Bool

    init(_ pushes: [CapPush] = [], isByDevice: Bool) {
        self.isByDevice = isByDevice
        let isSorted = !isByDevice || zip(pushes, pushes.dropFirst()).allSatisfy { $0.device <= $1.device }
        self.pushes =
            isSorted
            ? pushes
            : pushes.enumerated().sorted { ($0.element.device, $0.offset) < ($1.element.device, $1.offset) }
                .map(\.element)
    }

    func landed(at now: Timestamp) -> CapUsageRow {
        var row = self
        for index in pushes.indices where pushes[index].settledAt == nil { row.pushes[index].settledAt = now }
        return row
    }

    /// Returns the range of a device's pushes, or the place where they would be. In a person's row, this is the whole
    /// row.
    private func range(of device: Int64) -> Range<Int> {
        guard isByDevice else { return pushes.indices }
        var (low, high) = (0, pushes.count)
        while low < high {
            let middle = (low + high) / 2
            if pushes[middle].device < device { low = middle + 1 } else { high = middle }
        }
        while high < pushes.count, pushes[high].device == device { high += 1 }
        return low..<high
    }

    func pushes(of device: Int64) -> ArraySlice<CapPush> { pushes[range(of: device)] }

    mutating func reserve(_ push: CapPush, forgetting past: Timestamp) {
        var range = range(of: push.device)
        for index in range.reversed() where pushes[index].settledAt.map({ $0 <= past }) ?? false {
            pushes.remove(at: index)
            range = range.lowerBound..<range.upperBound - 1
        }
        var push = push
        // The clock of this reservation may be behind that of an earlier one: never reserve before the device's last
        // push.
        if let last = pushes[range].last(where: { $0.device == push.device }) {
            push.reservedAt = max(push.reservedAt, last.reservedAt)
        }
        pushes.insert(push, at: range.upperBound)
        isChanged = true
    }

    mutating func append(_ push: CapPush) {
        pushes.insert(push, at: range(of: push.device).upperBound)
        isChanged = true
    }

    mutating func settle(
        _ outcomes: ArraySlice<CapOutcome>, _ run: Int64, at now: Timestamp, _ persons: inout [(Int64, CapOutcome)]
    ) {
        for outcome in outcomes {
            if let person = settle(outcome, run, at: now), person != 0 { persons.append((person, outcome)) }
        }
    }

    /// Returns the person's number; `nil` if the push is not in this row.
    mutating func settle(_ outcome: CapOutcome, _ run: Int64, at now: Timestamp) -> Int64? {
        let place = range(of: outcome.device).first { index in
            pushes[index].device == outcome.device && pushes[index].run == run
                && pushes[index].number == outcome.number
        }
        guard let place else { return nil }
        isChanged = true
        guard outcome.mayHaveReachedAPNs else { return pushes.remove(at: place).person }
        pushes[place].settledAt = pushes[place].settledAt.map { max($0, now) } ?? now
        return pushes[place].person
    }
}

/// The outcome of a push that holds slots.
package struct CapOutcome: Hashable, Sendable {
    package var device: Int64
    package var number: Int
    /// `false` if the push was certainly not sent, so that its slots are released.
    package var mayHaveReachedAPNs: Bool

    package init(_ settlement: Settlement) {
        device = settlement.device
        number = settlement.leaseNumber
        mayHaveReachedAPNs = settlement.mayHaveReachedAPNs
    }
}

extension CapUsage {
    /// Returns the keys of the persons whose rows also hold these pushes.
    package func persons(of outcomes: [CapOutcome], run: Int64) -> [CapKey] {
        guard hasPersons else { return [] }
        var persons: Set<Int64> = []
        for outcome in outcomes {
            for push in pushes(device: outcome.device) where push.person != 0 && push.run == run {
                persons.insert(push.person)
            }
        }
        return persons.sorted().map { CapKey(.person, $0) }
    }

    /// Records outcomes. A push that may have reached APNs ends at `now`, or later if a later end is recorded. Any
    /// other push is removed.
    package mutating func settle(_ outcomes: [CapOutcome], run: Int64, at now: Timestamp) {
        var persons: [(Int64, CapOutcome)] = []
        // Outcomes of neighbouring devices come together, so each row is looked up only a few times.
        var rest = outcomes[...]
        while let first = rest.first {
            let key = CapKey.device(first.device)
            let own = rest.prefix { CapKey.device($0.device) == key }
            rows[key]?.settle(own, run, at: now, &persons)
            rest = rest[own.endIndex...]
        }
        for (person, outcome) in persons { _ = rows[CapKey(.person, person)]?.settle(outcome, run, at: now) }
    }

    /// Copies the pushes of a removed device to the device that it turned out to be. The removed device keeps its own
    /// slots, for the outcomes of pushes in flight.
    package mutating func inherit(from gone: Int64, by kept: Int64, at now: Timestamp) {
        for push in pushes(device: gone) {
            var copy = push
            copy.device = kept
            copy.number = -abs(push.number)
            copy.reservedAt = now
            copy.settledAt = push.settledAt ?? now + .milliseconds(RegistrationPolicy.flightMaxMs)
            rows[.device(kept), default: CapUsageRow(isByDevice: true)].append(copy)
        }
    }

    /// Returns the pushes that `explain` shows, each alert once.
    package func history(device: Int64, person: Int64, classes: [UInt32: String]) -> [DeviceHistory.CappedPush] {
        let others = (rows[CapKey(.person, person)]?.pushes ?? []).filter { $0.device != device }
        return (Array(pushes(device: device)) + others).alerts.compactMap { push in
            classes[push.rule].map { name in
                DeviceHistory.CappedPush(pushClass: name, settledAt: push.settledAt, isOwn: push.device == device)
            }
        }
    }

    /// Returns whether one of the device's pushes ended after this moment or is still in flight.
    package func holds(_ device: Int64, since moment: Timestamp) -> Bool {
        pushes(device: device).contains { $0.settledAt.map { $0 > moment } ?? true }
    }
}
