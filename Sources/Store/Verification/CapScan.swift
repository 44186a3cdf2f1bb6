package import Model

/// Reads the ledger of the frequency caps against the rule that each push was decided by: when it was reserved, fewer other
/// alerts than the cap allows its class may have been inside the window. And what is in flight there must be leased.
package struct CapScan {
    package static let name = "frequency_caps"
    package static let promise =
        "no device and no person gets more visible pushes in a window than a frequency cap allows"

    private struct Place: Hashable {
        var device, run: Int64
        var number: Int
    }

    fileprivate let rules: [UInt32: CapRule]
    private var leased: Set<Place> = []
    /// The latest moment in the ledger.
    fileprivate var latest = Timestamp(milliseconds: 0)
    /// Pushes that were compared with those before them.
    package private(set) var pushes = 0
    package private(set) var violations: [StoreFault] = []

    /// - Parameter rules: those in the store.
    package init(_ rules: [CapRule]) {
        self.rules = Dictionary(rules.map { ($0.code, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// What an open lease under caps names; all of them before the first row.
    package mutating func addLease(run: Int64, _ entries: [LeaseEntry]) {
        for entry in entries { leased.insert(Place(device: entry.device, run: run, number: entry.number)) }
    }

    /// A row of the ledger.
    package mutating func add(_ kind: CapKey.Kind, _ bytes: [UInt8]) {
        let page = CapPage.unpack(bytes)
        switch kind {
        case .person: check(page, isPerson: true)
        case .devices:
            for pushes in Dictionary(grouping: page, by: \.device).sorted(by: { $0.key < $1.key }) {
                check(pushes.value, isPerson: false)
            }
        }
    }

    /// Of one device or person, in the order they were reserved in.
    private mutating func check(_ list: [CapPush], isPerson: Bool) {
        for (index, push) in list.enumerated() {
            latest = max(latest, push.reservedAt, push.settledAt ?? push.reservedAt)
            if push.settledAt == nil, !leased.contains(Place(device: push.device, run: push.run, number: push.number)) {
                violations.append(
                    fault(push, "lease \(push.number) of it holds slots of frequency caps, but it is in no lease"))
            }
            guard push.number > 0 else { continue }
            pushes += 1
            guard let rule = rules[push.rule] else {
                violations.append(fault(push, "the rule it was decided by is not on record"))
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
                    + "\(cap.words), \(limit) in all are allowed to that class"))
    }

    private func fault(_ push: CapPush, _ what: String) -> StoreFault {
        StoreFault(run: push.run, device: push.device, what)
    }
}

/// The other way round: a cap that is kept is worth nothing unless every push under it is in the ledger.
///
/// Of each run the store knows from when on all it sends is leased under caps, however often the configuration changed.
/// What is older than the shortest of the windows that its app had is not looked for: the ledger may have forgotten it.
package struct CapCover {
    package static let name = "cap_ledger"
    package static let promise = "every push of late under a frequency cap is in the ledger of the caps"

    private let windows: [String: Duration]
    private let now: Timestamp
    /// Pushes that were looked for.
    package private(set) var compared = 0
    package private(set) var faults: [StoreFault] = []

    /// - Parameters:
    ///   - scan: of the whole ledger.
    ///   - heardAt: when any sender was last heard of.
    package init(_ scan: CapScan, heardAt: Timestamp?) {
        windows = Dictionary(scan.rules.values.map { ($0.topic, $0.longestWindow) }, uniquingKeysWith: min)
        now = max(scan.latest, heardAt ?? scan.latest)
    }

    /// What was over before this has nothing that is looked for.
    package var oldest: Timestamp { now - FrequencyCap.windowMax }

    /// From when on a run's pushes must be in the ledger; nil: nobody can tell.
    ///
    /// - Parameter cappedSince: from when on it was leased under caps.
    package mutating func since(_ cappedSince: Timestamp, _ run: Run) -> Timestamp? {
        guard let window = windows[run.definition.campaign.deviceTopic] else {
            faults.append(
                StoreFault(run: run.id, "it is leased under frequency caps, but no rule of its app is on record"))
            return nil
        }
        return max(cappedSince, now - window)
    }

    /// - Parameters:
    ///   - number: of the lease that the push was sent in.
    ///   - page: the row of the device.
    package mutating func check(run: Int64, device: Int64, number: Int, page: [CapPush]) {
        compared += 1
        guard !page.contains(where: { $0.device == device && $0.run == run && $0.number == number }) else { return }
        faults.append(
            StoreFault(
                run: run, device: device,
                "lease \(number) of it was sent and is not in the ledger of the frequency caps"))
    }
}
