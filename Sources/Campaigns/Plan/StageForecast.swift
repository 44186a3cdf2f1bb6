package import Model
import Store

/// The devices whose pushes expire before their stage can begin, because an earlier stage waits for responses, for its
/// hold, for a time zone or for the end of quiet hours.
package struct StageForecast: Hashable, Sendable {
    /// The number of the stage, from 1.
    package var stage: Int
    /// The time at which the stage can begin: if every push of the earlier stages is accepted at once.
    package var beginsAt: Timestamp
    /// The devices of the stage whose pushes have expired by then.
    package var expired: Int
    /// The time zones of these devices, most devices first; empty in a run that does not follow each device's clock.
    package var zones: [String]

    /// Returns the stages with such devices, in order.
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
            let sent = slices.map { $0.sent(from: beginsAt, quiet, definition.expiry) }
            let expired = zip(slices, sent).filter { slice, moment in
                moment == nil && slice.sent(from: definition.plannedAt, quiet, definition.expiry) != nil
            }.map { slice, _ in slice }
            if !expired.isEmpty {
                found.append(
                    StageForecast(
                        stage: stage.number, beginsAt: beginsAt, expired: expired.reduce(0) { $0 + $1.devices },
                        zones: waves == nil ? [] : expired.map(\.zoneName)))
            }
            beginsAt = end(of: stage, zip(slices, sent), from: beginsAt) + (stage.stage.hold ?? .zero)
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

        /// Returns when the pushes are sent if their stage begins at a time; `nil` if they are not.
        func sent(from start: Timestamp, _ quiet: QuietTimes?, _ expiry: Expiry) -> Timestamp? {
            var moment = max(start, turn)
            switch quiet?.state(inZone: zone, at: moment) {
            case nil, .awake: break
            case .quiet(let end) where quiet?.policy == .defer: moment = end
            case .quiet, .zoneUnknown: return nil
            }
            guard let end = expiry.moment(wave: wave) else { return moment }
            return moment < end ? moment : nil
        }
    }

    /// `2,000 of 3,997 devices (Pacific/Auckland, Asia/Tokyo) would get nothing: ...`.
    package func summary(of devices: Int) -> String {
        let shown = zones.prefix(4).joined(separator: ", ") + (zones.count > 4 ? ", ..." : "")
        return "\(expired.grouped) of \(devices.counted("device"))\(shown.isEmpty ? "" : " (\(shown))") "
            + "would get nothing: their pushes expire before the stage can begin at \(beginsAt.iso8601); write a longer "
            + "expires_after, or let the earlier stages end sooner"
    }
}
