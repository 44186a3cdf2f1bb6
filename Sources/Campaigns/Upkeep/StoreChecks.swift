import Foundation
import Model
import Senders
import Store

/// Checks the store, its senders and the free disk space.
struct StoreChecks {
    /// The minimum free space. A broadcast to some millions of devices writes about this much.
    private static let freeBytesMin = 500_000_000

    let address: String
    /// The people that the configuration names.
    let people: ConfiguredPeople
    let probes: DiagnoseInstallation.Probes
    let now: Timestamp

    /// The address as people see it.
    private var path: String { StoreAddress(address).description }
    private var folder: String { URL(fileURLWithPath: path).deletingLastPathComponent().path }

    func all() async -> [Finding] { StoreAddress(address).isURL ? await onServer() : await file() }

    private func onServer() async -> [Finding] {
        await opened() + [.skipped(.disk, "the store is on a database server; check the disk space there")]
    }

    private func file() async -> [Finding] {
        guard FileManager.default.fileExists(atPath: folder) else {
            if isOfService { return [missing] }
            return [.wrong(.store, "the folder of \(path) does not exist; create it, or change `store`")]
        }
        guard FileManager.default.fileExists(atPath: path) else {
            return [missing] + disk(0)
        }
        if let kind = probes.machine.networkFileSystem(folder) {
            return [
                .wrong(
                    .store,
                    "\(folder) is on \(kind); a store needs a local file system with working locks: move it to one")
            ] + disk(bytes) + set()
        }
        // This process must not have the store open yet.
        let locked = await probes.storeLock(path).map { holder in
            Finding.wrong(
                .store,
                "\(path) is locked: \(holder) has kept it from every other writer for at least "
                    + "\(WrittenDuration.text(DiagnoseInstallation.Probes.lockedFor)), and nothing can be sent or recorded "
                    + "meanwhile; wait until that process is done, or end it")
        }
        return [locked].compactMap(\.self) + (await opened()) + disk(bytes) + set()
    }

    private var missing: Finding {
        let way = isOfService ? "`systemctl start fanfare`" : "`fanfare devices import`"
        return .warning(
            .store,
            "there is no store yet at \(path), where `store` says; correct `store` if the store is elsewhere, else \(way) "
                + "creates it")
    }

    /// Whether the folder is the service's state folder, which systemd creates for the service's user.
    private var isOfService: Bool { folder == probes.service?.stateFolder ?? "/var/lib/fanfare" }

    private func opened() async -> [Finding] {
        do {
            let opened = try await probes.openStore(address)
            let store: any StoreUpkeep & SenderLog = opened.store
            defer { try? store.close() }
            let size = try await store.size()
            let runs = try await store.observation(now: now).runs.filter { $0.value > 0 }
                .map { "\($0.value) \($0.key.rawValue)" }.sorted().joined(separator: ", ")
            let summary = "\(path): \(Self.megabytes(size.bytes)); runs: \(runs.isEmpty ? "none yet" : runs)"
            let obstacle = try await store.audienceSQLObstacle()
            return [.ok(.store, summary)] + (try await restore(of: opened.store))
                + [obstacle].compactMap(\.self).map { .warning(.store, "audience_sql: \($0)") }
                + missingTokens(try await opened.store.accessTokens())
                + (try await server(of: store)) + [try await daemon(opened.senders, store)]
        } catch StoreError.noStore where StoreAddress(address).isURL {
            return [missing]
        } catch {
            let isOutage = Failure(error)?.kind == .unavailable
            return Finding.sentences(of: error).map { .wrong(.store, $0, isOutage: isOutage) }
        }
    }

    /// Tells of the time that the store lost in a restore, and warns of runs that wait because of it.
    private func restore(of store: any StoreUpkeep & RunLog) async throws -> [Finding] {
        let gap = try await store.restoreGap()
        let waiting = try await store.haltedRuns().filter { $0.halt == .restored }.map { "\($0.id)" }
        let lost = gap.map {
            "the store is a backup from \($0.madeAt.iso8601), restored at \($0.restoredAt.iso8601), and lacks what was "
                + "sent in between"
        }
        guard !waiting.isEmpty else { return lost.map { [.ok(.store, $0)] } ?? [] }
        return [
            .warning(
                .store,
                (lost.map { "\($0); " } ?? "") + "paused as restored: \(waiting.joined(separator: ", ")); check what "
                    + "was sent, then `fanfare resume RUN` or `fanfare cancel RUN` for each")
        ]
    }

    /// Whether `people` names any access token.
    var namesTokens: Bool { !people.tokenNames.isEmpty || !people.tokenIDs.isEmpty }

    /// Warns of accounts that `people` assigns to a person, and that belong to no token.
    func missingTokens(_ tokens: [AccessToken]) -> [Finding] {
        let tokens = tokens.filter { $0.nameOfHolder != nil }
        let names = people.tokenNames.filter { account in
            !tokens.contains { AccountName.isSame("token:\($0.name)", account) }
        }
        let ids = people.tokenIDs.subtracting(tokens.map(\.id)).map { "token:#\($0)" }
        let missing = (names + ids).sorted()
        guard !missing.isEmpty else { return [] }
        return [
            .warning(
                .configuration,
                "`people` names \(missing.joined(separator: ", ")), but no such access token exists; create it with "
                    + "`fanfare tokens create`, or correct the name (`fanfare tokens list` shows names and ids)")
        ]
    }

    private func server(of store: any StoreUpkeep & SenderLog) async throws -> [Finding] {
        guard let server = try await store.server() else { return [] }
        return ServerChecks(server: server, senders: try await store.senders()).warnings
    }

    /// On a database server the daemon may be on another machine.
    private func daemon(_ senders: SenderFolder, _ store: any SenderLog) async throws -> Finding {
        guard let daemon = senders.daemon() else {
            if let other = try await store.senders().first(where: { $0.isCoordinator && $0.state == .alive }) {
                return .ok(.daemon, "running: \(ProcessName.shown(other.name))")
            }
            return .ok(.daemon, "none is running; runs are started by timers or by hand")
        }
        return .ok(.daemon, "running: \(daemon.summary)")
    }

    private func disk(_ storeBytes: Int) -> [Finding] { Self.disk(folder, storeBytes: storeBytes) }

    static func disk(_ folder: String, storeBytes: Int) -> [Finding] {
        guard let facts = try? FileManager.default.attributesOfFileSystem(forPath: folder),
            let free = (facts[.systemFreeSize] as? NSNumber)?.intValue
        else { return [.skipped(.disk, "the file system of \(folder) does not report its free space")] }
        let summary = "\(megabytes(free)) free for \(folder)"
        if free < freeBytesMin { return [.wrong(.disk, "\(summary), which a broadcast can fill; free disk space")] }
        guard free > storeBytes else {
            return [
                .warning(
                    .disk, "\(summary), less than the store uses: a backup needs the same space again; free disk space")
            ]
        }
        return [.ok(.disk, summary)]
    }

    private var bytes: Int {
        ((try? FileManager.default.attributesOfItem(atPath: resolved(path)))?[.size] as? NSNumber)?.intValue ?? 0
    }

    /// Reports a store that was last written more than 300 s in the future: this machine's clock went back.
    private func set() -> [Finding] {
        let written = (try? FileManager.default.attributesOfItem(atPath: resolved(path)))?[.modificationDate] as? Date
        guard let written, Timestamp(written) > now + .seconds(300) else { return [] }
        return [
            .wrong(
                .clock,
                "\(path) was last written on \(Timestamp(written).iso8601), in this machine's future; set the clock "
                    + "(timedatectl)")
        ]
    }

    private static func megabytes(_ bytes: Int) -> String {
        bytes < 10_000_000_000 ? "\(bytes / 1_000_000) MB" : "\(bytes / 1_000_000_000) GB"
    }
}
