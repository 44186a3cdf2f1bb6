/// What a read of the store may cost. The cost decides which connections carry out the read.
///
/// Reads that everything else depends on (authentication, sessions, stops, leases, run states, signs of life, health)
/// never wait for a read that scans a table.
package enum ReadCost: Hashable, Sendable {
    /// An index and a limit bound the rows that it touches, whatever the caller asks for.
    case short
    /// Everything else, and the default: it may go through all devices or through all deliveries of a run.
    case expensive
}
