/// Indexes for the runs of one campaign, newest first, so that a store with many runs answers as fast as a new one.
/// Frozen, as ``SchemaVersion1`` is.
enum SchemaVersion2 {
    static let sql = """
        -- The latest run of a campaign, and the latest in one state; test runs are left out of the second.
        CREATE INDEX run_campaign ON run (campaign, id);
        CREATE INDEX run_campaign_state ON run (campaign, state, id) WHERE is_test = 0;

        """
}
