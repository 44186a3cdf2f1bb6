package import Model

/// A move of a store to another place, as both the old and the new store record it.
package struct StoreMove: Codable, Hashable, Sendable {
    /// The identity of the move.
    package let id: String
    /// The places of both stores, without passwords.
    package let from: String
    package let to: String
    package let begunAt: Timestamp
    /// The sender's name of the process that carries out the move, or did so last. `nil` in records of older versions.
    package var mover: String?
    /// `nil` while the move is in progress. In the old store: when the copy was found whole. In the new store: when it
    /// was opened.
    package var endedAt: Timestamp?

    package init(id: String, from: String, to: String, begunAt: Timestamp, mover: String? = nil) {
        self.id = id
        self.mover = mover
        self.from = from
        self.to = to
        self.begunAt = begunAt
    }

    /// Checks, in the transaction of a step, that the old store still records this move.
    ///
    /// A process may be paused for any time between two steps, and the move may be given up meanwhile. So the record in
    /// the store decides, never the memory of the process.
    package func requireOnRecord(_ recorded: StoreMove?, at path: String) throws {
        guard recorded?.id == id else { throw StoreError.moveGivenUp(path: path, to: to) }
    }

    /// Returns why the old store takes no more writes.
    package func refusal(at path: String) -> StoreError {
        endedAt.map { .moved(path: path, to: to, at: $0) } ?? .moving(path: path, to: to, since: begunAt)
    }
}

/// The progress of a copy. It changes in the transactions that write the rows.
package struct TransferProgress: Codable, Hashable, Sendable {
    /// The index into ``TransferTable/all`` of the table that is written. After the last table, the index is past the
    /// end.
    package var table = 0
    /// The key of the last row of this table that was written.
    package var after: [TransferValue]?
    /// The number of rows that were written, in all tables.
    package var rows = 0

    package init() {}

    package var current: TransferTable? { table < TransferTable.all.count ? TransferTable.all[table] : nil }

    /// Returns the progress after these rows of the current table. No rows mean that the table is complete.
    package func adding(_ batch: ArraySlice<[TransferValue]>) -> TransferProgress {
        var next = self
        next.rows += batch.count
        next.after = batch.last.flatMap { last in current?.key(of: last) }
        if batch.isEmpty { next.table += 1 }
        return next
    }
}

/// A move as the new store records it.
package struct StoreArrival: Codable, Hashable, Sendable {
    package var move: StoreMove
    package var progress = TransferProgress()
    /// The proofs of equal contents, once the move has ended.
    package var proofs: [TableProof] = []

    package init(_ move: StoreMove) { self.move = move }
}

/// The keys of a move's records among the facts of a store.
package enum MoveRecord {
    /// In the old store: a ``StoreMove``. A process that finds it writes nothing.
    package static let departure = "departure"
    /// In the new store while it is not whole: a ``StoreArrival``. A process that finds it uses the store for nothing
    /// else.
    package static let arrival = "arrival"
    /// The same once the store is open for use.
    package static let arrived = "arrived"
}
