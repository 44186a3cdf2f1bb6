import Campaigns
import Foundation
import Model
import PostgresStore
import SQLiteStore
import Senders
import Store
import Synchronization

/// Opens the store at an address: a SQLite file by its path, or a PostgreSQL database by its URL.
enum StoreOpening {
    /// The time without a heartbeat after which a sender is taken over. It is four times the trust window,
    /// ``SenderTrust/window``.
    private static let takeoverAfter: Duration = .seconds(10)

    /// Opens a store. Throws ``StoreError``, or a ``Failure`` of one line. No message contains a password.
    static func open(
        _ address: String, _ access: StoreAccess, isAlive: @escaping OwnerLiveness.IsAlive,
        livingSender: () -> String? = { nil }
    ) async throws -> any AllRoles {
        guard StoreAddress(address).isURL else {
            if access == .making { try requireNeverThere(address) }
            let store = try SQLiteFileStore(
                path: address, access: access, isAlive: isAlive, livingSender: livingSender, tell: { Console.note($0) })
            if let exposure = store.exposure { Console.note("warning: \(exposure)") }
            if let restored = store.restored { Console.note("warning: \(restored.summary)") }
            return store
        }
        do {
            return try await PostgresDatabase.open(
                url: address, access: access, takeoverAfter: takeoverAfter, isAlive: isAlive)
        } catch {
            throw failure(error)
        }
    }

    /// Throws if a store existed here and is missing now, because an empty store in its place would send everything
    /// again.
    private static func requireNeverThere(_ path: String) throws {
        let senders = SenderFolder(besideStore: path, command: ThisProcess.command, now: WallClock.system.now)
        // This is the store's path with its links resolved.
        let store = String(senders.path.dropLast(SenderFolder.suffix.count))
        guard access(store, F_OK) != 0 else { return }
        let file = URL(fileURLWithPath: store)
        let folder = file.deletingLastPathComponent().path
        let beside = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
        let stores = beside.filter { name in
            name.hasPrefix("\(file.lastPathComponent).before-") && !["-wal", "-shm"].contains { name.hasSuffix($0) }
        }
        let left = stores.map { "\(folder)/\($0)" } + (senders.hasDrawn ? [senders.path] : [])
        guard !left.isEmpty else { return }
        throw Failure(
            .configuration,
            "no store was created at \(path), because an earlier one left \(left.joined(separator: ", ")). Put the "
                + "store back, with `fanfare restore FILE` for instance; to start with an empty store, move these "
                + "files away first")
    }

    /// Opens a store together with its senders.
    static func open(_ address: String, _ access: StoreAccess) async throws -> OpenedStore {
        guard StoreAddress(address).isURL else {
            let senders = SenderFolder(
                besideStore: address, command: ThisProcess.command, now: WallClock.system.now)
            let store = try await open(
                address, access, isAlive: senders.isAlive, livingSender: senders.livingSender)
            return OpenedStore(store: store, senders: senders)
        }
        // The folder of the senders is known once the store has reported its name. Until then all senders count as
        // alive.
        let known = KnownSenders()
        let store = try await open(address, access, isAlive: known.isAlive)
        let senders = SenderFolder(
            ofStoreElsewhere: store.namespace, in: StateFolder.path(ProcessInfo.processInfo.environment),
            command: ThisProcess.command, now: WallClock.system.now)
        known.learn(senders)
        return OpenedStore(store: store, senders: senders)
    }

    /// Returns the folder of this machine's senders. For a store on a server, asks the server only if no sender has
    /// noted its folder yet, and if the server is unavailable, tries to find the folder without it.
    static func senders(_ address: String) async throws -> SenderFolder {
        let command = ThisProcess.command
        guard StoreAddress(address).isURL else {
            guard access(address, F_OK) == 0 else { throw StoreError.noStore(path: address, isEmptyFile: false) }
            return SenderFolder(besideStore: address, command: command, now: WallClock.system.now)
        }
        let (state, now) = (StateFolder.path(ProcessInfo.processInfo.environment), WallClock.system.now)
        if let known = SenderFolder.noted(store: address, in: state, command: command, now: now) { return known }
        do {
            return try await open(address, .reading).senders
        } catch let failure as Failure
            where [Failure.Kind.unavailable, .tryAgain, .configuration].contains(failure.kind)
        {
            // Only the server knows the store's name. If this machine sends from a single store, use that store's
            // folder.
            let names = ((try? FileManager.default.contentsOfDirectory(atPath: state)) ?? []).filter {
                $0.hasPrefix(SenderFolder.namePrefix)
            }
            guard names.count == 1, let only = SenderFolder.named(names[0], in: state, command: command, now: now)
            else {
                throw failure.with(
                    names.map { "`touch \(state)/\($0)/\(StopFile.name)` stops every process that sends from there" })
            }
            return only
        }
    }

    /// Returns the error for a database that cannot be opened, classified by its remedy: to wait, or to correct a
    /// setting.
    private static func failure(_ error: any Error) -> any Error {
        switch error {
        case StoreOpeningFault.noStore(let server): StoreError.noStore(path: server, isEmptyFile: false)
        // The replica may be about to take over from the primary.
        case StoreOpeningFault.readOnly(_, isReplica: true): Failure(.unavailable, "\(error)")
        case let fault as StoreOpeningFault: Failure(.configuration, fault.description)
        case let fault as PostgresAddressFault: Failure(.configuration, fault.description)
        case let error as PostgresError where error.isUnreachable: Failure(.unavailable, error.description)
        // The next start finds out whether the migration was recorded.
        case PostgresError.outcomeUnknown: Failure(.tryAgain, "\(error)")
        case let error as PostgresError where error.isBusy: Failure(.tryAgain, error.description)
        case let error as PostgresError: Failure(.configuration, error.description)
        default: error
        }
    }
}

/// The liveness check for a store whose senders are not known yet.
private final class KnownSenders: Sendable {
    private let senders = Mutex<SenderFolder?>(nil)

    func learn(_ folder: SenderFolder) { senders.withLock { $0 = folder } }

    @Sendable func isAlive(_ owner: String) -> Bool { senders.withLock { $0 }?.isAlive(owner) ?? true }
}

/// The folder for this machine's locks and journals, if the store is a database.
enum StateFolder {
    /// The folder of the service, see `StateDirectory=` of its unit.
    static let ofService = "/var/lib/fanfare"

    /// Returns the folder that systemd gives the service, else the one of XDG_STATE_HOME. Otherwise returns the
    /// service's folder if this process may write there, so that commands see the service's senders. The last choice is
    /// the user's folder.
    static func path(_ environment: [String: String]) -> String {
        let given = { (name: String) in environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        // systemd separates several folders with colons.
        if let state = given("STATE_DIRECTORY") { return String(state.prefix { $0 != ":" }) }
        if let state = given("XDG_STATE_HOME") { return "\(state)/fanfare" }
        if access(ofService, W_OK) == 0 { return ofService }
        return (given("HOME") ?? NSHomeDirectory()) + "/.local/state/fanfare"
    }
}
