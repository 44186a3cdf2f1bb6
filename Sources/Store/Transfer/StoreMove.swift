package import Model

/// A store on its way to another place, as both the store left behind and the new one have it on record.
package struct StoreMove: Codable, Hashable, Sendable {
    /// Tells it from every other move.
    package let id: String
    /// Where both are, without passwords.
    package let from: String
    package let to: String
    package let begunAt: Timestamp
    /// The sender's name of the process that carries the move out, or did last. `nil` in records of older versions.
    package var mover: String?
    /// Nil: it is under way. In the store left behind, when the copy was found whole; in the new one, when it was opened.
    package var endedAt: Timestamp?

    package init(id: String, from: String, to: String, begunAt: Timestamp, mover: String? = nil) {
        self.id = id
        self.mover = mover
        self.from = from
        self.to = to
        self.begunAt = begunAt
    }

    /// Checks, in the transaction of a step, that the store left behind is still being left by this very move.
    ///
    /// A process may be paused for any time between two steps, and the move be given up meanwhile. The record in the store
    /// decides, never what the process remembers.
    package func requireOnRecord(_ recorded: StoreMove?, at path: String) throws {
        guard recorded?.id == id else { throw StoreError.moveGivenUp(path: path, to: to) }
    }

    /// Why the store left behind takes no writes any more.
    package func refusal(at path: String) -> StoreError {
        endedAt.map { .moved(path: path, to: to, at: $0) } ?? .moving(path: path, to: to, since: begunAt)
    }
}

/// How far a store has been copied; changed in the transactions that write its rows.
package struct TransferProgress: Codable, Hashable, Sendable {
    /// The table that is written, by its place in ``TransferTable/all``; behind the last one all are.
    package var table = 0
    /// The key of the last row of it that is there.
    package var after: [TransferValue]?
    /// Of all tables.
    package var rows = 0

    package init() {}

    package var current: TransferTable? { table < TransferTable.all.count ? TransferTable.all[table] : nil }

    /// With these rows of the current table; none: it is done.
    package func adding(_ batch: ArraySlice<[TransferValue]>) -> TransferProgress {
        var next = self
        next.rows += batch.count
        next.after = batch.last.flatMap { last in current?.key(of: last) }
        if batch.isEmpty { next.table += 1 }
        return next
    }
}

/// A move as the new store has it on record.
package struct StoreArrival: Codable, Hashable, Sendable {
    package var move: StoreMove
    package var progress = TransferProgress()
    /// Once it has ended: what was found equal.
    package var proofs: [TableProof] = []

    package init(_ move: StoreMove) { self.move = move }
}

/// Under which names a move stands among the facts of a store.
package enum MoveRecord {
    /// In the store that is, or was, left: a ``StoreMove``. Whoever finds it writes nothing.
    package static let departure = "departure"
    /// In the new store while it is not whole: a ``StoreArrival``. Whoever finds it uses the store for nothing else.
    package static let arrival = "arrival"
    /// The same once the store is open for use.
    package static let arrived = "arrived"
}
