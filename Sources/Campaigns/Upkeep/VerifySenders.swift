import Model
import Sending
import Store

/// What the senders of a store have written beside it, held against what the store says of them.
struct VerifySenders {
    static let ownership = "ownership"
    static let ownershipPromise = "who stands under a run or a lease is a sender that there was"
    static let journals = "journals"
    static let journalsPromise = "what a sender that is gone left in flight can be told apart by its journal"

    let store: any SendingStore
    let senders: SenderFolder

    func checks() async throws -> [Verification.Check] {
        let owners = try await store.ownersOnRecord().sorted()
        let journals = senders.journals(of: store)
        let leaseholders = try await leaseholders()
        var strangers: [StoreFault] = []
        var unreadable: [StoreFault] = []
        for owner in owners {
            if senders.wasNeverDrawn(owner) {
                strangers.append(StoreFault("\(ProcessName.shown(owner)) has a number that no sender has had"))
            }
            guard let run = leaseholders[owner], senders.liveness(of: owner) == .gone,
                case .failure(let why) = journals.evidence(owner)
            else { continue }
            unreadable.append(
                StoreFault(
                    run: run, "all that \(ProcessName.shown(owner)), which is gone, had leased is in doubt: \(why)"))
        }
        return [
            Verification.Check(
                Self.ownership, Self.ownershipPromise, faults: strangers, compared: owners.count),
            Verification.Check(
                Self.journals, Self.journalsPromise, faults: unreadable, compared: leaseholders.count),
        ]
    }

    /// Who has leases, with the first run of each.
    private func leaseholders() async throws -> [String: Int64] {
        var found: [String: Int64] = [:]
        for run in try await store.runsWithLeases() {
            for lease in try await store.leasesLeft(run, exceptBy: nil) where found[lease.owner] == nil {
                found[lease.owner] = run
            }
        }
        return found
    }
}
