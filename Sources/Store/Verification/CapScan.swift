import Model

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

    private let rules: [UInt32: CapRule]
    private var leased: Set<Place> = []
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
