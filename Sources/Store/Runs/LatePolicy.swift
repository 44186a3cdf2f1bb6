package import Model

/// The rule that decides whether a run without a sender may still continue automatically. It is evaluated when a sender
/// is about to claim the run, in the transaction of the claim.
///
/// A run is late when its remaining deliveries have been due for longer than `late_by_max` without a sender. The time
/// counts from the later of two moments: when the first of them was due, and the owner's last heartbeat. So a run is
/// not late if it is paced over hours and claimed seconds after a crash. A run whose next wave is still to come, or
/// that a stage holds, is not late either. For a run that waited for a person, the time counts from the person's
/// decision.
package struct LatePolicy: Hashable, Sendable {
    /// The deliveries that a frozen run still has to send.
    package struct Remaining: Hashable, Sendable {
        /// The number of deliveries without an outcome whose time has come.
        package var due: Int
        /// When the first of the deliveries that wait for their time is due: a wave's start, the end of quiet hours, a
        /// retry. `nil` if some have no such time: they have been due since the run was.
        package var firstDue: Timestamp?
        /// The time until which a stage holds back all of them; `nil` if no stage does.
        package var heldUntil: Timestamp?

        /// The number of ``due`` deliveries that were leased and released. They wait since their release, but were due
        /// before.
        package var returned: Int

        package init(due: Int, firstDue: Timestamp?, heldUntil: Timestamp? = nil, returned: Int = 0) {
            self.due = due
            self.firstDue = firstDue
            self.heldUntil = heldUntil
            self.returned = returned
        }
    }

    /// The tolerance for recorded times in the future. A time further ahead was recorded by a clock that was wrong.
    private static let aheadMax: Duration = .seconds(60)

    private let run: Run
    private let lateByMax: Duration

    package init(_ run: Run) {
        self.run = run
        lateByMax = run.definition.campaign.lateByMax
    }

    /// Returns `nil` if the run may continue. A test run always may.
    ///
    /// - Parameter remaining: returns `nil` if every delivery has its outcome. It is called only for a frozen run that
    ///   had no sender for so long that it could be late, because it reads the run's waiting deliveries.
    package func lateness(at now: Timestamp, remaining: () throws -> Remaining?) rethrows -> Lateness? {
        let unattendedSince = unattendedSince(at: now)
        guard !run.isTest, now - unattendedSince > lateByMax else { return nil }
        let dueFrom: Timestamp
        var due: Int?
        if run.isFrozen {
            guard let remaining = try remaining() else { return nil }
            var turn = remaining.firstDue ?? run.definition.plannedAt
            // An automatic attempt that reached no device releases its leases, which are due again from then on.
            if remaining.returned > 0, run.isHaltedAutomatically, let haltedAt = run.haltedAt {
                turn = min(turn, haltedAt)
            }
            dueFrom = max(turn, remaining.heldUntil ?? turn)
            due = remaining.due
        } else {
            dueFrom = unfrozenDueFrom
        }
        guard now - max(dueFrom, unattendedSince) > lateByMax else { return nil }
        return Lateness(
            dueFrom: dueFrom, lastSentAt: lastSentAt, due: due, audience: run.counts.audience, lateByMax: lateByMax
        )
    }

    /// The time since which the run has had no sender. A run is not late for the time before it was created. A time
    /// from a clock that was ahead is ignored, so the run may count as unattended since its first delivery was due.
    private func unattendedSince(at now: Timestamp) -> Timestamp {
        [run.createdAt, lastSentAt].compactMap(\.self).filter { $0 <= now + Self.aheadMax }.max()
            ?? Timestamp(milliseconds: 0)
    }

    /// The time of the last sending. Automatic attempts that reached no device do not count, so it is then the time of
    /// the first of these pauses.
    private var lastSentAt: Timestamp? { run.isHaltedAutomatically ? run.haltedAt ?? run.heartbeatAt : run.heartbeatAt }

    /// The time from which an unfrozen run is due. Until the freeze ends, the turn of each device is unknown, so this
    /// is the planned time. A run by each device's clock that was never started is due only at the last zone's turn.
    /// For the zones that it is too late for, `missed_zone` decides, as in a new run.
    private var unfrozenDueFrom: Timestamp {
        guard run.startedAt == nil, let wall = run.definition.wall else { return run.definition.plannedAt }
        let span = run.definition.campaign.schedule?.bestHour?.span(from: wall) ?? .zero
        return Timestamp(seconds: wall.seconds) + Timetable.lastOffset + span
    }
}

/// How late a run was found.
package struct Lateness: Hashable, Sendable {
    package var dueFrom: Timestamp
    /// When the owner's last heartbeat was; `nil` if the run never had an owner.
    package var lastSentAt: Timestamp?
    /// The number of deliveries whose time has come; `nil` if the audience is not frozen yet.
    package var due: Int?
    package var audience: Int
    package var lateByMax: Duration

    package init(dueFrom: Timestamp, lastSentAt: Timestamp?, due: Int?, audience: Int, lateByMax: Duration) {
        self.dueFrom = dueFrom
        self.lastSentAt = lastSentAt
        self.due = due
        self.audience = audience
        self.lateByMax = lateByMax
    }

    /// Returns the explanation for the person who decides.
    package func reason(run: Int64) -> String {
        let what = due.map { "\($0.grouped) of \(audience.grouped) were" } ?? "the run was"
        return "\(what) due from \(dueFrom.minute) UTC, and \(silence); late_by_max is "
            + "\(WrittenDuration.text(lateByMax)); `fanfare resume \(run)` sends \(due == nil ? "it" : "them"), "
            + "`fanfare cancel \(run)` ends the run"
    }

    private var silence: String {
        guard let lastSentAt else { return "no process has started sending" }
        let text = lastSentAt.minute
        // Show the day once if both are on the same day.
        let isSameDay = text.prefix(10) == dueFrom.minute.prefix(10)
        return "no process has sent since \(isSameDay ? String(text.dropFirst(11)) : text)"
    }
}
