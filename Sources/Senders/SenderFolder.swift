import APNs
import Foundation
package import Model
package import Store
import Synchronization

/// The folder beside a store in which each sender holds a kernel lock until its process exits. If the store is on a
/// server, the folder is in a state folder of this machine, for this machine's senders.
///
/// A held lock means that the sender is alive, even if it does not respond: it may be stopped, frozen or swapped out. A
/// free lock means that it is dead. This needs no PID, boot id or clock, so it also works between containers that share
/// the folder, and without `/proc`.
///
///     lock          byte 0: briefly, by a process that draws a number; byte 1: by the daemon; byte n: by sender n
///     17.sender     the description of sender 17, for display only
///     17.journal    what sender 17 has started and heard
///
/// The locks belong to open file descriptions (fcntl(2)). Unlike traditional record locks, they stay when another part
/// of the process closes the same file. A number is never drawn twice from one lock file. The name of a sender contains
/// the lock file's epoch, so a number from a deleted lock file has no meaning here.
package struct SenderFolder: Sendable {
    package let path: String
    /// The path whose owner also gets the files that root creates here.
    private let ownedAs: String
    /// Whether other machines send from the store too. This machine cannot see their locks.
    private let isOneOfSeveral: Bool
    private let command: String
    let now: @Sendable () -> Timestamp
    let locks: FileLocks

    var lockPath: String { path + "/lock" }
    /// The name prefix of the folders for stores on a server.
    package static let namePrefix = "senders-"

    /// - Parameters:
    ///   - store: the path of the store's file. All links to one store lead to the same folder.
    ///   - command: the command of this process, shown to people who wait for it.
    package init(
        besideStore store: String, command: String, now: @escaping @Sendable () -> Timestamp,
        locks: FileLocks = .kernel
    ) {
        ownedAs = Self.resolved(store)
        path = ownedAs + Self.suffix
        isOneOfSeveral = false
        self.command = command
        self.now = now
        self.locks = locks
    }

    /// Creates the folder's value for a store on a server. Senders of other machines never count as dead here.
    ///
    /// - Parameters:
    ///   - namespace: the store's namespace, by which this machine distinguishes its stores.
    ///   - state: the folder for Fanfare's state on this machine. It is created if it is missing.
    package init(
        ofStoreElsewhere namespace: (high: UInt64, low: UInt64), in state: String, command: String,
        now: @escaping @Sendable () -> Timestamp, locks: FileLocks = .kernel
    ) {
        let digits = String(namespace.high >> 32, radix: 16)
        ownedAs = state
        path = "\(state)/\(Self.namePrefix)\(String(repeating: "0", count: 8 - digits.count))\(digits)"
        isOneOfSeveral = true
        self.command = command
        self.now = now
        self.locks = locks
    }

    /// Registers this process as a sender, under a number never used before. Throws ``SenderError`` on failure.
    package func register() throws -> SenderRegistration {
        try makeFolder()
        let (file, name) = try drawing { file in try draw(file) }
        do {
            let record = SenderRecord(start: ProcessEntry.current?.start, beganAt: now().milliseconds, command: command)
            try write(JSONEncoder().encode(record), to: recordPath(name.number))
        } catch {
            close(file)
            throw error
        }
        stopFile.keepSpare()
        return SenderRegistration(name, file, folder: self, locks)
    }

    /// Returns whether the sender that owns a run is alive.
    package func liveness(of owner: String) -> SenderLiveness {
        guard let name = SenderName(parsing: owner) else {
            return ProcessName.hasEnded(owner)
                ? .gone
                : .unknown("an older Fanfare claimed the run, and may be alive; stop it, or restart this machine")
        }
        // Locks are not visible across machines, even if the machines share the folder.
        if isOneOfSeveral, name.host != Self.host { return stranger }
        return reading(missing: stranger) { file in
            let isHeld = try locks.isHeld(name.number, of: file, lockPath)
            guard let header = try LockFile(reading: file, lockPath) else {
                return isHeld ? .unknown("\(lockPath) is empty while a process sends") : stranger
            }
            guard header.epoch == name.epoch else { return stranger }
            return isHeld ? .held : .gone
        }
    }

    /// The liveness of a sender with another epoch: its lock file was deleted, or the store is a copy.
    private var stranger: SenderLiveness {
        isOneOfSeveral ? .unknown("it is a sender of another machine, which `fanfare status` shows") : .gone
    }

    /// Returns whether a sender may be alive. The store does not take over from such a sender.
    package func isAlive(_ owner: String) -> Bool { liveness(of: owner) != .gone }

    /// Returns whether the name has this lock file's epoch and a number that was never drawn.
    package func wasNeverDrawn(_ owner: String) -> Bool {
        guard let name = SenderName(parsing: owner), let header = try? header(), header.epoch == name.epoch else {
            return false
        }
        return name.number >= header.next
    }

    /// Returns the path of that sender's journal, or `nil` if the sender has another epoch.
    package func journalPath(ofOwner name: String) -> String? {
        guard let name = SenderName(parsing: name), (try? header())?.epoch == name.epoch else { return nil }
        return journalPath(name.number)
    }

    /// Deletes the files of a dead sender, once they are no longer needed.
    package func remove(_ number: Int64) {
        for path in [recordPath(number), journalPath(number)] { unlink(path) }
    }

    /// Deletes the files of all dead senders that own no run and no lease.
    package func removeUnneeded(_ store: any RunOwnership) async throws {
        // Find the dead senders before the needed names, because a dead sender can no longer claim anything.
        let gone = numbers().filter { isHeld($0) == .gone }
        guard !gone.isEmpty, let epoch = try header()?.epoch else { return }
        let needed = Set(
            try await store.ownersOnRecord().compactMap(SenderName.init).filter { $0.epoch == epoch }.map(\.number))
        for number in gone where !needed.contains(number) { remove(number) }
    }

    /// Returns the owner's description, for a person.
    package func holder(_ owner: String) -> RunHolder {
        // The files here say nothing about a sender of another machine, even if it has the same number.
        let name = SenderName(parsing: owner).flatMap { name in
            isOneOfSeveral && (try? header())?.epoch != name.epoch ? nil : name
        }
        let record = name.flatMap { name in
            FileManager.default.contents(atPath: recordPath(name.number))
                .flatMap { try? JSONDecoder().decode(SenderRecord.self, from: $0) }
        }
        let wait = name.flatMap { JournalNote.read(path: journalPath($0.number)) }.flatMap(StoreWait.init)
        return RunHolder(owner, liveness(of: owner), record, wait)
    }

    /// Returns a person-readable name of a living sender of the store, or `nil` if there is none.
    package func livingSender() -> String? {
        let numbers = numbers().filter { isHeld($0) == .held }
        guard let number = numbers.last else { return nil }
        let record = FileManager.default.contents(atPath: recordPath(number))
            .flatMap { try? JSONDecoder().decode(SenderRecord.self, from: $0) }
        return "sender \(number)" + (record.map { " (\($0.command))" } ?? "")
    }

    /// Returns the daemon that holds the daemon's lock, or `nil` if there is none.
    package func daemon() -> RunHolder? {
        guard isHeld(LockFile.daemon) == .held, let name = (try? header())?.daemon else { return nil }
        let daemon = holder(name)
        // If the named daemon has ended, the new daemon has not written its name yet.
        return daemon.state == .ended ? nil : daemon
    }

    func setDaemon(_ name: SenderName, _ file: Int32) throws {
        try locks.whileHolding(LockFile.drawing, of: file, lockPath) {
            guard var header = try LockFile(reading: file, lockPath) else { return }
            header.daemon = name.text
            try header.write(to: file, lockPath)
        }
    }

    func journalPath(_ number: Int64) -> String { "\(path)/\(number).journal" }
    private func recordPath(_ number: Int64) -> String { "\(path)/\(number).sender" }
}

extension SenderFolder {
    /// Opens or creates the lock file, and holds its first byte while `body` runs. The file stays open.
    private func drawing<Value>(_ body: (Int32) throws -> Value) throws -> (Int32, Value) {
        while true {
            let file = locks.open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else { throw LockFile.failure(-file, lockPath) }
            do {
                let value: Value? = try locks.whileHolding(LockFile.drawing, of: file, lockPath) {
                    // Another process may have deleted the file meanwhile.
                    guard LockFile.isAt(lockPath, file) else { return nil }
                    fchmod(file, 0o600)
                    handOver(lockPath)
                    return try body(file)
                }
                if let value { return (file, value) }
            } catch {
                close(file)
                throw error
            }
            close(file)
        }
    }

    private static let host = ProcessInfo.processInfo.hostName.replacing(":", with: "-")

    private func draw(_ file: Int32) throws -> SenderName {
        var header =
            try header(of: file) ?? LockFile(epoch: UUID().uuidString.lowercased(), next: LockFile.firstSender)
        // Files with higher numbers exist only if the lock file was recreated, or restored from a copy.
        var number = max(header.next, (numbers().max() ?? 0) + 1)
        while try !locks.take(number, of: file, lockPath) { number += 1 }
        header.next = number + 1
        try header.write(to: file, lockPath)
        switch isHeld(number) {
        case .held: break
        case .gone: throw SenderError.noLocks(path: path, reason: "a lock was granted but does not hold")
        case .unknown(let reason): throw SenderError.senderFolder(path: path, reason: reason)
        }
        return SenderName(host: Self.host, pid: getpid(), number: number, epoch: header.epoch)
    }

    /// Returns `nil` if no header exists, or it is damaged and no process holds a lock.
    private func header(of file: Int32) throws -> LockFile? {
        do {
            if let header = try LockFile(reading: file, lockPath) { return header }
        } catch SenderError.lockFileDamaged {}
        // A new epoch would make all running senders appear dead.
        guard try !locks.isHeld(LockFile.daemon, length: 0, of: file, lockPath) else {
            throw SenderError.lockFileDamaged(path: lockPath)
        }
        return nil
    }

    /// Reads the lock file through a separate descriptor, because a lock is invisible to its own descriptor.
    ///
    /// - Parameter missing: the result if there is no lock file.
    private func reading(missing: SenderLiveness, _ look: (Int32) throws -> SenderLiveness) -> SenderLiveness {
        let file = locks.open(lockPath, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            return [ENOENT, ENOTDIR].contains(-file) ? missing : .unknown("\(lockPath): \(LockFile.summary(-file))")
        }
        defer { close(file) }
        do { return try look(file) } catch { return .unknown("\(error)") }
    }

    private func isHeld(_ byte: Int64) -> SenderLiveness {
        reading(missing: .gone) { try locks.isHeld(byte, of: $0, lockPath) ? .held : .gone }
    }

    func header() throws -> LockFile? {
        let file = locks.open(lockPath, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return try LockFile(reading: file, lockPath)
    }

    /// Returns the numbers of all senders that left a file here.
    private func numbers() -> [Int64] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return Set(names.compactMap { $0.split(separator: ".").first.flatMap { Int64($0) } }).sorted()
    }

    func makeFolder() throws {
        if isOneOfSeveral { try makeFolders(to: ownedAs) }
        if mkdir(path, 0o700) == 0 {
            // The umask may have changed the mode.
            chmod(path, 0o700)
            handOver(path)
        } else if errno != EEXIST {
            throw LockFile.failure(errno, path)
        }
    }

    /// Creates a user's missing folders, accessible only to that user.
    private func makeFolders(to folder: String) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw SenderError.senderFolder(path: folder, reason: "it cannot be created: \(error.localizedDescription)")
        }
    }

    func write(_ data: Data, to path: String) throws {
        let file = locks.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { throw LockFile.failure(-file, lockPath) }
        defer { close(file) }
        fchmod(file, 0o600)
        handOver(path)
        guard Foundation.write(file, Array(data), data.count) == data.count else { throw LockFile.failure(errno, path) }
    }

    /// Gives root's files to the store's owner, as SQLite does with the files beside a store. Otherwise the service
    /// could not enter the folder after a command in a root shell.
    func handOver(_ path: String) {
        var store = stat()
        guard geteuid() == 0, stat(ownedAs, &store) == 0, store.st_uid != 0 else {
            return
        }
        lchown(path, store.st_uid, store.st_gid)
    }

    /// Returns the path with all links followed, as the kernel does. A link may lead to a store that does not exist
    /// yet.
    private static func resolved(_ path: String) -> String {
        var path = path
        for _ in 0..<40 {
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else { break }
            path = target.hasPrefix("/") ? target : "\(split(path).folder)/\(target)"
        }
        let (folder, name) = split(path)
        guard let real = realpath(folder, nil) else { return "\(folder)/\(name)" }
        defer { free(real) }
        return "\(String(cString: real) == "/" ? "" : String(cString: real))/\(name)"
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let folder = path[..<slash]
        return (folder.isEmpty ? "/" : String(folder), String(path[path.index(after: slash)...]))
    }
}

/// The registration of a process as a sender of a store. Its lock ends with ``release()`` or the process.
///
/// The lock belongs to an open file description that programs started by this process do not inherit.
package final class SenderRegistration: Sendable {
    package let number: Int64
    /// The name of the owner in a run. ``ProcessName/shown(_:)`` makes it readable.
    package let name: String
    private let folder: SenderFolder
    private let locks: FileLocks
    /// The open lock file. Negative after ``release()``.
    private let file: Mutex<Int32>

    init(_ name: SenderName, _ file: Int32, folder: SenderFolder, _ locks: FileLocks) {
        number = name.number
        self.name = name.text
        self.folder = folder
        self.locks = locks
        self.file = Mutex(file)
    }

    deinit { release() }

    package var journalPath: String { folder.journalPath(number) }

    /// Whether the lock file is still in place. If not, this sender counts as dead and must stop.
    package var isIntact: Bool { file.withLock { $0 >= 0 && LockFile.isAt(folder.lockPath, $0) } }

    package func requireIntact() throws {
        guard isIntact else { throw SenderError.registrationLost(path: folder.lockPath) }
    }

    /// Makes this process the store's only daemon. Returns `false` if another process is the daemon.
    package func becomeDaemon() throws -> Bool {
        try file.withLock { file in
            guard file >= 0, try locks.take(LockFile.daemon, of: file, folder.lockPath) else { return false }
            if let name = SenderName(parsing: name) { try folder.setDaemon(name, file) }
            return true
        }
    }

    /// Releases the lock, so that this sender is dead. ``SenderFolder/removeUnneeded(_:)`` deletes its files.
    package func release() {
        file.withLock { file in
            guard file >= 0 else { return }
            // Unlock before closing: a child between fork and exec still has the file open.
            _ = locks.lock(file, .set, Int16(F_UNLCK), 0, 0)
            close(file)
            file = -1
        }
    }
}
