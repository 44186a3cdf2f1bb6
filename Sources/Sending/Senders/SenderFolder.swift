import APNs
import Foundation
package import Model
package import Store
import Synchronization

/// The folder beside a store in which every process that sends holds a lock of the kernel for as long as it lives; of a
/// store that is no file of this machine's, the folder in which those of this machine do.
///
/// Held means alive, however long it is silent: stopped, frozen or swapped out. Free means gone, at once. No process
/// id, boot id or clock decides, so it holds between containers that share the folder, and where `/proc` shows nothing.
///
///     lock          byte 0: shortly, by whoever draws a number; byte 1: by the daemon; byte n: by sender n
///     17.sender     who sender 17 is, for display only
///     17.journal    what it has started and heard
///
/// The locks are those of open file descriptions (fcntl(2)): unlike the older ones they are not lost when some other
/// part of the process closes the same file. A number is never drawn twice from one lock file, and the name of a sender
/// holds the lock file's epoch: a number of a lock file that was deleted says nothing here.
package struct SenderFolder: Sendable {
    package let path: String
    /// Whose owner is the owner of what root makes here.
    private let ownedAs: String
    /// Others send from other machines, whose locks cannot be seen here.
    private let isOneOfSeveral: Bool
    private let command: String
    let now: @Sendable () -> Timestamp
    let locks: FileLocks

    var lockPath: String { path + "/lock" }
    /// Of the folders of stores elsewhere.
    package static let namePrefix = "senders-"

    /// - Parameters:
    ///   - store: the path of the store's file, by whatever links: all of them lead to one folder.
    ///   - command: what this process was started for, shown to those who wait for it.
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

    /// Of a store on a server: senders of other machines are unknown here, and never gone.
    ///
    /// - Parameters:
    ///   - namespace: the store's name, by which one machine tells its stores apart.
    ///   - state: the folder for what a program keeps on this machine; made where it is missing.
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

    /// A place among the senders, under a number that nobody had before. Throws ``SendingError`` where the file system
    /// keeps no such locks, or the folder cannot be written.
    package func take() throws -> SenderPost {
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
        return SenderPost(name, file, folder: self, locks)
    }

    /// Whether the sender behind the name of a run's owner lives.
    package func liveness(of owner: String) -> SenderLiveness {
        guard let name = SenderName(parsing: owner) else {
            return ProcessName.hasEnded(owner)
                ? .gone : .unknown("an older Fanfare took it, and may be alive; end that, or restart this machine")
        }
        // Locks are not seen across machines, also where these share the folder.
        if isOneOfSeveral, name.host != Self.host { return stranger }
        return reading(missing: stranger) { file in
            let isHeld = try locks.isHeld(name.number, of: file, lockPath)
            guard let header = try LockFile(reading: file, lockPath) else {
                return isHeld ? .unknown("\(lockPath) is empty, and somebody sends") : stranger
            }
            guard header.epoch == name.epoch else { return stranger }
            return isHeld ? .held : .gone
        }
    }

    /// Of another lock file: beside a file, one that was deleted, or that the store was copied away from.
    private var stranger: SenderLiveness {
        isOneOfSeveral ? .unknown("it is a sender of another machine, which `fanfare status` shows") : .gone
    }

    /// For the store: who may be alive is left alone.
    package func isAlive(_ owner: String) -> Bool { liveness(of: owner) != .gone }

    /// Whether that is the name of a sender of this lock file with a number that was never drawn from it.
    package func wasNeverDrawn(_ owner: String) -> Bool {
        guard let name = SenderName(parsing: owner), let header = try? header(), header.epoch == name.epoch else {
            return false
        }
        return name.number >= header.next
    }

    /// Where that sender kept its journal; nil when it was a sender of another lock file, or of none.
    package func journalPath(ofOwner name: String) -> String? {
        guard let name = SenderName(parsing: name), (try? header())?.epoch == name.epoch else { return nil }
        return journalPath(name.number)
    }

    /// Deletes what a sender left that is gone, once nobody needs it.
    package func remove(_ number: Int64) {
        for path in [recordPath(number), journalPath(number)] { unlink(path) }
    }

    /// The same for all that are gone and stand under no run and no lease.
    package func removeUnneeded(_ store: any RunLog) async throws {
        // First who is gone, then what is needed: whoever is gone puts nothing more on record.
        let gone = numbers().filter { isHeld($0) == .gone }
        guard !gone.isEmpty, let epoch = try header()?.epoch else { return }
        let needed = Set(
            try await store.ownersOnRecord().compactMap(SenderName.init).filter { $0.epoch == epoch }.map(\.number))
        for number in gone where !needed.contains(number) { remove(number) }
    }

    /// Who that is, for a person.
    package func holder(_ owner: String) -> RunHolder {
        // A number of another machine's says nothing of the files here.
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

    /// A process that sends from the store now, shown to a person; `nil` if none does.
    package func livingSender() -> String? {
        let numbers = numbers().filter { isHeld($0) == .held }
        guard let number = numbers.last else { return nil }
        let record = FileManager.default.contents(atPath: recordPath(number))
            .flatMap { try? JSONDecoder().decode(SenderRecord.self, from: $0) }
        return "sender \(number)" + (record.map { " (\($0.command))" } ?? "")
    }

    /// The daemon, as its lock says; nil: there is none.
    package func daemon() -> RunHolder? {
        guard isHeld(LockFile.daemon) == .held, let name = (try? header())?.daemon else { return nil }
        let daemon = holder(name)
        // Whoever has the post now has not written its name yet.
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
    /// Opens the lock file, made if need be, and holds its first byte while `body` runs. The file stays open.
    private func drawing<Value>(_ body: (Int32) throws -> Value) throws -> (Int32, Value) {
        while true {
            let file = locks.open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else { throw LockFile.failure(-file, lockPath) }
            do {
                let value: Value? = try locks.whileHolding(LockFile.drawing, of: file, lockPath) {
                    // Whoever deletes it may have been quicker.
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
        // Only where the lock file was made anew, or put back from a copy, were higher numbers drawn before.
        var number = max(header.next, (numbers().max() ?? 0) + 1)
        while try !locks.take(number, of: file, lockPath) { number += 1 }
        header.next = number + 1
        try header.write(to: file, lockPath)
        switch isHeld(number) {
        case .held: break
        case .gone: throw SendingError.noLocks(path: path, reason: "a lock is granted, and then not kept")
        case .unknown(let reason): throw SendingError.senderFolder(path: path, reason: reason)
        }
        return SenderName(host: Self.host, pid: getpid(), number: number, epoch: header.epoch)
    }

    /// Nil: there is none that anybody needs.
    private func header(of file: Int32) throws -> LockFile? {
        do {
            if let header = try LockFile(reading: file, lockPath) { return header }
        } catch SendingError.lockFileDamaged {}
        // A new epoch would make all who send take each other for gone.
        guard try !locks.isHeld(LockFile.daemon, length: 0, of: file, lockPath) else {
            throw SendingError.lockFileDamaged(path: lockPath)
        }
        return nil
    }

    /// Through a descriptor of its own: a lock never stands in its own way, so that a process sees itself, too.
    ///
    /// - Parameter missing: what it means that there is no lock file.
    private func reading(missing: SenderLiveness, _ look: (Int32) throws -> SenderLiveness) -> SenderLiveness {
        let file = locks.open(lockPath, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            return [ENOENT, ENOTDIR].contains(-file) ? missing : .unknown("\(lockPath): \(LockFile.words(-file))")
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

    /// Of everybody who left a file here.
    private func numbers() -> [Int64] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return Set(names.compactMap { $0.split(separator: ".").first.flatMap { Int64($0) } }).sorted()
    }

    func makeFolder() throws {
        if isOneOfSeveral { try makeFolders(to: ownedAs) }
        if mkdir(path, 0o700) == 0 {
            // Whatever the umask is.
            chmod(path, 0o700)
            handOver(path)
        } else if errno != EEXIST {
            throw LockFile.failure(errno, path)
        }
    }

    /// Those of a user's that are missing, for their eyes only.
    private func makeFolders(to folder: String) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw SendingError.senderFolder(path: folder, reason: "it cannot be made: \(error.localizedDescription)")
        }
    }

    private func write(_ data: Data, to path: String) throws {
        let file = locks.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { throw LockFile.failure(-file, lockPath) }
        defer { close(file) }
        fchmod(file, 0o600)
        handOver(path)
        guard Foundation.write(file, Array(data), data.count) == data.count else { throw LockFile.failure(errno, path) }
    }

    /// What root makes belongs to the store's owner, as SQLite does with the files beside a store: otherwise the
    /// service could not enter after a command in a root shell.
    func handOver(_ path: String) {
        var store = stat()
        guard geteuid() == 0, stat(ownedAs, &store) == 0, store.st_uid != 0 else {
            return
        }
        lchown(path, store.st_uid, store.st_gid)
    }

    /// The path with all links followed, as the kernel does: a link may lead to a store that is not there yet.
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

/// A process's place among the senders of a store, held by a lock of the kernel until it leaves or ends, however it
/// ends.
///
/// The lock belongs to an open file description that no program started by this one inherits.
package final class SenderPost: Sendable {
    package let number: Int64
    /// What stands in a run as its owner; ``ProcessName/shown(_:)`` makes it readable.
    package let name: String
    private let folder: SenderFolder
    private let locks: FileLocks
    /// Below 0 when the post was left.
    private let file: Mutex<Int32>

    init(_ name: SenderName, _ file: Int32, folder: SenderFolder, _ locks: FileLocks) {
        number = name.number
        self.name = name.text
        self.folder = folder
        self.locks = locks
        self.file = Mutex(file)
    }

    deinit { leave() }

    package var journalPath: String { folder.journalPath(number) }

    /// False when the lock file was deleted or replaced under it: others then take this sender for gone, and it must
    /// stop. Two system calls.
    package var isIntact: Bool { file.withLock { $0 >= 0 && LockFile.isAt(folder.lockPath, $0) } }

    package func requireIntact() throws {
        guard isIntact else { throw SendingError.postLost(path: folder.lockPath) }
    }

    /// Makes it the post of the store's one daemon, too. False: somebody else is.
    package func becomeDaemon() throws -> Bool {
        try file.withLock { file in
            guard file >= 0, try locks.take(LockFile.daemon, of: file, folder.lockPath) else { return false }
            if let name = SenderName(parsing: name) { try folder.setDaemon(name, file) }
            return true
        }
    }

    /// Gives it up: from here on this sender is gone. What it left is deleted by ``SenderFolder/removeUnneeded(_:)``.
    package func leave() {
        file.withLock { file in
            guard file >= 0 else { return }
            // Not by closing alone: a child that was forked a moment ago, and has not become its program yet, has it open.
            _ = locks.lock(file, .set, Int16(F_UNLCK), 0, 0)
            close(file)
            file = -1
        }
    }
}

/// How a sender that waits for its store says so: in its journal, since the store takes nothing.
extension JournalNote {
    init(_ wait: StoreWait) {
        self.init(since: wait.since.milliseconds, code: UInt8(clamping: wait.reason.code))
    }
}

extension StoreWait {
    init?(_ note: JournalNote) {
        guard let reason = Reason.allCases.first(where: { $0.code == note.code }) else { return nil }
        self.init(since: Timestamp(milliseconds: note.since), reason: reason)
    }
}

extension StoreWait.Reason {
    fileprivate var code: Int {
        switch self {
        case .locked: 1
        case .diskFull: 2
        case .failing: 3
        }
    }
}
