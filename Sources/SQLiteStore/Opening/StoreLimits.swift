/// The numbers the store works within, each with its reason.
package enum StoreLimits {
    /// Page cache of the one writing connection: whoever sends goes through the devices in order and needs no more.
    static let writerCacheKiB = 8_192
    /// The same while an import is under way, which writes all over the indexes: holds their inner pages for some millions of
    /// devices; twice as much is no faster.
    static let importCacheKiB = 32_768
    /// Page cache of a reading connection: readers mostly scan once.
    static let readerCacheKiB = 8_192
    /// Four readers: the freeze, a page of the dashboard, a report, and one to spare.
    static let readersMax = 4
    /// The log goes back into the file after 16 MiB. SQLite's default of 4 MiB copies hot index pages four times
    /// as often during an import; much more makes each reader search a longer log.
    static let walAutocheckpointPages = 4_096
    /// A log that grew behind a long read is cut back to this size at its next reset.
    static let walKeptBytes = 67_108_864
    /// Longer than any transaction of ours takes: another process may be importing.
    package static let busyTimeoutSeconds = 15.0

    /// The first batch of a freeze is small, so that the first push leaves early.
    static let freezeFirstBatchRows = 2_000
    static let freezeBatchRows = 20_000
    static let exportBatchRows = 5_000
    /// Devices deleted per transaction: each touches pages of several indexes.
    static let pruneBatchRows = 2_000
    /// Outcomes deleted per transaction: they lie side by side.
    static let outcomesPruneBatchRows = 50_000
    /// How long an `audience_sql` may take.
    package static let audienceSQLTime: Duration = .seconds(10)
    /// Dynamic segments within dynamic segments.
    static let segmentDepthMax = 10
    /// SQLite takes 32766 parameters at most.
    static let audienceParametersMax = 30_000
    /// Parts of an audience with its segments written out.
    static let audiencePartsMax = 50_000
    static let matchingDevicesMax = 20
}
