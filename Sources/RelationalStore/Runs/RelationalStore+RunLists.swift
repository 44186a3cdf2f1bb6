package import Model
package import Store

extension RelationalStore {
    package func restoreGap() async throws -> RestoreGap? {
        try await snapshot(.short) { try StoredFact.value(RestoreGap.key, $0) }
    }

    package func run(_ id: Int64) async throws -> Run? { try await snapshot(.short) { db in try RunRow.find(db, id) } }

    package func run(campaign: String, occurrence: String) async throws -> Run? {
        try await snapshot(.short) { db in try RunRow.find(db, campaign: campaign, occurrence: occurrence) }
    }

    package func latestRun(campaign: String, includingTests: Bool) async throws -> Run? {
        try await snapshot(.short) { db in
            try RunRow.first(db, RunClauses<Session>.latest(includingTests: includingTests), campaign)
        }
    }

    package func latestRun(campaign: String, state: RunState) async throws -> Run? {
        try await snapshot(.short) { db in
            try RunRow.first(db, RunClauses<Session>.latestInState, campaign, state.rawValue)
        }
    }

    package func runs(limit: Int, includingTests: Bool) async throws -> [Run] {
        try await snapshot(.short) { db in
            try ListedRun.page(from: nil, limit: limit) { before, limit in
                try RunRow.list(
                    db, "WHERE id < $1 AND (NOT is_test OR $2) ORDER BY id DESC LIMIT $3", before ?? .max,
                    includingTests, limit)
            }
        }
    }

    package func runs(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [Run] {
        try await snapshot(.short) { db in
            try ListedRun.page(from: id, limit: limit) { before, limit in
                try RunClauses.listed(db, filter, before: before, limit: limit)
            }
        }
    }

    package func listedRuns(_ filter: RunFilter, before id: Int64?, limit: Int) async throws -> [ListedRun] {
        try await snapshot(.short) { db in try RunClauses.listed(db, filter, before: id, limit: limit) }
    }

    package func runs(_ filter: RunFilter, after id: Int64, limit: Int) async throws -> [Run] {
        try await snapshot(.short) { db in
            try ListedRun.page(from: id, limit: limit) { after, limit in
                try RunRow.list(
                    db, "WHERE id IN (\(RunClauses<Session>.listedAfter)) ORDER BY id", after ?? id,
                    filter.campaign, filter.includesTests, filter.states.isEmpty, filter.states.map(\.rawValue),
                    filter.createdFrom?.milliseconds ?? .min, filter.createdBefore?.milliseconds ?? .max, limit)
            }
        }
    }

    package func unreadableRuns() async throws -> [UnreadableRun] {
        try await snapshot(.short) { db in try RunClauses.unreadable(db) }
    }

    package func knownOccurrences(of campaign: String, among keys: [String]) async throws -> Set<String> {
        guard !keys.isEmpty else { return [] }
        return try await snapshot(.short) { db in
            Set(
                try db.all(
                    "SELECT occurrence FROM run WHERE campaign = $1 AND occurrence \(Session.dialect.isAny(2))",
                    campaign, keys
                ) { try $0.text(0) })
        }
    }

    package func unfinishedRuns(campaign: String, occurrencePrefix: String) async throws -> [Run] {
        try await snapshot(.short) { db in
            try RunRow.list(db, RunClauses<Session>.unfinished, campaign, occurrencePrefix).readable
        }
    }

    package func haltedRuns() async throws -> [Run] {
        try await snapshot(.short) { db in try RunRow.list(db, RunClauses<Session>.halted).readable }
    }

    package func openFeedRuns(campaign: String) async throws -> [Run] {
        try await snapshot(.short) { db in try RunRow.list(db, RunClauses<Session>.openOfFeed, campaign).readable }
    }
}

/// The clauses of lists of runs. A store may hold a million runs, so each clause uses an index, which the tests check.
package enum RunClauses<Session: SQLSession> {
    private static var isNoTest: String { Session.dialect.isFalse("is_test") }

    /// Walks the index `run_campaign` down from the newest run, and skips test runs.
    package static func latest(includingTests: Bool) -> String {
        "WHERE campaign = $1 \(includingTests ? "" : "AND \(isNoTest)") ORDER BY id DESC LIMIT $2"
    }

    /// Reads one row of the index `run_campaign_state`.
    package static var latestInState: String {
        "WHERE campaign = $1 AND state = $2 AND \(isNoTest) ORDER BY id DESC LIMIT $3"
    }

    /// On SQLite it reads only the index, which has a few dozen bytes for each run.
    package static var listed: String { listed("id < $1", "id DESC") }

    static func listed(
        _ db: Session, _ filter: RunFilter, before id: Int64?, limit: Int
    ) throws -> [ListedRun] {
        try RunRow.list(
            db, "WHERE id IN (\(listed)) ORDER BY id DESC", id ?? .max, filter.campaign, filter.includesTests,
            filter.states.isEmpty, filter.states.map(\.rawValue), filter.createdFrom?.milliseconds ?? .min,
            filter.createdBefore?.milliseconds ?? .max, limit)
    }

    /// The same in the other direction.
    package static var listedAfter: String { listed("id > $1", "id") }

    private static func listed(_ position: String, _ order: String) -> String {
        """
        SELECT id FROM run \(Session.dialect.hint("INDEXED BY run_listing"))
        WHERE \(position) AND ($2 IS NULL OR campaign = $2) AND (NOT is_test OR $3)
            AND ($4 OR state \(Session.dialect.isAny(5))) AND created_at >= $6 AND created_at < $7
        ORDER BY \(order) LIMIT $8
        """
    }

    /// Selects the unfinished runs and the latest 100 runs.
    package static var looked: String {
        """
        WHERE id IN (
            SELECT id FROM run WHERE state IN (\(SQLConstants.list(RunState.unfinished)))
            UNION SELECT id FROM (SELECT id FROM run ORDER BY id DESC LIMIT 100) AS latest
        ) ORDER BY id
        """
    }

    package static func unreadable(_ db: Session) throws -> [UnreadableRun] { try RunRow.list(db, looked).unreadable }

    /// Selects the unfinished runs of a campaign. It uses the index of states, not the one in order of `id`, so that
    /// finished runs cost nothing.
    package static var unfinished: String {
        """
        \(Session.dialect.hint("INDEXED BY run_campaign_state"))
        WHERE campaign = $1 AND state IN (\(SQLConstants.list(RunState.unfinished))) AND \(isNoTest)
            AND substr(occurrence, 1, length($2)) = $2
        ORDER BY id LIMIT \(UnfinishedRuns.countMax)
        """
    }

    /// Walks the index `run_halted`.
    package static var halted: String {
        """
        WHERE state = '\(RunState.paused.rawValue)' AND paused_by IS NULL AND \(isNoTest)
            AND halt IN (\(SQLConstants.list(RunHalt.allCases.filter(\.waitsForPerson).map(\.rawValue))))
        ORDER BY id
        """
    }

    static var openOfFeed: String {
        """
        WHERE campaign = $1 AND state IN (\(SQLConstants.list(RunState.unfinished))) AND \(isNoTest)
            AND (state <> '\(RunState.paused.rawValue)' OR paused_by IS NULL
                AND halt IN (\(SQLConstants.list(RunHalt.automatic.map(\.rawValue)))))
            AND substr(occurrence, 1, 5) = 'item-'
        ORDER BY id
        """
    }
}
