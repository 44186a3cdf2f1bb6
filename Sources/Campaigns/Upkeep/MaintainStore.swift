package import Model
package import Senders
package import Store

/// Maintains a store as a whole: verification, copies and retention.
package struct MaintainStore: Sendable {
    private let store: any StoreUpkeep & AuditLog & RunOwnership & DeliveryQueue

    package init(store: any StoreUpkeep & AuditLog & RunOwnership & DeliveryQueue) {
        self.store = store
    }

    /// Checks everything the store promises, row by row, and changes nothing.
    ///
    /// - Parameters:
    ///   - configuration: has the silent budgets of the apps; `nil` to skip the check of background pushes against
    ///     them.
    ///   - senders: the senders' folder beside the store.
    package func verify(
        _ configuration: Configuration?, senders: SenderFolder, faultsMax: Int
    ) async throws -> Verification {
        let budgets = (configuration?.apps ?? []).map { ($0.topic, $0.silentBudget) }
        var found = try await store.verify(
            budgets: Dictionary(budgets, uniquingKeysWith: { first, _ in first }), faultsMax: faultsMax)
        found.checks += try await VerifySenders(store: store, senders: senders).checks()
        return found
    }

    /// Checks a copy in the same way. A copy has no senders' folder beside it.
    package func verifyCopy(_ configuration: Configuration) async throws -> Verification {
        let budgets = configuration.apps.map { ($0.topic, $0.silentBudget) }
        return try await store.verify(
            budgets: Dictionary(budgets, uniquingKeysWith: { first, _ in first }), faultsMax: 20)
    }

    /// Throws for a store that only its server can restore. The failure says what to do there.
    package static func requireRestorable(_ configuration: Configuration, from file: String) throws {
        guard let server = StoreAddress(configuration.store).postgres else { return }
        throw Failure(
            .configuration,
            "\(server) must be restored with the server's own tools, and Fanfare then cannot detect the restore: stop "
                + "every sender, restore with pg_restore, run `fanfare stop --all --reason restored`, then `fanfare "
                + "restore --mark --since TIME` with the time at which the dump began; resume or cancel each run that "
                + "is then paused as restored, and only then lift the stop and start the senders. Without the mark, "
                + "pushes sent since the dump are sent again"
        )
    }

    /// See ``StoreUpkeep/markRestored(since:by:now:)``.
    package func markRestored(since madeAt: Timestamp, by actor: Actor, now: Timestamp) async throws -> RestoredStore? {
        try await store.markRestored(since: madeAt, by: actor, now: now)
    }

    /// Throws for a store in a file, because `fanfare restore FILE` marks it.
    package static func requireMarkable(_ configuration: Configuration) throws {
        guard StoreAddress(configuration.store).postgres == nil else { return }
        throw Failure(
            .configuration,
            "\(configuration.store) is a file, and --mark is for a store on PostgreSQL; `fanfare restore FILE` restores "
                + "a file and marks it")
    }

    /// Throws for a store that only its server can copy. The failure names the command that does.
    package static func requireFile(_ configuration: Configuration, to file: String) throws {
        guard let server = StoreAddress(configuration.store).postgres else { return }
        throw Failure(
            .configuration,
            "\(server) must be copied with the server's own tools, which also work while it is in use; run: "
                + "\(server.dumpCommand(to: file))"
        )
    }

    /// Copies the store as it is now, whole and checked, and records the backup.
    package func backUp(to file: String, overwriting: Bool, by actor: Actor, now: Timestamp) async throws
        -> BackupResult
    {
        let result = try await copy(to: file, overwriting: overwriting)
        try await store.recordEvent(kind: .backedUp, run: nil, actor: actor, detail: file, now: now)
        return result
    }

    /// Copies the store without an entry in the audit, for a store that cannot be written.
    package func copy(to file: String, overwriting: Bool) async throws -> BackupResult {
        let summary: BackupSummary
        do {
            summary = try await store.backUp(to: file, overwriting: overwriting)
        } catch let error as StoreError {
            throw error.ofBackup(file)
        }
        return BackupResult(
            file: file, bytes: summary.bytes, devices: summary.devices, runs: summary.runs,
            storeVersion: summary.version)
    }

    /// Deletes the outcomes by device of runs that have been over for longer than `age`. With `isDryRun`, only counts
    /// them.
    package func pruneOutcomes(
        olderThan age: Duration, isDryRun: Bool, by actor: Actor, now: Timestamp
    ) async throws -> OutcomePruneCounts {
        try await store.pruneOutcomes(finishedBefore: now - age, dryRun: isDryRun, now: now, by: actor)
    }

    /// Returns free space to the disk. A store created before version 3 blocks its writers during the first call.
    package func shrink() async throws { try await store.shrink() }

    package func size() async throws -> StoreSize { try await store.size() }
}

extension StoreError {
    /// Describes a fault at the path of the backup. The message does not blame `store` in the configuration.
    fileprivate func ofBackup(_ file: String) -> any Error {
        let kind = Failure(self)?.kind ?? .internalError
        return switch self {
        case .noFolder:
            Failure(kind, "the folder of the backup \(file) does not exist; create it, or name another path")
        case .cannotOpen(file, let reason):
            Failure(
                kind,
                "cannot write the backup \(file): \(reason); check the permissions of its folder, or name another path")
        case .readOnly(file): Failure(kind, "the backup \(file) cannot be written; check the permissions of its folder")
        case .diskFull(file):
            Failure(kind, "no free space for the backup \(file); free disk space, or name another path")
        default: self
        }
    }
}

/// The stable shape of `verify --json`.
package struct VerificationResult: Codable, Hashable, Sendable {
    package struct Check: Codable, Hashable, Sendable {
        package var name, promise: String
        package var faultCount: Int
        package var faults: [Fault]
        /// A fact that is no fault. Absent if there is none.
        package var remark: String?
    }

    package struct Fault: Codable, Hashable, Sendable {
        package var run: Int64?
        package var device: Int64?
        package var token: String?
        package var what: String
    }

    package var store: String
    package var isSound: Bool
    package var faultCount: Int
    package var checks: [Check]

    package init(store path: String, _ verification: Verification) {
        store = path
        isSound = verification.isSound
        faultCount = verification.faultCount
        checks = verification.checks.map { check in
            Check(
                name: check.name, promise: check.promise, faultCount: check.faultCount,
                faults: check.faults.map {
                    Fault(run: $0.run, device: $0.device, token: $0.tokenEnd.map { "…\($0)" }, what: $0.what)
                }, remark: check.remark)
        }
    }
}

/// The stable shape of `backup --json`.
package struct BackupResult: Codable, Hashable, Sendable {
    package var file: String
    package var bytes, devices, runs, storeVersion: Int
}

/// The stable shape of `restore --json`.
package struct RestoreResult: Codable, Hashable, Sendable {
    package var file, store: String
    /// Where the previous store is now; absent if there was none.
    package var setAside: String?
    /// The time of the backup.
    package var madeAt: String?
    package var devices, runs: Int
    /// The runs that were open in the backup, and wait for a person.
    package var openRuns: [Int64]

    package init(file: String, store: String, setAside: String?, copy: BackupSummary, restored: RestoredStore?) {
        self.file = file
        self.store = store
        self.setAside = setAside
        madeAt = restored?.madeAt.iso8601
        (devices, runs) = (copy.devices, copy.runs)
        openRuns = restored?.runs.map(\.id) ?? []
    }

    package var text: String {
        "\(store): restored from \(file), \(devices.counted("device")), \(runs.counted("run"))"
            + (setAside.map { "; the previous store is now \($0)" } ?? "")
    }
}

/// The stable shape of `restore --mark --json`.
package struct RestoreMarkResult: Codable, Hashable, Sendable {
    package var store: String
    /// The time of the dump.
    package var madeAt: String
    /// Whether this command has marked the store. `false` if the store had this mark already.
    package var marked: Bool
    /// The runs that were open in the dump, and wait for a person.
    package var openRuns: [Int64]

    package init(store: String, madeAt: Timestamp, restored: RestoredStore?) {
        self.store = store
        self.madeAt = madeAt.iso8601
        marked = restored != nil
        openRuns = restored?.runs.map(\.id) ?? []
    }

    package var text: String {
        marked
            ? "\(store): marked as restored from a backup of \(madeAt)"
            : "\(store): already marked as restored from a backup of \(madeAt); nothing was changed"
    }
}

/// The stable shape of `prune-outcomes --json`.
package struct OutcomePruneResult: Codable, Hashable, Sendable {
    package var deleted: Bool
    package var runs: Int
    package var outcomes: Int
    package var kept: Int
    package var storeBytes: Int
    package var freeBytes: Int

    package init(_ counts: OutcomePruneCounts, _ size: StoreSize) {
        deleted = counts.runs > 0
        runs = counts.runs
        outcomes = counts.deliveries
        kept = counts.kept
        storeBytes = size.bytes
        freeBytes = size.freeBytes
    }
}

/// Compares the files that the senders keep beside the store with the store's records of the senders.
struct VerifySenders {
    static let ownership = "ownership"
    static let ownershipPromise = "every owner of a run or lease is a known sender"
    static let journals = "journals"
    static let journalsPromise = "the journal of every dead sender tells which of its deliveries were sent"

    let store: any StoreUpkeep & RunOwnership & DeliveryQueue
    let senders: SenderFolder

    func checks() async throws -> [Verification.Check] {
        let owners = try await store.ownersOnRecord().sorted()
        let journals = senders.journals(of: store)
        let leaseholders = try await leaseholders()
        var strangers: [StoreFault] = []
        var unreadable: [StoreFault] = []
        for owner in owners {
            if senders.wasNeverDrawn(owner) {
                strangers.append(StoreFault("\(ProcessName.shown(owner)) has a number that was never assigned"))
            }
            guard let run = leaseholders[owner], senders.liveness(of: owner) == .gone,
                case .failure(let why) = journals.evidence(owner)
            else { continue }
            unreadable.append(
                StoreFault(
                    run: run, "every delivery leased by \(ProcessName.shown(owner)), which is dead, is in doubt: \(why)"
                ))
        }
        return [
            Verification.Check(
                Self.ownership, Self.ownershipPromise, faults: strangers, compared: owners.count),
            Verification.Check(
                Self.journals, Self.journalsPromise, faults: unreadable, compared: leaseholders.count),
        ]
    }

    /// Returns the owners of leases, with the first run of each.
    private func leaseholders() async throws -> [String: Int64] {
        var found: [String: Int64] = [:]
        for run in try await store.runsWithLeases() {
            for lease in try await store.abandonedLeases(run) where found[lease.owner] == nil {
                found[lease.owner] = run
            }
        }
        return found
    }
}
