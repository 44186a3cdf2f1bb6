package import Model

/// What apps report about pushes, and about what people do.
///
/// Events are kept until ``removeFeedback(receivedBefore:now:)``, and are removed with their device. The counts of a
/// run stay.
package protocol FeedbackLog: Sendable {
    /// Records events in one transaction, and returns the verdict on each, in order. They are durable on return.
    ///
    /// An event that is already recorded changes nothing: the same event about the same push, or an event with the
    /// same id of the same device.
    func recordFeedback(_ events: [FeedbackEvent]) async throws -> [FeedbackVerdict]

    /// Stores events that are recorded later, and returns the verdict on each, in order. They are durable on return.
    /// While a run is sent, this costs the store much less than ``recordFeedback(_:)``.
    ///
    /// An event counts once, however often it is set aside: the verdict of a repeated one is `waiting`, too.
    func setFeedbackAside(_ events: [FeedbackEvent]) async throws -> [FeedbackVerdict]

    /// Returns how many events wait to be recorded; `nil` if none do.
    func waitingFeedback() async throws -> WaitingFeedback?

    /// Records the events that wait now. A crash before its end loses no event and counts none twice. Several processes
    /// may do this at the same time. Returns the rows that cannot be read. They stay.
    ///
    /// - Parameter tally: receives the verdicts of each transaction, after it. Only the process that recorded an event
    ///   first gets `recorded` for it.
    @discardableResult
    func recordWaitingFeedback(tally: @Sendable ([FeedbackTally: Int]) -> Void) async throws -> [Int64]

    /// Deletes the events of a device that wait now. Records no others.
    func forgetWaitingFeedback(of device: Int64) async throws

    /// Returns the counts of a run's events. Of each kind, at most some dozen names are kept. Events with other names
    /// are counted together as `other`.
    func feedbackCounts(ofRun run: Int64) async throws -> [FeedbackCell]

    /// Returns how many devices opened the accepted pushes of some runs, by run. Runs without such opens are left out.
    func openTotals(ofRuns runs: [Int64]) async throws -> [Int64: Int]

    /// Compares what the devices of a run did that got it with what the held-out devices did. Every device of the
    /// frozen audience counts, whatever became of its push. Reads all deliveries of the run once.
    ///
    /// - Parameter goals: the events, and the times within which they count.
    func feedbackArms(ofRun run: Int64, _ goals: [FeedbackGoal]) async throws -> [FeedbackGoal: FeedbackArms]

    /// Hands out events in batches, in order of receipt.
    func feedback(
        receivedIn range: Range<Timestamp>, batch: @escaping @Sendable ([StoredFeedback]) throws -> Void
    ) async throws

    /// Returns when the first event that is kept was received, or `nil` if there is none.
    func firstFeedback() async throws -> Timestamp?

    /// Replaces the secret with which an installation reports by itself. Returns `false` if there is no such device.
    ///
    /// - Parameter hash: the hash of the secret. The store never has the secret.
    func setInstallationSecret(hash: [UInt8], of device: Int64, now: Timestamp) async throws -> Bool

    /// Returns the installation that has a secret, or `nil` if none has it.
    func installation(secretHash: [UInt8]) async throws -> ReportingInstallation?

    /// Deletes the events that were received before a moment, some thousand per transaction. Returns their number.
    func removeFeedback(receivedBefore moment: Timestamp, now: Timestamp) async throws -> Int

    /// Returns the latest deletion by ``removeFeedback(receivedBefore:now:)``, or `nil` if it has deleted nothing yet.
    func feedbackRemoval() async throws -> FeedbackRemoval?
}

/// The deletion of events past their retention.
package struct FeedbackRemoval: Hashable, Sendable {
    /// The newest receipt of all events that were deleted, also by earlier deletions.
    package var receivedUntil: Timestamp
    /// The latest deletion was to delete events that were received before this time.
    package var receivedBefore: Timestamp
    package var removedAt: Timestamp

    package init(receivedUntil: Timestamp, receivedBefore: Timestamp, removedAt: Timestamp) {
        self.receivedUntil = receivedUntil
        self.receivedBefore = receivedBefore
        self.removedAt = removedAt
    }

    /// Whether events may be missing that happened from a moment on. Otherwise none of them was deleted.
    package func mayLack(eventsSince start: Timestamp) -> Bool { receivedUntil >= start }
}

extension FeedbackLog {
    /// Does the same without a tally.
    @discardableResult
    package func recordWaitingFeedback() async throws -> [Int64] { try await recordWaitingFeedback { _ in } }
}

/// One report of an app.
package struct FeedbackEvent: Hashable, Sendable {
    package enum Source: Hashable, Sendable {
        /// The push that the event is about, from its reference.
        case push(run: Int64, device: Int64)
        case installation(String, topic: String)
        /// A device of the store, without a push.
        case device(Int64)
    }

    package var source: Source
    /// The device that the push was sent to, if it was merged into that of ``source`` later. Otherwise `nil`.
    package var sentTo: Int64?
    package var kind: FeedbackKind
    /// The name of an action or a conversion. Empty for other kinds.
    package var name: String
    /// The id that the device made, as two halves of a UUID.
    package var id: (high: Int64, low: Int64) {
        get { (idHigh, idLow) }
        set { (idHigh, idLow) = newValue }
    }
    private var idHigh: Int64
    private var idLow: Int64
    /// The value of a conversion, in millionths.
    package var valueMicros: Int64?
    /// When it happened, by the server's clock.
    package var at: Timestamp
    package var receivedAt: Timestamp

    package init(
        source: Source, kind: FeedbackKind, name: String = "", id: (high: Int64, low: Int64), valueMicros: Int64? = nil,
        at: Timestamp, receivedAt: Timestamp
    ) {
        self.source = source
        self.kind = kind
        self.name = name
        (idHigh, idLow) = id
        self.valueMicros = valueMicros
        self.at = at
        self.receivedAt = receivedAt
    }
}

/// Events that wait to be recorded.
package struct WaitingFeedback: Hashable, Sendable {
    package var events: Int
    /// When the first of them was received.
    package var since: Timestamp

    package init(events: Int, since: Timestamp) {
        self.events = events
        self.since = since
    }
}

/// What became of an event.
package enum FeedbackVerdict: String, Hashable, Sendable {
    case recorded
    /// It was set aside, and is recorded later.
    case waiting
    /// It was recorded before.
    case repeated
    /// The store has no such device, or no longer.
    case unknownDevice = "unknown_device"
    /// The store has no such run, or the run did not include the device.
    case unknownPush = "unknown_push"
}

/// A kind of events with the same result.
package struct FeedbackTally: Hashable, Sendable {
    package enum Result: String, Hashable, Sendable, CaseIterable {
        case recorded, repeated, rejected
    }

    /// `nil` for events that cannot be read.
    package var kind: FeedbackKind?
    package var result: Result

    package init(kind: FeedbackKind?, result: Result) {
        self.kind = kind
        self.result = result
    }

    /// Returns `nil` for an event that waits: its result is not known before it is recorded.
    package init?(_ kind: FeedbackKind, _ verdict: FeedbackVerdict) {
        switch verdict {
        case .recorded: self.init(kind: kind, result: .recorded)
        case .repeated: self.init(kind: kind, result: .repeated)
        case .unknownDevice, .unknownPush: self.init(kind: kind, result: .rejected)
        case .waiting: return nil
        }
    }
}

/// The number of a run's events of one kind.
package struct FeedbackCell: Hashable, Sendable {
    /// The name of the events whose own names are not kept.
    package static let otherName = "other"

    package var kind: FeedbackKind
    package var name: String
    /// An index into the campaign's variants; `nil` if there are none.
    package var variant: Int?
    /// An index into the locales of the template; `nil` if nothing is localized.
    package var locale: Int?
    /// The time since the push was accepted, in minutes, see ``FeedbackMinute``. `nil` if APNs did not accept the push,
    /// or its outcome is unknown: such a push is in no share of the accepted ones.
    package var minute: Int?
    package var events: Int
    package var valueMicros: Int64

    package init(
        kind: FeedbackKind, name: String, variant: Int?, locale: Int?, minute: Int?, events: Int, valueMicros: Int64
    ) {
        self.kind = kind
        self.name = name
        self.variant = variant
        self.locale = locale
        self.minute = minute
        self.events = events
        self.valueMicros = valueMicros
    }
}

/// The minutes since a push by which events are counted: each minute of the first two hours, then every ten minutes of
/// the first day, then hours.
package enum FeedbackMinute {
    private static let exactMax = 120
    private static let tensMax = 1440
    /// Later events count in the last hour of a week.
    package static let last = 7 * 1440 - 60

    /// Returns the first minute of the interval that contains a time. A time before the push counts as 0: clocks of
    /// devices are not exact.
    package static func of(_ time: Duration) -> Int {
        let minute = max(0, Int(time.components.seconds / 60))
        if minute < exactMax { return minute }
        if minute < tensMax { return minute / 10 * 10 }
        return min(last, minute / 60 * 60)
    }

    /// Returns the length of the interval that begins at a minute, in minutes.
    package static func width(at minute: Int) -> Int { minute < exactMax ? 1 : minute < tensMax ? 10 : 60 }
}

/// An event of a person by which a run is judged.
package struct FeedbackGoal: Hashable, Sendable {
    package var kind: FeedbackKind
    package var name: String
    /// The time after the start of the run, or of the device's wave, within which an event counts.
    package var within: Duration

    package init(kind: FeedbackKind, name: String = "", within: Duration) {
        self.kind = kind
        self.name = name
        self.within = within
    }
}

/// What the devices of a run did, by arm.
package struct FeedbackArms: Hashable, Sendable {
    /// The devices of one arm, and those that did it at least once.
    package struct Arm: Hashable, Sendable, Codable {
        package var devices = 0
        package var reached = 0
        package var valueMicros: Int64 = 0

        package init() {}
    }

    package var treated = Arm()
    package var heldOut = Arm()
    /// The treated devices by variant. Empty without variants.
    package var variants: [Arm] = []
    /// The treated devices of a run with `best_hour`: those that were assigned to their own hour, and those that were
    /// assigned to the app's hour. Without devices in any other run.
    package var ownHour = Arm()
    package var usualHour = Arm()
    /// The devices of both arms of which a counted event names a push. 0 for events that are always about a push.
    package var namedPush = 0

    package init() {}
}

/// An event as it is stored.
package struct StoredFeedback: Hashable, Sendable {
    package var device: Int64
    /// `nil` if the event names no push.
    package var run: Int64?
    package var kind: FeedbackKind
    package var name: String
    package var valueMicros: Int64?
    package var at: Timestamp
    package var receivedAt: Timestamp

    package init(
        device: Int64, run: Int64?, kind: FeedbackKind, name: String, valueMicros: Int64?, at: Timestamp,
        receivedAt: Timestamp
    ) {
        self.device = device
        self.run = run
        self.kind = kind
        self.name = name
        self.valueMicros = valueMicros
        self.at = at
        self.receivedAt = receivedAt
    }
}
