import Foundation
import Model
import Store
import Daemon

/// An occurrence of a campaign's schedule that somebody named, to be sent as the daemon would.
struct ScheduledOccurrence {
    let definition: RunDefinition
    private let occurrence: Occurrence

    /// Nil when the name is none of the schedule's.
    init?(_ definition: RunDefinition, named name: String?) {
        guard let name, let timetable = definition.campaign.schedule.flatMap(Timetable.init),
            let occurrence = timetable.occurrence(named: name)
        else { return nil }
        self.occurrence = occurrence
        self.definition = definition.planned(for: occurrence)
    }

    /// Refuses one that is not due yet, and one that is too late, which is put on record as missed.
    func check(in store: any AllRoles, now: Timestamp) async throws {
        let campaign = definition.campaign.name
        guard try await store.run(campaign: campaign, occurrence: occurrence.key) == nil else { return }
        guard occurrence.startsAt <= now else {
            throw Failure(
                .tryAgain,
                "occurrence \(occurrence.key) of \(campaign) starts at \(occurrence.startsAt.iso8601); leave out "
                    + "--occurrence to send now")
        }
        guard now > occurrence.missedAfter else { return }
        let reason = occurrence.lateness(at: now)
        _ = try await store.createEndedRun(
            definition, occurrence: occurrence.key, state: .missed, reason: reason, now: now, by: ThisProcess.actor)
        throw Failure(
            .refused,
            "occurrence \(occurrence.key) of \(campaign) is missed: \(reason); leave out --occurrence to send now"
        )
    }
}
