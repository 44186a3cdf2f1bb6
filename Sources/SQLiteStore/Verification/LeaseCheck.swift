import Foundation
import GRDB
import Store
import Model

/// Leases against the runs that hold them and the deliveries they wait for.
struct LeaseCheck {
    static let name = "leases"
    static let promise = "a lease is held by its run's owner and waits for just its deliveries without an outcome"
    static let doubleName = "accepted_once"
    static let doublePromise = "nothing that was accepted is on its way again, and nothing is on its way twice"

    private struct Flight: Hashable {
        var run: Int64
        var device: Int64
        var number: Int
    }

    private let db: Database
    private var inFlight: Set<Flight> = []
    private(set) var faults: [StoreFault] = []
    private(set) var doubles: [StoreFault] = []

    init(_ db: Database) throws {
        self.db = db
        let leases = try Row.fetchCursor(
            db,
            sql: """
                SELECT lease.id, lease.run_id, lease.owner, lease.leased_at, lease.open, lease.entries, run.owner,
                    run.finished_at,
                    (SELECT max(at) FROM event WHERE event.run_id = run.id AND kind = :claimed)
                FROM lease JOIN run ON run.id = lease.run_id ORDER BY lease.id
                """, arguments: ["claimed": EventKind.runClaimed.rawValue])
        while let lease = try leases.next() { try check(lease) }
    }

    private mutating func check(_ lease: Row) throws {
        let id: Int64 = lease[0]
        let run: Int64 = lease[1]
        if let problem = Self.ownership(lease) { faults.append(StoreFault(run: run, "lease \(id) \(problem)")) }
        let packed: [UInt8] = Array(lease[5] as Data)
        if packed.count % LeaseEntry.byteCount != 0 {
            faults.append(StoreFault(run: run, "lease \(id) is cut off after \(packed.count) bytes"))
        }
        var waiting = 0
        for entry in LeaseEntry.unpack(packed) where try isWaiting(entry, run, lease: id) { waiting += 1 }
        let open: Int = lease[4]
        if open != waiting {
            faults.append(StoreFault(run: run, "lease \(id) waits for \(open) outcomes, its deliveries for \(waiting)"))
        }
    }

    /// Nil when all is right. A lease of the owner before the present one is what a crash leaves, until recovery.
    private static func ownership(_ lease: Row) -> String? {
        if lease[7] as Int64? != nil { return "is open, but its run is over" }
        guard let owner = lease[6] as String? else { return "has no owner: nobody holds its run" }
        let holder: String = lease[2]
        guard holder != owner else { return nil }
        let claimedAt = lease[8] as Int64? ?? .min
        return (lease[3] as Int64) >= claimedAt ? "is \(holder)'s, its run was \(owner)'s then" : nil
    }

    private mutating func isWaiting(_ entry: LeaseEntry, _ run: Int64, lease: Int64) throws -> Bool {
        let delivery = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT state, leases FROM delivery WHERE run_id = :run AND device_id = :device"),
            arguments: ["run": run, "device": entry.device])
        guard let delivery else {
            faults.append(
                StoreFault(run: run, device: entry.device, "lease \(lease) names a delivery that is not there"))
            return false
        }
        let state = DeliveryState(code: delivery[0])
        let leases: Int = delivery[1]
        guard entry.number > leases else { return false }
        if state != .pending {
            doubles.append(
                StoreFault(
                    run: run, device: entry.device,
                    "\(state.name) after \(leases) leases, and in lease \(lease) as number \(entry.number)"))
            return false
        }
        if !inFlight.insert(Flight(run: run, device: entry.device, number: entry.number)).inserted {
            doubles.append(
                StoreFault(
                    run: run, device: entry.device, "its lease \(entry.number) is lease \(lease) and one before"))
        }
        return true
    }
}
