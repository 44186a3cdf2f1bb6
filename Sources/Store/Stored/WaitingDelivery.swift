package import Model

/// A delivery whose time has not come, as ``RunWaits`` reports it.
package struct WaitingDelivery: Sendable {
    /// The maximum number of deliveries that are read, nearest first. Other deliveries are not read. They are only
    /// counted, and only if they wait for the last moment that was read.
    package static let readMax = 1000
    /// The limit of the count of deliveries that wait for one moment. It bounds the work, because a live page queries
    /// the waits every second.
    package static let countMax = 10_000

    package var moment: Timestamp
    package var cause: RunWaits.Cause
    package var zone: String?

    /// - Parameter reason: the delivery's stored reason, which is the cause of its wait.
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

/// The nearest waiting deliveries of one environment, and the known facts about those after them.
package struct NearestWaiting: Sendable {
    fileprivate let entries: [WaitingDelivery]
    /// The number of the environment's deliveries that wait for the last moment among the entries. `nil` if all of them
    /// were read.
    fileprivate let atLast: Int?
    /// Whether other deliveries of the environment wait for a later moment than any entry.
    fileprivate let hasLater: Bool

    /// - Parameters:
    ///   - entries: at most ``WaitingDelivery/readMax``, in order of their moments.
    ///   - count: the number of deliveries that wait for the last of these moments, up to
    ///     ``WaitingDelivery/countMax`` and one more. It also gives the number that waits for a later moment, up to 1.
    ///     It is called only if there may be more than were read.
    package init(
        _ entries: [WaitingDelivery], count: (Timestamp) throws -> (atMoment: Int, later: Int)
    ) rethrows {
        self.entries = entries
        guard entries.count == WaitingDelivery.readMax, let last = entries.last else {
            atLast = nil
            hasLater = false
            return
        }
        let behind = try count(last.moment)
        atLast = behind.atMoment
        hasLater = behind.later > 0
    }
}

extension RunWaits {
    /// Merges the known facts of all environments. An environment with more deliveries than were read is known only up
    /// to its last moment. Later deliveries of the other environments are left out, so that each count covers all
    /// environments.
    package init(_ environments: [NearestWaiting]) {
        self.init()
        let completeThrough = environments.filter(\.hasLater).compactMap(\.entries.last?.moment).min()
        for environment in environments {
            let shown = environment.entries.filter { entry in completeThrough.map { entry.moment <= $0 } ?? true }
            add(shown)
            if shown.count == environment.entries.count { addBehind(environment) }
        }
        hasLater = completeThrough != nil
        groups.sort { ($0.first, $0.last) < ($1.first, $1.last) }
    }

    private mutating func add(_ entries: [WaitingDelivery]) {
        for entry in entries { add(entry.cause, at: entry.moment) }
        addZones(entries)
    }

    /// Adds the deliveries that wait for the last moment that was read, and were not read themselves.
    private mutating func addBehind(_ environment: NearestWaiting) {
        guard let atLast = environment.atLast, let last = environment.entries.last else { return }
        let atMoment = environment.entries.filter { $0.moment == last.moment }
        let all = min(atLast, WaitingDelivery.countMax)
        guard all > atMoment.count else { return }
        let causes = Set(atMoment.map(\.cause))
        for cause in causes {
            // If there are several causes, the cause of the other deliveries is not known.
            let index = add(cause, at: last.moment, causes.count == 1 ? all - atMoment.count : 0)
            groups[index].isMore = groups[index].isMore || causes.count > 1 || atLast > all
        }
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
