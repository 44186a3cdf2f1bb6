package import Model

/// A delivery whose time has not come, as far as ``RunWaits`` tells of it.
package struct WaitingDelivery: Sendable {
    /// So many of the nearest are read; of the others it is only counted how many wait for the last moment among these.
    package static let readMax = 1000
    /// Those that wait for one moment are counted up to this number: a live page asks every second.
    package static let countMax = 10_000

    package var moment: Timestamp
    package var cause: RunWaits.Cause
    package var zone: String?

    /// - Parameter reason: what stands with the delivery where a reason would.
    package init(moment: Timestamp, reason: String?, isWaveStart: Bool, zone: String?) {
        self.moment = moment
        cause =
            switch reason {
            case nil where isWaveStart: .wave
            case SuppressionReason.quietHours.rawValue: .quietHours
            case SuppressionReason.silentBudget.rawValue: .silentBudget
            case SuppressionReason.frequencyCap.rawValue: .frequencyCap
            default: .retry
            }
        self.zone = zone
    }
}

extension RunWaits {
    /// Adds those of one environment.
    ///
    /// - Parameters:
    ///   - nearest: at most ``WaitingDelivery/readMax``, in order of their moments.
    ///   - count: how many wait for the last moment among them, up to ``WaitingDelivery/countMax`` and one more, and
    ///     whether any wait for a later one; asked where there may be more than were read.
    package mutating func add(
        _ nearest: [WaitingDelivery], count: (Timestamp) throws -> (atMoment: Int, later: Int)
    ) rethrows {
        guard let last = nearest.last else { return }
        for entry in nearest { add(entry.cause, at: entry.moment) }
        if nearest.count == WaitingDelivery.readMax {
            let (counted, later) = try count(last.moment)
            let all = min(counted, WaitingDelivery.countMax)
            let index = add(last.cause, at: last.moment, all - nearest.count { $0.moment == last.moment })
            groups[index].isMore = groups[index].isMore || counted > all
            hasLater = hasLater || later > 0
        }
        addZones(nearest)
    }

    private mutating func addZones(_ entries: [WaitingDelivery]) {
        for index in groups.indices where groups[index].cause == .wave {
            var devices: [String: Int] = [:]
            for entry in entries where entry.cause == .wave && entry.moment == groups[index].first {
                if let zone = entry.zone { devices[zone, default: 0] += 1 }
            }
            let zones = devices.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
            groups[index].zones += zones.filter { !groups[index].zones.contains($0) }
        }
    }

    /// Returns the index of the group.
    @discardableResult
    private mutating func add(_ cause: Cause, at moment: Timestamp, _ count: Int = 1) -> Int {
        let index = groups.firstIndex { $0.cause == cause && (cause != .wave || $0.first == moment) }
        guard let index else {
            groups.append(Group(cause: cause, deliveries: count, first: moment, last: moment))
            return groups.endIndex - 1
        }
        groups[index].deliveries += count
        groups[index].first = min(groups[index].first, moment)
        groups[index].last = max(groups[index].last, moment)
        return index
    }
}
