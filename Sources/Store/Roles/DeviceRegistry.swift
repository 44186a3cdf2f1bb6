package import Model

/// Devices, their tokens and segments, and who of them an audience selects.
package protocol DeviceRegistry: Sendable {
    /// Registers devices: an upsert by (topic, installation), or without one by (topic, environment, token), all
    /// records in one transaction. Tens of thousands a call are best: each transaction rewrites the pages of the
    /// indexes it touches.
    ///
    /// - Nil fields leave stored ones alone; `registered_at` and `last_seen_at` never go back.
    /// - A new token replaces the installation's, which is kept in the history; a record registered before the stored
    ///   one does not replace the token.
    /// - A token stored with another installation moves to the one now reporting it: two stored devices become one,
    ///   with the tags, segments and silent budget of both.
    /// - A device suspended or gone is active again with a new token, or when registered after its status.
    /// - A record that names the token and says not when it was registered counts as registered `now` against verdicts
    ///   still to come, see ``TokenRegistration``, also when it changes nothing else. It takes none back: a list of all
    ///   devices, imported every night, would bring back every dead one.
    ///
    /// With `dryRun` nothing is kept of it: the counts are those the import would have, judged against the store as it is,
    /// so that a device given in two calls counts twice as new.
    func importDevices(
        _ records: [DeviceRecord], now: Timestamp, dryRun: Bool
    ) async throws -> ImportCounts

    /// Starts an import of many devices, each batch of which does what ``importDevices(_:now:dryRun:)`` does, in the
    /// same order as far as any two records are about one device. A store may be quicker about them, and put the rest of
    /// its work off until ``DeviceImport/finish(now:)``, which must be called, also when the import was stopped.
    func deviceImport() async throws -> any DeviceImport

    /// Registers devices as ``importDevices(_:now:dryRun:)`` does, all of them in one transaction, and says of each record
    /// what became of it, in their order. For those who register while others send: it leaves the caches as they are.
    ///
    /// - Parameter reading: each device comes with its answer, as it is right behind its record.
    func registerDevices(
        _ records: [DeviceRecord], reading: Bool, now: Timestamp
    ) async throws -> [RegisteredDevice]

    /// Hands out the matching devices, whatever their status, in batches and in order of id, from one snapshot; the
    /// whole tokens are in them. Returns how many. An error of `batch` ends it.
    func exportDevices(
        topic: String?, matching expression: AudienceExpression, now: Timestamp,
        batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int

    /// Devices by installation id, user id, whole token in hex, or the last 8 or more characters of a token (then the
    /// whole table is read): all that the text names in any of these ways, see ``TokenEnd``. At most 20.
    func devices(matching text: String) async throws -> [StoredDevice]

    /// Hands out the devices of one status in order of id, in batches. Reads the whole table. Returns how many.
    func devices(
        withStatus status: DeviceStatus, batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int

    /// The device that had this token before its present one. Reads all old tokens.
    func device(thatHad token: DeviceToken) async throws -> StoredDevice?

    /// Nil: there is no such device.
    func device(_ id: Int64) async throws -> StoredDevice?

    /// Those that there is a device of, or was. Cheap: a row for each.
    func topics() async throws -> Set<String>

    /// How many devices there are, by topic, environment and status. Reads the whole table.
    func deviceCounts() async throws -> [DeviceCount]

    /// Deletes devices that are gone since before `goneBefore`, and those neither seen nor registered since
    /// `notSeenSince`; nil leaves that kind alone. With `dryRun` they are only counted.
    ///
    /// Works in batches of some thousand, each a transaction that looks at its devices again, so that a registration in
    /// between keeps its device, memory stays flat, and what was stopped in the middle goes on with the same call. One of
    /// which a push still counts for a budget or a frequency cap is kept: it would come back with fresh slots.
    /// Tags, memberships and old tokens go with the device; deliveries and reports stay. Unless it is a dry run, an
    /// event says who pruned how many.
    func pruneDevices(
        goneBefore: Timestamp?, notSeenSince: Timestamp?, topic: String?, dryRun: Bool,
        now: Timestamp,
        by actor: Actor
    ) async throws -> PruneCounts

    /// Deletes a device at somebody's word, with an event; nil: there is none. As ``pruneDevices(goneBefore:notSeenSince:topic:dryRun:now:by:)``
    /// it keeps the row of one of which a push still counts, which is emptied and gone from then on. What runs did to
    /// it stays; what still waits for it is suppressed when its turn comes.
    func removeDevice(_ id: Int64, now: Timestamp, by actor: Actor) async throws -> DeviceRemoval?

    /// What a template would print for a device; nil for what it does not have, or if it is not there.
    func fields(_ fields: [AudienceField], ofDevice device: Int64) async throws -> [String?]

    /// Counts who an audience selects now, without writing anything: those to be sent to by environment and locale,
    /// and the others it asked for by reason. Reads the whole device table once.
    func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach

    /// The same for a campaign: its expression or its `audience_sql`, split by holdout and variants as a run would.
    /// With `budget`, a background campaign also learns how many devices have none left now.
    ///
    /// An `audience_sql` may read the views of ``AnalystViewNames`` only, and for a limited time; anything else is
    /// ``StoreError/audienceSQL(_:)``.
    ///
    /// - Parameters:
    ///   - caps: of a run of the campaign: those whom they would hold back are counted.
    ///   - waves: of a run that follows each device's clock: those who would get nothing by it are counted.
    func reach(
        of campaign: Campaign, budget: Configuration.SilentBudget?, caps: CapPreview?, waves: RecipientWaves?,
        now: Timestamp
    ) async throws -> Reach

    /// One device to show for each locale the audience would be sent in: the one with the lowest id.
    func sampleDevices(
        of audience: AudienceExpression, topic: String, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample]

    /// The same for a campaign, by its expression or its `audience_sql`.
    func sampleDevices(
        of campaign: Campaign, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample]

    /// Starts an import of members; `topic` nil takes devices of any. Hand over the batches with
    /// ``SegmentImport/append(_:)`` and end with ``SegmentImport/commit(now:)``: dropping it instead changes nothing.
    /// Removing from a segment that is not there is ``StoreError/noSuchSegment(_:suggestion:)``, importing into a
    /// dynamic one ``StoreError/segmentIsDynamic(_:)``.
    func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String?
    ) async throws -> any SegmentImport

    /// Defines a dynamic segment, or defines it anew: whoever `expression` selects when an audience names the segment,
    /// of the audience's topic. Nothing is written unless it compiles with every segment it names: cycles are
    /// ``StoreError/segmentCycle(_:)``, a name that has members is ``StoreError/segmentIsStatic(_:)``.
    func defineSegment(
        _ name: String, source: String, expression: AudienceExpression, now: Timestamp
    ) async throws

    /// Removes a segment with its members, and records who did. Devices stay.
    /// ``StoreError/segmentIsUsed(_:by:)`` names what needs it: other segments, runs that have not chosen their
    /// devices, and `others`. ``StoreError/noSuchSegment(_:suggestion:)`` names the nearest there is.
    ///
    /// - Parameter others: what needs it besides, as the files say.
    func removeSegment(_ name: String, usedBy others: [String], now: Timestamp, by actor: Actor) async throws

    /// By name. A dynamic segment is counted at `now`, over the whole device table, which takes seconds for millions; without
    /// it, its count is that of the moment it was defined, and this reads a row for each segment.
    func segments(now: Timestamp?) async throws -> [SegmentSummary]

    /// What the segments of a campaign's audience hold. Reads one row per segment.
    func segmentContents(of campaign: Campaign) async throws -> SegmentContents

    /// One segment as it is now, with up to `sampleMax` of its devices.
    /// ``StoreError/noSuchSegment(_:suggestion:)`` names the nearest there is.
    func segment(_ name: String, now: Timestamp, sampleMax: Int) async throws -> SegmentDetail

    /// A page of a segment's devices, in order of id. Of a dynamic one so many devices are looked at for a page at most
    /// that it may have fewer than `limit`, or none, and still a cursor.
    ///
    /// - Parameter device: the cursor of the page before, 0 for the first.
    func members(ofSegment name: String, after device: Int64, limit: Int, now: Timestamp) async throws -> DevicePage
}

extension DeviceRegistry {
    package func importDevices(_ records: [DeviceRecord], now: Timestamp) async throws -> ImportCounts {
        try await importDevices(records, now: now, dryRun: false)
    }

    /// Whatever frequency caps would hold back.
    package func reach(
        of campaign: Campaign, budget: Configuration.SilentBudget?, waves: RecipientWaves? = nil, now: Timestamp
    ) async throws -> Reach {
        try await reach(of: campaign, budget: budget, caps: nil, waves: waves, now: now)
    }
}

/// An import of devices in progress. One task at a time.
package protocol DeviceImport: Sendable {
    /// Registers the next records, tens of thousands a call, or puts some of them aside, which are not counted yet.
    func register(_ records: [DeviceRecord], now: Timestamp) async throws -> ImportCounts

    /// ``finish(now:)`` has work to do that takes its time for many devices.
    var isPuttingOff: Bool { get async }

    /// Registers what was put aside, and counts it. Takes longer the more devices were new.
    func finish(now: Timestamp) async throws -> ImportCounts
}

/// An import of members in progress: nothing of it shows before ``commit(now:)``, and all of it after; dropped without
/// it, nothing has changed. One task at a time.
package protocol SegmentImport: Sendable {
    /// Takes the next members, some thousands a call.
    func append(_ keys: [SegmentMemberKey]) async throws

    /// Makes the change, in one transaction.
    func commit(now: Timestamp) async throws -> SegmentImportCounts
}
