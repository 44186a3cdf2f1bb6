package import Model

/// A store that goes to another place whole, or comes from one: SQLite to PostgreSQL, and back.
///
///     the store left    in use -> departing (nobody writes) -> departed
///                                 departing -> in use (given up)
///     the new store     empty  -> arriving (nobody uses it) -> in use
///
/// The new store is opened only after the old one was closed for good, so that never two of them send. Each method is one
/// transaction that may be repeated: a move that was cut short anywhere goes on with the next one.
package protocol StoreTransfer: DeliveryQueue {
    /// The move that the store was leaving by when it was opened; nil: none.
    var departed: StoreMove? { get }

    /// The same as of now.
    func departure() async throws -> StoreMove?

    /// The move that the store comes from, under way or over; nil: it was made in its place.
    func arrival() async throws -> StoreArrival?

    /// Whether there is no row in any table of ``TransferTable/all``.
    func isEmpty() async throws -> Bool

    /// Puts the move on record, by an event as well, and keeps everybody from writing from then on, whoever has the store
    /// open too. Refused with ``StoreError/inUse(path:reason:)`` while anything is leased or a run has an owner, and as
    /// ``StoreError/corrupt(path:reason:)`` where the record of events is not whole: the new store makes it anew.
    ///
    /// The same move again is continued, and its mover recorded. Another move on record is ``StoreMove/refusal(at:)``.
    func beginDeparture(_ move: StoreMove, by actor: Actor) async throws

    /// The copy was found whole: the store is left for good. ``StoreError/moveGivenUp(path:to:)`` unless exactly this move
    /// is on record. May be repeated.
    func endDeparture(_ move: StoreMove, at now: Timestamp) async throws

    /// Makes a store that is departing usable again; what was copied of it is of no use any more. The record must equal
    /// `move`, mover and all: ``StoreError/busy(path:)`` if another process changed it meanwhile.
    func giveUpDeparture(_ move: StoreMove) async throws

    /// Makes an empty store the one that arrives, under the name space of the old one. ``StoreError/busy(path:)`` if another
    /// move is on record.
    func beginArrival(_ move: StoreMove, namespace: (high: UInt64, low: UInt64)) async throws

    /// At most `limit` rows behind a key, in the order of keys; none at the end, fewer also before.
    func rows(of table: TransferTable, after key: [TransferValue]?, limit: Int) async throws -> [[TransferValue]]

    /// Writes rows of the table that `from` says, and with them `to`. Nothing is written where that was done before;
    /// ``StoreError/busy(path:)`` where another process has gone on. A value that the store cannot hold is
    /// ``StoreError/notStorable(path:row:reason:)``.
    func write(_ rows: ArraySlice<[TransferValue]>, from: TransferProgress, to: TransferProgress) async throws

    /// The highest number that was ever given away in each table of ``TransferTable/numbered``.
    func highestNumbers() async throws -> [String: Int64]

    /// Gets a whole store ready, with numbers behind these and these stops in force, and opens it for use.
    func endArrival(
        _ numbers: [String: Int64], proofs: [TableProof], stops: StopOrders, at now: Timestamp
    ) async throws
}

extension StoreTransfer {
    /// Reads a whole table; memory stays flat. For a store that nobody writes to.
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
