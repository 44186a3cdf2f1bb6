package import Model
import Store

/// The devices that get nothing because their stage begins late: an earlier stage waits for responses, for its hold,
/// for a time zone or for the end of quiet hours.
package struct StageForecast: Hashable, Sendable {
    package enum Cause: Hashable, Sendable, CaseIterable {
        /// The pushes have expired before the stage can begin.
        case expired
        /// The stage begins in quiet hours that drop pushes.
        case droppedByQuietHours
        /// The stage begins in quiet hours that the pushes do not outlive.
        case expiredInQuietHours
    }

    /// The number of the stage, from 1.
    package var stage: Int
    /// The time at which the stage can begin: if every push of the earlier stages is accepted at once.
    package var beginsAt: Timestamp
    package var cause: Cause
    package var devices: Int
    /// The time zones of these devices, most devices first; empty in a run that does not follow each device's clock.
    package var zones: [String]

    /// Returns the stages with such devices, in order. A stage is listed once for each cause.
    static func all(
        _ definition: RunDefinition, _ stages: [PlannedStage], _ reach: Reach, _ waves: RecipientWaves?
    ) -> [StageForecast] {
        // The stage of a device at its own best hour is not counted.
        guard reach.bestHour == nil else { return [] }
        let quiet = QuietTimes(definition.campaign.schedule)
        var beginsAt = definition.plannedAt
        var found: [StageForecast] = []
        for stage in stages {
            let slices = Slice.all(stage, waves, definition.plannedAt)
            let outcomes = slices.map { $0.outcome(from: beginsAt, quiet, definition.expiry) }
            for cause in Cause.allCases {
                let lost = zip(slices, outcomes).filter { slice, outcome in
                    outcome == .lost(cause)
                        && slice.outcome(from: definition.plannedAt, quiet, definition.expiry).sentAt != nil
                }.map { slice, _ in slice }
                guard !lost.isEmpty else { continue }
                found.append(
                    StageForecast(
                        stage: stage.number, beginsAt: beginsAt, cause: cause,
                        devices: lost.reduce(0) { $0 + $1.devices }, zones: waves == nil ? [] : lost.map(\.zoneName)))
            }
            let sent = zip(slices, outcomes.map(\.sentAt))
            beginsAt = end(of: stage, sent, from: beginsAt) + (stage.stage.hold ?? .zero)
        }
        return found
    }

    /// Returns when the stage has enough responses.
    private static func end(
        of stage: PlannedStage, _ slices: some Sequence<(Slice, Timestamp?)>, from start: Timestamp
    ) -> Timestamp {
        var answers = 0
        var last = start
        let sent = slices.compactMap { slice, moment in moment.map { (slice.devices, $0) } }
        for (devices, moment) in sent.sorted(by: { $0.1 < $1.1 }) {
            last = max(last, moment)
            answers += devices
            if !stage.stage.passesAsWhole, answers >= stage.answersNeeded { break }
        }
        return last
    }

    private enum Outcome: Hashable {
        case sent(Timestamp)
        case lost(Cause)
        /// The campaign leaves out devices without a known time zone.
        case zoneUnknown

        var sentAt: Timestamp? { if case .sent(let moment) = self { moment } else { nil } }
    }

    /// The devices of a stage in one time zone.
    private struct Slice {
        var zone: String?
        var devices: Int
        var turn: Timestamp
        /// The start of their wave, from which their pushes expire; `nil` in a run without waves.
        var wave: Timestamp?

        var zoneName: String { zone ?? "no zone" }

        /// Most devices first.
        static func all(_ stage: PlannedStage, _ waves: RecipientWaves?, _ plannedAt: Timestamp) -> [Slice] {
            stage.devices.byZone.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.compactMap { name, devices in
                let zone = name.isEmpty ? nil : name
                guard let waves else { return Slice(zone: zone, devices: devices, turn: plannedAt) }
                guard case .at(let moment) = waves.turn(inZone: zone) else { return nil }
                return Slice(zone: zone, devices: devices, turn: moment, wave: moment)
            }
        }

        /// Returns what becomes of the pushes if their stage begins at a time, in the order in which a lease decides.
        func outcome(from start: Timestamp, _ quiet: QuietTimes?, _ expiry: Expiry) -> Outcome {
            let moment = max(start, turn)
            let expiresAt = expiry.moment(wave: wave)
            let outlives = { (time: Timestamp) in expiresAt.map { time < $0 } ?? true }
            guard outlives(moment) else { return .lost(.expired) }
            switch quiet?.state(inZone: zone, at: moment) {
            case nil, .awake: return .sent(moment)
            case .quiet(let end) where quiet?.policy == .defer:
                return outlives(end) ? .sent(end) : .lost(.expiredInQuietHours)
            case .quiet: return .lost(.droppedByQuietHours)
            case .zoneUnknown: return .zoneUnknown
            }
        }
    }

    /// `2,000 of 3,997 devices (Pacific/Auckland, Asia/Tokyo) would get nothing: ...`.
    package func summary(of all: Int) -> String {
        let shown = zones.prefix(4).joined(separator: ", ") + (zones.count > 4 ? ", ..." : "")
        return "\(devices.grouped) of \(all.counted("device"))\(shown.isEmpty ? "" : " (\(shown))") "
            + "would get nothing: \(reason)"
    }

    private var reason: String {
        switch cause {
        case .expired:
            "their pushes expire before the stage can begin at \(beginsAt.iso8601); write a longer expires_after, or let "
                + "the earlier stages end sooner"
        case .droppedByQuietHours:
            "the stage can begin at \(beginsAt.iso8601), in their quiet hours; let the earlier stages end sooner, or "
                + "write `policy: defer`"
        case .expiredInQuietHours:
            "the stage can begin at \(beginsAt.iso8601), in their quiet hours, and their pushes expire before these end; "
                + "write a longer expires_after, or let the earlier stages end sooner"
        }
    }
}
