package import Model

/// A store that moves to another place as a whole, or comes from one: SQLite to PostgreSQL, and back.
///
///     the old store    in use -> departing (read-only) -> departed
///                                departing -> in use (given up)
///     the new store    empty  -> arriving (not in use) -> in use
///
/// The new store is opened only after the old one was closed permanently, so that two of them never send. Each method
/// is one transaction that may be repeated: the next move continues an interrupted one.
package protocol StoreTransfer: DeliveryQueue {
    /// The move by which the store was departing when it was opened; `nil` if there was none.
    var departed: StoreMove? { get }

    /// Returns the same move as it is recorded now.
    func departure() async throws -> StoreMove?

    /// Returns the move that the store comes from, in progress or over; `nil` if the store was created in its place.
    func arrival() async throws -> StoreArrival?

    /// Returns whether no table of ``TransferTable/all`` has a row.
    func isEmpty() async throws -> Bool

    /// Records the move, with an event, and blocks all writes from then on, even by processes that have the store
    /// open. Throws ``StoreError/inUse(path:reason:)`` while anything is leased or a run has an owner. Throws
    /// ``StoreError/corrupt(path:reason:)`` if the hash chain of events is damaged, because the new store rebuilds the
    /// chain.
    ///
    /// A repeated call with the same move continues it and records its mover. If another move is recorded, the method
    /// throws ``StoreMove/refusal(at:)``.
    func beginDeparture(_ move: StoreMove, by actor: Actor) async throws

    /// Records that the copy was found whole: the store is left permanently. Throws
    /// ``StoreError/moveGivenUp(path:to:)`` unless exactly this move is on record. May be repeated.
    func endDeparture(_ move: StoreMove, at now: Timestamp) async throws

    /// Makes a departing store usable again. The incomplete copy can no longer be used. The record must equal `move`,
    /// including the mover: the method throws ``StoreError/busy(path:)`` if another process changed it meanwhile.
    func giveUpDeparture(_ move: StoreMove) async throws

    /// Makes an empty store the receiver of the move, and gives it the namespace of the old store. Throws
    /// ``StoreError/busy(path:)`` if another move is on record.
    func beginArrival(_ move: StoreMove, namespace: (high: UInt64, low: UInt64)) async throws

    /// Returns at most `limit` rows after a key, in the order of keys. The result is empty only after the last row;
    /// before that it may be shorter than `limit`.
    func rows(of table: TransferTable, after key: [TransferValue]?, limit: Int) async throws -> [[TransferValue]]

    /// Writes rows of the table that `from` names, and records `to` with them. Writes nothing if these rows were
    /// written before. Throws ``StoreError/busy(path:)`` if another process has continued the copy. Throws
    /// ``StoreError/notStorable(path:row:reason:)`` for a value that the store cannot hold.
    func write(_ rows: ArraySlice<[TransferValue]>, from: TransferProgress, to: TransferProgress) async throws

    /// Returns the highest number that was ever assigned in each table of ``TransferTable/numbered``.
    func highestNumbers() async throws -> [String: Int64]

    /// Completes the new store and opens it for use. Later numbers continue after `numbers`, and `stops` are in force.
    /// `gap` is the time that the old store knows nothing about.
    func endArrival(
        _ numbers: [String: Int64], proofs: [TableProof], stops: StopOrders, gap: RestoreGap?, at now: Timestamp
    ) async throws
}

extension StoreTransfer {
    /// Reads a whole table in batches and returns its proof. The store must have no writer.
    package func proof(of table: TransferTable, onRows: (Int) -> Void = { _ in }) async throws -> TableProof {
        var proof = TableProof(of: table)
        var after: [TransferValue]?
        while true {
            try Task.checkCancellation()
            let rows = try await rows(of: table, after: after, limit: table.batchRows)
            guard let last = rows.last else { return proof }
            for row in rows { proof.add(row, of: table) }
            after = table.key(of: last)
            onRows(rows.count)
        }
    }
}
