package import Model

/// Devices with their tokens and segments, and the devices that an audience selects.
package protocol DeviceRegistry: Sendable {
    /// Registers devices, all records in one transaction. Each record is an upsert by (topic, installation), or by
    /// (topic, environment, token) if it has no installation. Tens of thousands of records per call are best, because
    /// each transaction rewrites the pages of the indexes that it touches.
    ///
    /// - A `nil` field keeps the stored value; `registered_at` and `last_seen_at` never go back.
    /// - A new token replaces the installation's token, which is kept in the history. A record that was registered
    ///   before the stored one does not replace the token.
    /// - A token that is stored with another installation moves to the one that reports it now. The two stored devices
    ///   become one, with the tags, segments and silent budget of both.
    /// - A suspended or gone device is active again with a new token, or if it was registered after its status.
    /// - A record that names the token without a registration time counts as registered `now` against later verdicts,
    ///   see ``TokenRegistration``. This holds even if the record changes nothing else. It does not undo an earlier
    ///   verdict: otherwise a list of all devices, imported every night, would revive every dead device.
    ///
    /// With `dryRun` nothing is stored. The counts are those that the import would have, judged against the present
    /// store. So a device in two calls counts twice as new.
    func importDevices(
        _ records: [DeviceRecord], now: Timestamp, dryRun: Bool
    ) async throws -> ImportCounts

    /// Starts an import of many devices. Each batch does what ``importDevices(_:now:dryRun:)`` does, in the same order
    /// for any two records about one device. A store may be faster this way, because it may postpone part of its work
    /// until ``DeviceImport/finish(now:)``. The caller must call that method, even after the import was stopped.
    func deviceImport() async throws -> any DeviceImport

    /// Registers devices as ``importDevices(_:now:dryRun:)`` does, all of them in one transaction, and returns the
    /// effect of each record in order. It is for registrations during sending, so it leaves the caches as they are.
    ///
    /// - Parameter reading: whether each effect comes with its device, as it is right after its record.
    func registerDevices(
        _ records: [DeviceRecord], reading: Bool, now: Timestamp
    ) async throws -> [RegisteredDevice]

    /// Hands out the matching devices with their whole tokens, whatever their status. They come in batches, in order of
    /// id, from one snapshot. Returns how many. An error of `batch` ends the export.
    func exportDevices(
        topic: String?, matching expression: AudienceExpression, now: Timestamp,
        batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int

    /// Returns the devices that a text names: by installation id, user id, whole token in hex, or the last 8 or more
    /// characters of a token. A search by the end of a token reads the whole table, see ``TokenEnd``. Returns at most
    /// 20 devices that the text names in full, and 20 by the end of their token.
    ///
    /// - Parameter topics: the topics to search; `nil` for all. Devices of other topics do not count for the limit.
    func devices(matching text: String, topics: Set<String>?) async throws -> [StoredDevice]

    /// Returns the device of a topic with this installation id; `nil` if there is none.
    func device(installation: String, topic: String) async throws -> StoredDevice?

    /// Hands out the devices of one status in order of id, in batches. Reads the whole table. Returns how many.
    func devices(
        withStatus status: DeviceStatus, batch: @escaping @Sendable ([StoredDevice]) throws -> Void
    ) async throws -> Int

    /// Returns the device that had this token before its present one. Reads all old tokens.
    func device(thatHad token: DeviceToken) async throws -> StoredDevice?

    /// Returns `nil` if there is no such device.
    func device(_ id: Int64) async throws -> StoredDevice?

    /// Returns the topics that have or had a device. Cheap: it reads one row per topic.
    func topics() async throws -> Set<String>

    /// Returns the numbers of devices by topic, environment and status. Reads the whole table.
    func deviceCounts() async throws -> [DeviceCount]

    /// Returns the values that active devices of a topic have, at most ``AudienceValues/valuesMax`` of each kind. Reads
    /// the whole table several times.
    func audienceValues(topic: String) async throws -> AudienceValues

    /// Deletes devices that have been gone since before `goneBefore`, and devices neither seen nor registered since
    /// `notSeenSince`. If one of these times is `nil`, devices of that kind are kept. With `dryRun` they are only
    /// counted.
    ///
    /// Works in batches of some thousand, each a transaction that checks its devices again. So a device that registers
    /// meanwhile is kept, memory use is constant, and a repeated call continues an interrupted one. A device is kept
    /// while a push still counts for its budget or a frequency cap: otherwise a new registration would start with
    /// unused slots. Tags, memberships and old tokens go with the device; deliveries and reports stay. Unless it is a
    /// dry run, an event records the actor and the counts, also of a call that is interrupted.
    func pruneDevices(
        goneBefore: Timestamp?, notSeenSince: Timestamp?, topic: String?, dryRun: Bool,
        now: Timestamp,
        by actor: Actor
    ) async throws -> PruneCounts

    /// Deletes a device at a person's request, with an event. Returns `nil` if there is no such device. The row of a
    /// device is kept while a push still counts, as in ``pruneDevices(goneBefore:notSeenSince:topic:dryRun:now:by:)``.
    /// Its status is then gone, and it keeps only its token, its installation id and its times, until
    /// ``pruneRemovedDevices(now:by:)`` deletes it. The deliveries of runs stay. Deliveries that still wait for the
    /// device are suppressed when their turn comes.
    func removeDevice(_ id: Int64, now: Timestamp, by actor: Actor) async throws -> DeviceRemoval?

    /// Deletes the rows of removed devices whose pushes no longer count, as
    /// ``pruneDevices(goneBefore:notSeenSince:topic:dryRun:now:by:)`` does.
    func pruneRemovedDevices(now: Timestamp, by actor: Actor) async throws -> PruneCounts

    /// Returns the texts that a template would print for a device; `nil` for a field that the device does not have, or
    /// if there is no such device.
    func fields(_ fields: [AudienceField], ofDevice device: Int64) async throws -> [String?]

    /// Counts the devices that an audience selects now, without writing anything. The devices to send to are counted by
    /// environment and locale, all others by reason. Reads the whole device table once.
    func reach(
        of audience: AudienceExpression, topic: String, pushType: PushType, now: Timestamp
    ) async throws -> Reach

    /// Counts the same for a campaign: its expression or its `audience_sql`, split by holdout and variants as in a run.
    /// With `budget`, the result for a background campaign also counts the devices that have no budget left now.
    ///
    /// An `audience_sql` may read only the views of ``AnalystViewNames``, and only for a limited time. Anything else
    /// throws ``StoreError/audienceSQL(_:)``.
    ///
    /// - Parameters:
    ///   - caps: the caps of a run of the campaign. The devices that they would hold back are counted.
    ///   - waves: the waves of a run that follows each device's clock. The devices that would get no push because of
    ///     them are counted.
    func reach(
        of campaign: Campaign, budget: Configuration.SilentBudget?, caps: CapPreview?, waves: RecipientWaves?,
        now: Timestamp
    ) async throws -> Reach

    /// Returns one sample device for each locale of the audience: the device with the lowest id.
    func sampleDevices(
        of audience: AudienceExpression, topic: String, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample]

    /// Returns the same for a campaign, by its expression or its `audience_sql`.
    func sampleDevices(
        of campaign: Campaign, now: Timestamp, fields: [AudienceField], limit: Int
    ) async throws -> [DeviceSample]

    /// Starts an import of members. If `topic` is nil, it takes devices of any topic. Hand over the batches with
    /// ``SegmentImport/append(_:)`` and end with ``SegmentImport/commit(now:event:)``. An import that is dropped
    /// instead changes nothing. Removing from a missing segment throws ``StoreError/noSuchSegment(_:suggestion:)``.
    /// Importing into a dynamic segment throws ``StoreError/segmentIsDynamic(_:)``.
    func importSegment(
        _ name: String, mode: SegmentImportMode, topic: String?
    ) async throws -> any SegmentImport

    /// Defines or redefines a dynamic segment. It holds the devices of the audience's topic that `expression` selects
    /// when an audience names the segment. Nothing is written unless the expression compiles with every segment that it
    /// names. A cycle throws ``StoreError/segmentCycle(_:)``. A name that has members throws
    /// ``StoreError/segmentIsStatic(_:)``.
    ///
    /// - Parameter event: the entry of the audit log, which the same transaction writes; `nil` for none.
    func defineSegment(
        _ name: String, source: String, expression: AudienceExpression, now: Timestamp, event: SegmentEvent?
    ) async throws

    /// Removes a segment with its members, and records the actor. Devices stay. Throws
    /// ``StoreError/segmentIsUsed(_:by:)`` with the users of the segment: other segments, runs that have not chosen
    /// their devices, and `others`. Throws ``StoreError/noSuchSegment(_:suggestion:)`` with the nearest existing name.
    ///
    /// - Parameter others: other users of the segment, according to the files.
    func removeSegment(_ name: String, usedBy others: [String], now: Timestamp, by actor: Actor) async throws

    /// Returns the users of segments by the segments' names: other segments, and runs that have not chosen their
    /// devices. A segment or a run that cannot be read is left out.
    func segmentUsers(of names: [String]) async throws -> [String: [String]]

    /// Returns the segments by name. With `now`, a dynamic segment is counted at that time over the whole device table,
    /// which takes seconds for millions. Otherwise its count is that of its definition, and the method reads one row
    /// per segment.
    func segments(now: Timestamp?) async throws -> [SegmentSummary]

    /// Returns the contents of the segments of a campaign's audience. Reads one row per segment.
    func segmentContents(of campaign: Campaign) async throws -> SegmentContents

    /// Returns one segment as it is now, with up to `sampleMax` of its devices. Throws
    /// ``StoreError/noSuchSegment(_:suggestion:)`` with the nearest existing name.
    func segment(_ name: String, now: Timestamp, sampleMax: Int) async throws -> SegmentDetail

    /// Returns a page of a segment's devices, in order of id. For a dynamic segment, the number of devices that are
    /// read per page is bounded. So a page may have fewer devices than `limit`, or none, and still a cursor.
    ///
    /// - Parameter device: the cursor of the previous page, 0 for the first page.
    func members(ofSegment name: String, after device: Int64, limit: Int, now: Timestamp) async throws -> DevicePage
}

extension DeviceRegistry {
    package func importDevices(_ records: [DeviceRecord], now: Timestamp) async throws -> ImportCounts {
        try await importDevices(records, now: now, dryRun: false)
    }

    package func defineSegment(
        _ name: String, source: String, expression: AudienceExpression, now: Timestamp
    ) async throws {
        try await defineSegment(name, source: source, expression: expression, now: now, event: nil)
    }

    /// Returns the devices of all topics that a text names.
    package func devices(matching text: String) async throws -> [StoredDevice] {
        try await devices(matching: text, topics: nil)
    }

    /// Counts the reach of a campaign without regard to frequency caps.
    package func reach(
        of campaign: Campaign, budget: Configuration.SilentBudget?, waves: RecipientWaves? = nil, now: Timestamp
    ) async throws -> Reach {
        try await reach(of: campaign, budget: budget, caps: nil, waves: waves, now: now)
    }
}

/// An import of devices in progress. Only one task may use it at a time.
package protocol DeviceImport: Sendable {
    /// Registers the next records, tens of thousands per call. Some of them may be put aside, and are not counted yet.
    func register(_ records: [DeviceRecord], now: Timestamp) async throws -> ImportCounts

    /// Whether ``finish(now:)`` has work to do, which takes time for many devices.
    var isPuttingOff: Bool { get async }

    /// Registers and counts the records that were put aside. It takes longer the more devices were new.
    func finish(now: Timestamp) async throws -> ImportCounts
}

/// An import of members in progress. Its changes become visible all at once, with ``commit(now:event:)``. An import
/// that is dropped without a commit changes nothing. Only one task may use it at a time.
package protocol SegmentImport: Sendable {
    /// Adds the next members to the import, some thousands per call.
    func append(_ keys: [SegmentMemberKey]) async throws

    /// Applies the import in one transaction.
    ///
    /// - Parameter event: returns the entry of the audit log, which the same transaction writes; `nil` for none.
    func commit(
        now: Timestamp, event: (@Sendable (SegmentImportCounts) -> SegmentEvent)?
    ) async throws -> SegmentImportCounts
}

extension SegmentImport {
    package func commit(now: Timestamp) async throws -> SegmentImportCounts { try await commit(now: now, event: nil) }
}

/// The entry of the audit log for the definition of a segment, or for a change of its members.
package struct SegmentEvent: Sendable {
    package var actor: Actor
    package var detail: String

    package init(by actor: Actor, _ detail: String) {
        self.actor = actor
        self.detail = detail
    }
}
