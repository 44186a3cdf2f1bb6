package import Model
package import Store

/// Pages through the runs of a store, newest first.
package struct ListRuns: Sendable {
    package static let limitMax = 500

    private let runs: FollowRuns
    private let store: any RunLog

    package init(store: any RunLog, runs: FollowRuns) {
        self.store = store
        self.runs = runs
    }

    /// - Parameter cursor: the cursor of the previous page; `nil` for the first page.
    package func page(_ search: RunSearch, cursor: String?, limit: Int) async throws -> RunPageResult {
        let limit = PageCursor.limit(limit, max: Self.limitMax)
        let position = try PageCursor.position(cursor).map(ListPosition.before) ?? .newest
        let found = try await store.search(search, at: position, limit: limit)
        return RunPageResult(runs: found.runs.map { runs.held($0).result }, next: found.older.flatMap(PageCursor.text))
    }
}

/// The stable shape of a page of runs.
package struct RunPageResult: Codable, Hashable, Sendable {
    /// Newest first.
    package var runs: [RunResult]
    /// Absent on the last page.
    package var next: String?
    /// The runs that cannot be read, oldest first, on the first page only. Absent if all runs can be read.
    package var unreadable: [UnreadableRunResult]?

    package init(runs: [RunResult], next: String?, unreadable: [UnreadableRunResult]? = nil) {
        self.runs = runs
        self.next = next
        self.unreadable = unreadable
    }
}

/// The position at which a list continues: an opaque text that the caller passes back.
package enum PageCursor {
    private static let radix = 36

    /// Returns `nil` for the first page, which needs no cursor.
    package static func text(_ position: ListPosition) -> String? {
        switch position {
        case .newest: nil
        case .before(let id), .after(let id): text(id)
        }
    }

    package static func text(_ position: Int64) -> String { String(position, radix: radix) }

    /// Returns the position, or `nil` if there is no cursor.
    package static func position(_ cursor: String?) throws -> Int64? {
        guard let cursor else { return nil }
        guard let position = Int64(cursor, radix: radix), position >= 0 else {
            throw Failure(
                .invalidData,
                "\"\(cursor.prefix(32))\" is not a cursor of this list; omit it to get the first page")
        }
        return position
    }

    /// Returns the limit, restricted to 1 through `max`.
    static func limit(_ limit: Int, max: Int) -> Int { Swift.max(1, min(limit, max)) }
}
