package import Model

/// The mark that a file is a copy of a store: `fanfare backup` writes it into every copy.
package struct BackupMark: Hashable, Sendable, Codable {
    package var madeAt: Timestamp

    package init(madeAt: Timestamp) { self.madeAt = madeAt }
}

/// The time between a backup and its restore. The store has no record of what was sent in this time.
package struct RestoreGap: Hashable, Sendable, Codable {
    /// The key of this record among the facts of a store.
    package static let key = "restored"
    private static let leapMin: Int64 = 1_000_000
    private static let leapMax: Int64 = 1 << 40

    package var madeAt: Timestamp
    package var restoredAt: Timestamp

    package init(madeAt: Timestamp, restoredAt: Timestamp) {
        self.madeAt = madeAt
        self.restoredAt = restoredAt
    }

    /// Returns how many numbers of a table to skip, so that no number of the gap is used again.
    ///
    /// Devices and leases may come by the thousand in each second. People read and type all other numbers, so fewer of
    /// these are skipped.
    package func leap(of table: String) -> Int64 {
        let passed = max(1, (restoredAt - madeAt).wholeMilliseconds)
        let numbers = ["device", "lease"].contains(table) ? passed : passed / 1000 + 1
        return Self.leapMin + min(numbers, Self.leapMax)
    }

    /// Returns why an occurrence without a run may not start automatically: it may have been sent before the restore.
    /// Returns `nil` if it was not due yet.
    package func refusal(startsAt: Timestamp, campaign: String) -> String? {
        guard startsAt <= restoredAt else { return nil }
        return
            "it may have been sent already, because the store is a backup from \(madeAt.iso8601), restored at "
            + "\(restoredAt.iso8601); check what was sent in between, then send it with `fanfare run \(campaign)`, or "
            + "leave it"
    }

    /// Returns whether the gap reaches into the period that `now` is in.
    ///
    /// - Parameter period: names the period of a moment.
    package func reaches(into period: (Timestamp) -> String, at now: Timestamp) -> Bool {
        now < restoredAt || period(restoredAt) == period(now)
    }
}

/// What happens to a run that was open in a backup, when the backup becomes the store.
///
/// The store does not know what was sent after the backup. A run that would continue automatically could send all of it
/// twice, so it waits for a person. A run that waits for a person already may have been continued after the backup.
/// So a person confirms the gap first, and the run then waits as before.
package struct RestorePolicy: Sendable {
    private let gap: RestoreGap

    package init(_ gap: RestoreGap) { self.gap = gap }

    /// Returns the pause of an open run, with its reason. `nil` for a run that nothing can continue.
    ///
    /// - Parameter known: what an earlier restore recorded of the run.
    package func hold(_ run: Run, known: RestoredRun?) -> (restored: RestoredRun, reason: String)? {
        guard !run.state.isFinal, run.halt != .grown else { return nil }
        var gap = gap
        if let known { gap.madeAt = min(known.gap.madeAt, gap.madeAt) }
        var restored = RestoredRun(gap: gap)
        if run.state == .paused, !run.isHaltedAutomatically {
            restored.earlier =
                run.halt == .restored
                ? known?.earlier
                : RestoredRun.Pause(halt: run.halt, pausedBy: run.pausedBy, reason: run.stateReason)
        }
        return (restored, reason(run, restored))
    }

    private func reason(_ run: Run, _ restored: RestoredRun) -> String {
        let found =
            "the store is a backup from \(restored.gap.madeAt.iso8601), and \(left(run)) may have gone out since"
        let end = "`fanfare cancel \(run.id)` ends the run"
        guard let earlier = restored.earlier else {
            return "\(found); `fanfare resume \(run.id)` sends what was open in the backup, \(end)"
        }
        return
            "\(found); `fanfare resume \(run.id)` confirms this and sends nothing, \(end). After the confirmation the "
            + "run waits as in the backup: \(earlier.summary)"
    }

    private func left(_ run: Run) -> String {
        let open = run.counts.pending + run.counts.leased
        return open == 0 ? "all of its deliveries" : "any of \(open.counted("delivery", "deliveries"))"
    }
}

/// A run that was open in a restored backup.
package struct RestoredRun: Hashable, Sendable, Codable {
    /// A pause that only a person ends.
    package struct Pause: Hashable, Sendable, Codable {
        package var halt: RunHalt?
        package var pausedBy: String?
        package var reason: String?

        package init(halt: RunHalt?, pausedBy: String?, reason: String?) {
            self.halt = halt
            self.pausedBy = pausedBy
            self.reason = reason
        }

        /// `paused by anna: wrong link`.
        package var summary: String {
            let who = pausedBy.map { "paused by \($0)" } ?? halt.map { "paused, \($0.rawValue)" } ?? "paused"
            return who + (reason.map { ": \($0)" } ?? "")
        }
    }

    package var gap: RestoreGap
    /// The pause that the run returns to when a person has confirmed the gap. `nil` if the run then continues.
    package var earlier: Pause?

    package init(gap: RestoreGap, earlier: Pause? = nil) {
        self.gap = gap
        self.earlier = earlier
    }

    /// Returns the reason of a later pause, so that the person who ends it knows of the gap.
    package func reason(_ reason: String?) -> String {
        let note =
            "the run comes from a backup: what it sent between \(gap.madeAt.iso8601) and \(gap.restoredAt.iso8601) "
            + "is unknown"
        guard let reason else { return note }
        return reason.contains(note) ? reason : "\(reason); \(note)"
    }
}

/// A store that was found to be a restored backup, and what became of its open runs.
package struct RestoredStore: Hashable, Sendable {
    package var madeAt: Timestamp
    package var restoredAt: Timestamp
    /// The open runs, oldest first, each of which now waits for a person.
    package var runs: [Run]
    /// The names of the access tokens that work now, some of which may have been revoked since the copy was made.
    package var tokens: [String]

    package init(madeAt: Timestamp, restoredAt: Timestamp, runs: [Run], tokens: [String] = []) {
        self.madeAt = madeAt
        self.restoredAt = restoredAt
        self.runs = runs
        self.tokens = tokens
    }

    private static let tokensShown = 20

    /// The part of the summary about access tokens that are valid again; empty if there are none.
    private var tokenSummary: String {
        guard !tokens.isEmpty else { return "" }
        let rest = tokens.count - Self.tokensShown
        let names = tokens.prefix(Self.tokensShown).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
        return
            ". These access tokens are valid again, even if revoked since: \(names); revoke again every token revoked "
            + "since \(madeAt.iso8601) (`fanfare tokens revoke NAME`)"
    }

    /// The summary for a person, and for the audit log.
    package var summary: String {
        let names = runs.map { "\($0.id) (\($0.campaign)/\($0.occurrence))" }.joined(separator: ", ")
        let what =
            switch runs.count {
            case 0: "no run was open then"
            case 1: "run \(names) was open then and is paused; see `fanfare status`, then resume or cancel it"
            default: "runs \(names) were open then and are paused; see `fanfare status`, then resume or cancel each"
            }
        let waiting =
            runs.isEmpty
            ? "" : ". A run that waited for a person in the backup waits for that person again after `resume`"
        return
            "this store is a backup from \(madeAt.iso8601) and lacks what was sent since: \(what)\(waiting). Occurrences "
            + "and feed items between then and \(restoredAt.iso8601) start nothing; plans that waited for signatures "
            + "must be requested again. Background pushes, and pushes under a frequency cap, wait until the whole "
            + "window of their budget or cap has passed since the restore, or are left out; `run --occurrence-by` "
            + "refuses a period that began before the restore. All page sessions, sign-in links and "
            + "invitations have ended; sign in or invite again"
            + tokenSummary
    }

    /// Throws if this process found the run open in a restored backup. The person has not yet seen what may have been
    /// sent.
    package func requireSeen(_ run: Int64) throws {
        guard runs.contains(where: { $0.id == run }) else { return }
        throw RestoredUnseen(run: run, madeAt: madeAt)
    }
}

/// A person resumed a run before they could know that its store is a restored backup.
package struct RestoredUnseen: Error, Hashable, Sendable, CustomStringConvertible {
    package var run: Int64
    package var madeAt: Timestamp

    package var description: String {
        "run \(run) was not resumed: its store is a restored backup from \(madeAt.iso8601), and what was sent since is "
            + "not in it; see `fanfare status \(run)`, then run the same command again, or run `fanfare cancel \(run)`"
    }
}
