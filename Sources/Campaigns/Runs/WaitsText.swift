package import Foundation
package import Model
package import Store

/// The reasons for which a run waits, in words, with times by the reader's own clock.
package struct WaitsText {
    private static let zonesShown = 2

    private let waits: RunWaits
    private let storeWait: StoreWait?
    private let now: Timestamp
    private let calendar: Calendar

    package init(_ waits: RunWaits, _ storeWait: StoreWait? = nil, now: Timestamp, zone: TimeZone = .current) {
        self.waits = waits
        self.storeWait = storeWait
        self.now = now
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        self.calendar = calendar
    }

    /// The sentences. A wait that affects every delivery comes first.
    package var sentences: [String] {
        [storeWait.map(text)].compactMap(\.self) + waits.holds.map(text) + waits.groups.map(text)
            + (waits.hasLater ? ["more deliveries wait for a later time"] : [])
    }

    /// The sentences about endpoints in trouble, as the sender reports them.
    package var holds: [String] { waits.holds.map(text) }

    /// `the store is locked by another program since 14:02:10: responses are kept, nothing new is sent`
    private func text(_ wait: StoreWait) -> String {
        let trouble =
            switch wait.reason {
            case .locked: "the store is locked by another program"
            case .diskFull: "there is no free disk space for the store or for the journal beside it"
            case .away: "the server of the store does not respond, or accepts no connection"
            case .refused: "the server of the store refuses the user or its password"
            case .failing: "the store's disk is failing, or its quota is used up"
            }
        return "\(trouble) (since \(text(wait.since))): responses are kept, nothing new is sent"
    }

    /// `backing off: api.push.apple.com responded 503 since 14:00:02, next try at 14:02:10`
    private func text(_ hold: EndpointHold) -> String {
        let host = hold.endpoint.hasSuffix(":443") ? String(hold.endpoint.dropLast(4)) : hold.endpoint
        if hold.isRetrying { return "APNs has been unreachable since \(text(hold.since)) (\(host)), retrying" }
        let answer = hold.status.map { "responded \($0)" } ?? "has not responded"
        return "backing off: \(host) \(answer) since \(text(hold.since)), next try at \(text(hold.nextTryAt))"
    }

    /// `12 wait for their retry at 14:02:10`
    private func text(_ group: RunWaits.Group) -> String {
        let count = (group.isMore ? "more than " : "") + group.deliveries.grouped
        let subject = "\(count) \(group.deliveries == 1 ? "waits" : "wait")"
        let (first, last) = (text(group.first), text(group.last))
        let time = first == last ? "at \(first)" : "from \(first) to \(last)"
        switch group.cause {
        case .retry: return "\(subject) for their retry \(time)"
        case .quietHours: return "\(subject) for their quiet hours to end \(time)"
        case .silentBudget: return "\(subject) for their silent budget \(time)"
        case .frequencyCap: return "\(subject) for a slot of a frequency cap; next check \(time)"
        case .wave:
            let zones = group.zones.isEmpty ? "" : " (\(group.zones.listed(atMost: Self.zonesShown)))"
            return "\(subject) for the wave \(time)\(zones)"
        }
    }

    /// `14:02:10`, without seconds if they are zero, and with the date if it is not today.
    private func text(_ moment: Timestamp) -> String {
        let parts = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: moment.date)
        func digits(_ number: Int?) -> String { (number ?? 0) < 10 ? "0\(number ?? 0)" : "\(number ?? 0)" }
        var text = "\(digits(parts.hour)):\(digits(parts.minute))"
        if let second = parts.second, second > 0 { text += ":\(digits(second))" }
        if calendar.isDate(moment.date, inSameDayAs: now.date) { return text }
        return "\(parts.year ?? 0)-\(digits(parts.month))-\(digits(parts.day)) \(text)"
    }
}

extension [String] {
    /// `a 5, b 3 and 12 more`.
    package func listed(atMost shown: Int) -> String {
        let rest = count - shown
        guard rest > 1 else { return joined(separator: ", ") }
        return prefix(shown).joined(separator: ", ") + " and \(rest.grouped) more"
    }
}

extension RunResult {
    /// `paused by ray (uid 7): wrong link`, `paused as late: 7 of 9 were due ...`.
    package var stateSummary: String {
        let cause: String
        if let pausedBy {
            cause = " by \(pausedBy)"
        } else {
            cause =
                switch halt.flatMap(RunHalt.init) {
                case .late: " as late"
                case .breaker: " by a breaker"
                case .volume: " by the volume brake"
                case .restored: " as restored"
                case .unsuccessful: " without success"
                case .unreachable: " because APNs cannot be reached, retrying"
                case .credential: " for its credential, retrying"
                case .stage, .approval, .grown, nil: ""
                }
        }
        return state + cause + (stateReason.map { ": \($0)" } ?? "")
    }
}
