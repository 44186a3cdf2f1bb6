package import Store
import Model

extension SQLiteFileStore {
    /// Takes the next deliveries of one environment for sending: first those put off whose time has come, then fresh
    /// ones in order of device behind `after`. Goes on until there is something to send or nothing left to look at,
    /// a chunk of `limit` per transaction.
    ///
    /// On disk when it returns (`synchronous` FULL): a push must not leave before the record that it may have left is
    /// safe from a power failure, or it would be sent again as if for the first time. Everything else may be lost
    /// with the power, since a lost outcome only turns its delivery doubtful. Costs one sync of the log per chunk.
    ///
    /// ``StoreError/lostClaim(run:holder:)`` when the run is not `owner`'s.
    package func lease(_ request: LeaseRequest) async throws -> Lease {
        var request = request
        request.limit = max(1, request.limit)
        var suppressions: [SuppressionReason: Int] = [:]
        while true {
            let asked = request
            let (lease, isExhausted) = try await writeDurably { db in try LeaseTransaction(db, asked).take() }
            suppressions.merge(lease.suppressions, uniquingKeysWith: +)
            guard lease.deliveries.isEmpty, !isExhausted, !Task.isCancelled else {
                var lease = lease
                lease.suppressions = suppressions
                return lease
            }
            request.after = lease.cursor
        }
    }
}
