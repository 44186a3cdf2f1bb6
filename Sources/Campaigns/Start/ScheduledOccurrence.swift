package import Model
package import Store

/// An occurrence of a campaign's schedule that somebody named, to be sent as the daemon would.
package struct ScheduledOccurrence {
    package let definition: RunDefinition
    private let occurrence: Occurrence

    /// Nil when the name is none of the schedule's.
    package init?(_ definition: RunDefinition, named name: String?) {
        guard let name, let timetable = definition.campaign.schedule.flatMap(Timetable.init),
            let occurrence = timetable.occurrence(named: name)
        else { return nil }
        self.occurrence = occurrence
        self.definition = definition.planned(for: occurrence)
    }

    /// Refuses one that is not due yet, and one that is too late, which is put on record as missed.
    package func check(in store: any RunLog, by actor: Actor, now: Timestamp) async throws {
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
            definition, occurrence: occurrence.key, state: .missed, reason: reason, now: now, by: actor)
        throw Failure(
            .refused,
            "occurrence \(occurrence.key) of \(campaign) is missed: \(reason); leave out --occurrence to send now"
        )
    }
}

extension Occurrence {
    /// Why it is missed, in words.
    package func lateness(at now: Timestamp) -> String {
        "found \(WrittenDuration.text(now - lastStartsAt)) after its time, late_by_max is "
            + WrittenDuration.text(missedAfter - lastStartsAt)
    }
}
