package import Model

/// Checks the ledger of the frequency caps against the rule that decided each push. When a push was reserved, the
/// window must have held fewer other alerts than the cap allows for the push's class. Each push in flight must be
/// leased.
package struct CapScan {
    package static let name = "frequency_caps"
    package static let promise =
        "no device or user gets more visible pushes in a window than a frequency cap allows"

    private struct Place: Hashable {
        var device, run: Int64
        var number: Int
    }

    fileprivate let rules: [UInt32: CapRule]
    private var leased: Set<Place> = []
    /// The latest moment in the ledger.
    fileprivate var latest = Timestamp(milliseconds: 0)
    /// The number of pushes that were compared with those before them.
    package private(set) var pushes = 0
    package private(set) var violations: [StoreFault] = []

    /// - Parameter rules: the rules in the store.
    package init(_ rules: [CapRule]) {
        self.rules = Dictionary(rules.map { ($0.code, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// Adds the deliveries of an open lease under caps. Add all of these leases before the first row.
    package mutating func addLease(run: Int64, _ entries: [LeaseEntry]) {
        for entry in entries { leased.insert(Place(device: entry.device, run: run, number: entry.number)) }
    }

    /// Checks a row of the ledger.
    package mutating func add(_ kind: CapKey.Kind, _ bytes: [UInt8]) {
        let row = CapRowFormat.unpack(bytes)
        switch kind {
        case .person: check(row, isPerson: true)
        case .devices:
            for pushes in Dictionary(grouping: row, by: \.device).sorted(by: { $0.key < $1.key }) {
                check(pushes.value, isPerson: false)
            }
        }
    }

    /// Checks the pushes of one device or person, in the order of reservation.
    private mutating func check(_ list: [CapPush], isPerson: Bool) {
        for (index, push) in list.enumerated() {
            latest = max(latest, push.reservedAt, push.settledAt ?? push.reservedAt)
            if push.settledAt == nil, !leased.contains(Place(device: push.device, run: push.run, number: push.number)) {
                violations.append(
                    fault(
                        push,
                        "lease \(push.number) of the run holds slots of frequency caps, but the delivery is not leased")
                )
            }
            guard push.number > 0 else { continue }
            pushes += 1
            guard let rule = rules[push.rule] else {
                violations.append(fault(push, "the rule that applied is not recorded"))
                continue
            }
            for cap in rule.inForce where !isPerson || cap.per == .user {
                check(push, cap, rule, after: list[..<index])
            }
        }
    }

    private mutating func check(
        _ push: CapPush, _ cap: FrequencyCap, _ rule: CapRule, after before: ArraySlice<CapPush>
    ) {
        let limit = cap.limit(for: rule.pushClass)
        let window = RollingWindow(limit: limit, length: cap.window, for: .frequencyCap, at: push.reservedAt)
        let others = before.filter { other in
            window.counts(other.settledAt) && other.alert != push.alert
                && rules[other.rule].map { cap.covers($0.pushClass) } ?? true
        }.alerts.count
        guard window.isFull(others) else { return }
        violations.append(
            fault(
                push,
                "a push of class \(rule.pushClass) at \(push.reservedAt.iso8601) followed \(others) others under the cap "
                    + "\(cap.summary), but only \(limit) are allowed for that class"))
    }

    private func fault(_ push: CapPush, _ what: String) -> StoreFault {
        StoreFault(run: push.run, device: push.device, what)
    }
}

/// The reverse check: every recent push under a cap must be in the ledger. Otherwise ``CapScan`` proves nothing.
///
/// The store records for each run the time since which its deliveries are leased under caps. Later changes of the
/// configuration do not matter. Old pushes are skipped, because the ledger may have forgotten them. The limit is the
/// longest window of the app's caps; if several rules of the app are recorded, the shortest of these limits.
package struct CapLedgerCheck {
    package static let name = "cap_ledger"
    package static let promise = "every recent push under a frequency cap is in the ledger of the frequency caps"

    private let windows: [String: Duration]
    private let now: Timestamp
    /// The number of pushes that were looked for.
    package private(set) var compared = 0
    package private(set) var faults: [StoreFault] = []

    /// - Parameters:
    ///   - scan: the scan of the whole ledger.
    ///   - heardAt: the time of the last heartbeat of any sender.
    package init(_ scan: CapScan, heardAt: Timestamp?) {
        windows = Dictionary(scan.rules.values.map { ($0.topic, $0.longestWindow) }, uniquingKeysWith: min)
        now = max(scan.latest, heardAt ?? scan.latest)
    }

    /// The ledger need not hold pushes of a run that ended before this moment.
    package var oldest: Timestamp { now - FrequencyCap.windowMax }

    /// Returns the time from which a run's pushes must be in the ledger; `nil` if it cannot be determined.
    ///
    /// - Parameter cappedSince: the time from which the run was leased under caps.
    package mutating func since(_ cappedSince: Timestamp, _ run: Run) -> Timestamp? {
        guard let window = windows[run.definition.campaign.deviceTopic] else {
            faults.append(
                StoreFault(
                    run: run.id, "the delivery is leased under frequency caps, but no rule of its app is recorded"))
            return nil
        }
        return max(cappedSince, now - window)
    }

    /// - Parameters:
    ///   - number: the number of the lease in which the push was sent.
    ///   - row: the ledger row of the device.
    package mutating func check(run: Int64, device: Int64, number: Int, row: [CapPush]) {
        compared += 1
        guard !row.contains(where: { $0.device == device && $0.run == run && $0.number == number }) else { return }
        faults.append(
            StoreFault(
                run: run, device: device,
                "lease \(number) of the run was sent and is not in the cap ledger"))
    }
}
