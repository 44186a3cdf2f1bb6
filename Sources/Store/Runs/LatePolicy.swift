package import Model

/// Whether a run that nobody sends may still go on by itself: asked when somebody is about to take it, in the
/// transaction that would give it to them.
///
/// It is late when what it still owes has been due for longer than `late_by_max` with nobody sending it. The time
/// counts from the later of two moments: when the first of it was due, and when an owner was last heard of. So a run
/// that is paced over hours and taken over seconds after a crash is not late, and neither is one whose next wave is
/// still to come, or that one of its stages holds. What waited for a person counts from that person's word.
package struct LatePolicy: Hashable, Sendable {
    /// What a frozen run still has to send.
    package struct Owed: Hashable, Sendable {
        /// Deliveries without an outcome whose time has come.
        package var due: Int
        /// When the first of those that wait for their time is due: a wave's start, the end of quiet hours, a retry.
        /// Nil: some wait for nothing, their turn came with the run's.
        package var firstDue: Timestamp?
        /// Until when a stage holds back all of it; nil: none does.
        package var heldUntil: Timestamp?

        /// How many of ``due`` were leased and given back: they wait since then, and were due before.
        package var returned: Int

        package init(due: Int, firstDue: Timestamp?, heldUntil: Timestamp? = nil, returned: Int = 0) {
            self.due = due
            self.firstDue = firstDue
            self.heldUntil = heldUntil
            self.returned = returned
        }
    }

    /// Clocks of one machine are no further apart while it is in order.
    private static let aheadMax: Duration = .seconds(60)

    private let run: Run
    private let lateByMax: Duration

    package init(_ run: Run) {
        self.run = run
        lateByMax = run.definition.campaign.lateByMax
    }

    /// Nil: the run may go on. A test run always may.
    ///
    /// - Parameter owed: nil when every delivery has its outcome. Asked only of a frozen run that nobody has sent for so
    ///   long that it could be late at all: the answer costs a look at its waiting deliveries.
    package func lateness(at now: Timestamp, owed: () throws -> Owed?) rethrows -> Lateness? {
        let unattendedSince = unattendedSince(at: now)
        guard !run.isTest, now - unattendedSince > lateByMax else { return nil }
        let dueFrom: Timestamp
        var due: Int?
        if run.isFrozen {
            guard let owed = try owed() else { return nil }
            var turn = owed.firstDue ?? run.definition.plannedAt
            // An automatic attempt that reached nobody gives back what it leased, due again from then on.
            if owed.returned > 0, run.isHaltedAutomatically, let haltedAt = run.haltedAt { turn = min(turn, haltedAt) }
            dueFrom = max(turn, owed.heldUntil ?? turn)
            due = owed.due
        } else {
            dueFrom = unfrozenDueFrom
        }
        guard now - max(dueFrom, unattendedSince) > lateByMax else { return nil }
        return Lateness(
            dueFrom: dueFrom, lastSentAt: lastSentAt, due: due, audience: run.counts.audience, lateByMax: lateByMax
        )
    }

    /// A run is not late for the time before somebody decided to make it. What was written by a clock that was ahead
    /// says nothing: the run may have been left alone for as long as anything of it was due.
    private func unattendedSince(at now: Timestamp) -> Timestamp {
        [run.createdAt, lastSentAt].compactMap(\.self).filter { $0 <= now + Self.aheadMax }.max()
            ?? Timestamp(milliseconds: 0)
    }

    /// Automatic attempts that reached nobody are not sending: the time counts from the first of these pauses.
    private var lastSentAt: Timestamp? { run.isHaltedAutomatically ? run.haltedAt ?? run.heartbeatAt : run.heartbeatAt }

    /// While the audience is being written down nobody knows whose turn was when. A run by each device's clock that was
    /// never begun gives the zones it comes too late for to `missed_zone`, as a new one would, until the last zone's
    /// turn.
    private var unfrozenDueFrom: Timestamp {
        guard run.startedAt == nil, let wall = run.definition.wall else { return run.definition.plannedAt }
        return Timestamp(seconds: wall.seconds) + Timetable.lastOffset
    }
}

/// How late a run was found.
package struct Lateness: Hashable, Sendable {
    package var dueFrom: Timestamp
    /// When an owner was last heard of; nil: nobody ever had the run.
    package var lastSentAt: Timestamp?
    /// Deliveries whose time has come; nil: the audience is not written down yet.
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

    /// For the person who is to decide.
    package func reason(run: Int64) -> String {
        let what = due.map { "\($0.grouped) of \(audience.grouped) were" } ?? "it was"
        return "\(what) due from \(Self.text(dueFrom)) UTC on and \(silence), late_by_max is "
            + "\(WrittenDuration.text(lateByMax)); `fanfare resume \(run)` sends \(due == nil ? "it" : "them"), "
            + "`fanfare cancel \(run)` does not"
    }

    private var silence: String {
        guard let lastSentAt else { return "nobody has begun to send" }
        let text = Self.text(lastSentAt)
        // The day once, where it is the same.
        let isSameDay = text.prefix(10) == Self.text(dueFrom).prefix(10)
        return "nobody has sent since \(isSameDay ? String(text.dropFirst(11)) : text)"
    }

    /// `2026-11-22 09:00`.
    private static func text(_ moment: Timestamp) -> String {
        String(moment.iso8601.prefix(16).replacing("T", with: " "))
    }
}
