package import Model

/// The audit log: each action with its actor, its time and its clock. Each method is one transaction.
package protocol AuditLog: Sendable {
    /// Compares the wall clock with the last reading, and records a step if the clock was set since. The step is
    /// recorded as an event, and for the silent budget, see ``RollingWindow``. Waits for a next attempt keep their
    /// length. The first process of a machine that sees the step records it. Each step is returned once, so that it is
    /// reported once.
    func noteClocks(_ reading: ClockReading, by actor: Actor) async throws -> ClockStep?

    /// Returns the steps of the wall clock that were noticed since a moment, oldest first.
    func clockSteps(since moment: Timestamp) async throws -> [ClockStep]

    /// Records an event that belongs to no other change.
    ///
    /// - Parameter files: the SHA-256 in hex of the files that the event is about, by path.
    func recordEvent(
        kind: EventKind, run: Int64?, actor: Actor, detail: String, files: [String: String], now: Timestamp
    ) async throws

    /// Returns the latest `limit` events, oldest first.
    ///
    /// - Parameter run: `nil` for all events, including those without a run.
    func events(run: Int64?, since: Timestamp?, limit: Int) async throws -> [StoreEvent]

    /// Returns a page of the matching events, newest first. Events of one run, actor or kind are found by index.
    ///
    /// - Parameter id: the cursor of the previous page; `nil` for the first page.
    func events(_ filter: EventFilter, before id: Int64?, limit: Int) async throws -> EventPage
}

extension AuditLog {
    package func recordEvent(kind: EventKind, run: Int64?, actor: Actor, detail: String, now: Timestamp) async throws {
        try await recordEvent(kind: kind, run: run, actor: actor, detail: detail, files: [:], now: now)
    }

    /// Returns the events of one run, oldest first.
    package func events(run: Int64) async throws -> [StoreEvent] {
        try await events(run: run, since: nil, limit: .max)
    }
}

/// One event of the audit log.
package struct StoreEvent: Hashable, Sendable {
    /// The number of the event. A later event has a greater number, also if the clock was set.
    package var id: Int64
    package var at: Timestamp
    /// The raw value of an ``EventKind``. A kind that a later version wrote is kept unchanged.
    package var kind: String
    package var run: Int64?
    package var campaign: String?
    /// The actor that caused the event: a person, the scheduler, or the process that owns a run.
    package var actor: Actor
    package var detail: String
    /// The SHA-256 in hex of the files that the event is about, by path.
    package var files: [String: String]

    package init(
        id: Int64, at: Timestamp, kind: String, run: Int64?, campaign: String?, actor: Actor, detail: String,
        files: [String: String]
    ) {
        self.id = id
        self.at = at
        self.kind = kind
        self.run = run
        self.campaign = campaign
        self.actor = actor
        self.detail = detail
        self.files = files
    }
}
