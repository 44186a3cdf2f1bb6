/// The cost of a read of the store. The cost decides which connections carry out the read.
///
/// Reads that everything else depends on never wait for a read that scans a table. These are the reads for
/// authentication, sessions, stops, leases, run states, heartbeats and health.
package enum ReadCost: Hashable, Sendable {
    /// An index and a limit bound the number of rows that the read touches, whatever the caller requests.
    case short
    /// Every other read, and the default: the read may scan all devices or all deliveries of a run.
    case expensive
}
