package import Model

/// The check of leases against the runs that hold them and the deliveries that they wait for.
package struct LeaseCheck {
    package static let name = "leases"
    package static let promise =
        "each lease belongs to its run's owner and waits for exactly its deliveries without an outcome"
    package static let doubleName = "accepted_once"
    package static let doublePromise = "no accepted delivery is in flight again, and no delivery is in flight twice"

    /// A lease with the facts of its run.
    package struct Lease {
        package var id, run: Int64
        package var owner: String
        package var open: Int
        package var entries: [UInt8]
        package var runOwner: String?
        package var runFinishedAt: Timestamp?
        /// Whether the lease may be from before the last claim of the run.
        package var mayBeOlder: Bool

        package init(
            id: Int64, run: Int64, owner: String, open: Int, entries: [UInt8], runOwner: String?,
            runFinishedAt: Timestamp?, mayBeOlder: Bool
        ) {
            self.id = id
            self.run = run
            self.owner = owner
            self.open = open
            self.entries = entries
            self.runOwner = runOwner
            self.runFinishedAt = runFinishedAt
            self.mayBeOlder = mayBeOlder
        }
    }

    /// The facts from a delivery's row.
    package struct Standing {
        package var state: DeliveryState
        /// The number of its leases that have ended.
        package var leases: Int

        package init(state: DeliveryState, leases: Int) {
            self.state = state
            self.leases = leases
        }
    }

    private struct Flight: Hashable {
        var run: Int64
        var device: Int64
        var number: Int
    }

    private var inFlight: Set<Flight> = []
    package private(set) var faults: [StoreFault] = []
    package private(set) var doubles: [StoreFault] = []

    package init() {}

    /// - Parameter standing: returns the facts of a device's delivery in the lease's run; `nil` if there is none.
    package mutating func check(_ lease: Lease, standing: (Int64) throws -> Standing?) rethrows {
        if let problem = Self.ownership(lease) {
            faults.append(StoreFault(run: lease.run, "lease \(lease.id) \(problem)"))
        }
        if lease.entries.count % LeaseEntry.byteCount != 0 {
            let length = lease.entries.count.counted("byte")
            faults.append(StoreFault(run: lease.run, "lease \(lease.id) is cut off after \(length)"))
        }
        var waiting = 0
        for entry in LeaseEntry.unpack(lease.entries) {
            if isWaiting(entry, lease, try standing(entry.device)) { waiting += 1 }
        }
        if lease.open != waiting {
            faults.append(
                StoreFault(
                    run: lease.run,
                    "lease \(lease.id) waits for \(lease.open.counted("outcome")), but its deliveries wait for \(waiting)"
                ))
        }
    }

    /// Returns `nil` if the ownership is right. After a crash, a lease of the previous owner is allowed until its
    /// recovery.
    private static func ownership(_ lease: Lease) -> String? {
        if lease.runFinishedAt != nil { return "is open, but its run is over" }
        guard let owner = lease.runOwner else { return "has no owner: its run has no owner" }
        guard lease.owner != owner else { return nil }
        return lease.mayBeOlder ? nil : "belongs to \(lease.owner), but its run belonged to \(owner) then"
    }

    private mutating func isWaiting(_ entry: LeaseEntry, _ lease: Lease, _ standing: Standing?) -> Bool {
        guard let standing else {
            faults.append(
                StoreFault(
                    run: lease.run, device: entry.device, "lease \(lease.id) names a delivery that does not exist"))
            return false
        }
        guard entry.number > standing.leases else { return false }
        if standing.state != .pending {
            doubles.append(
                StoreFault(
                    run: lease.run, device: entry.device,
                    "\(standing.state.name) after \(standing.leases.counted("lease")), but still in lease \(lease.id) "
                        + "as number \(entry.number)"))
            return false
        }
        if !inFlight.insert(Flight(run: lease.run, device: entry.device, number: entry.number)).inserted {
            doubles.append(
                StoreFault(
                    run: lease.run, device: entry.device,
                    "its lease number \(entry.number) is in lease \(lease.id) and in an earlier lease"))
        }
        return true
    }
}
