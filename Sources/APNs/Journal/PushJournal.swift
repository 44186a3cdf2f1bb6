import Glibc
import HTTP2
import Synchronization

/// A sender's own record of what it has started and heard: a file mapped into memory and shared with the kernel, so
/// that what was stored is there after the process ended, however it did. What the power takes is not promised: the
/// file names the kernel's boot, and proves nothing after another one.
///
/// A lane stores a word before the first byte of each request and a word with its answer, no system call. An entry is
/// freed once the outcome is recorded in the store, so that whoever takes over knows of every leased delivery whether
/// it was started and what was answered.
///
/// The file grows by sheets, one for each lane that is open at a time.
package final class PushJournal: Sendable {
    /// Which machine, store and sender a journal is of.
    package struct Identity: Hashable, Sendable {
        /// Empty: no journal is trusted.
        package var boot: String
        /// The name space of the store.
        package var store: PushID
        /// The number of the sender.
        package var sender: Int64

        package init(boot: String, store: PushID, sender: Int64) {
            self.boot = boot
            self.store = store
            self.sender = sender
        }

        /// Of this process: the kernel's boot as it is now.
        package static func current(store: PushID, sender: Int64) -> Identity {
            Identity(boot: BootClock.bootID, store: store, sender: sender)
        }
    }

    static let pageBytes = 4096
    /// Of the file, before the first sheet.
    static let headerBytes = pageBytes

    private struct State {
        var entries = 0
        var spare: [JournalSheet] = []
    }

    /// Makes a file so long that its disk has room for all of it; 0, or why not, as posix_fallocate(3).
    package typealias TakeRoom = @Sendable (_ file: Int32, _ offset: Int, _ byteCount: Int) -> Int32

    package let path: String
    private let file: Int32
    private let takeRoom: TakeRoom
    private let header: MappedWords
    private let state = Mutex(State())

    /// Makes the file anew, readable by its owner alone.
    package init(
        path: String, identity: Identity,
        takeRoom: @escaping TakeRoom = { posix_fallocate($0, off_t($1), off_t($2)) }
    ) throws(JournalError) {
        self.path = path
        self.takeRoom = takeRoom
        file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw JournalError(path: path, doing: "make", code: errno) }
        do throws(JournalError) {
            if fchmod(file, 0o600) != 0 { throw JournalError(path: path, doing: "protect", code: errno) }
            header = try MappedWords(file, path, offset: 0, byteCount: Self.headerBytes, takeRoom)
        } catch {
            close(file)
            throw error
        }
        JournalHeader(words: header).write(identity)
    }

    deinit { close(file) }

    /// Room for so many pushes, or a few more.
    package func sheet(entries: Int) throws(JournalError) -> JournalSheet {
        try state.withLock { (state) throws(JournalError) in
            if let index = state.spare.firstIndex(where: { $0.count >= entries }) {
                return state.spare.remove(at: index)
            }
            let perPage = Self.pageBytes / JournalEntries<MappedWords>.byteCount
            let count = (entries + perPage - 1) / perPage * perPage
            let offset = Self.headerBytes + state.entries * JournalEntries<MappedWords>.byteCount
            let words = try MappedWords(
                file, path, offset: offset, byteCount: count * JournalEntries<MappedWords>.byteCount, takeRoom)
            let sheet = JournalSheet(words, count: count)
            state.entries += count
            // From here on whoever reads the file expects them.
            JournalHeader(words: header).setEntries(state.entries)
            return sheet
        }
    }

    /// What others are to know while the store takes nothing; nil: nothing any more.
    package func leave(_ note: JournalNote?) { JournalHeader(words: header).setNote(note) }

    /// For the next lane. Entries that are not free stay as they are: their outcomes could not be recorded.
    package func giveBack(_ sheet: JournalSheet) {
        state.withLock { if sheet.isFree { $0.spare.append(sheet) } }
    }
}

/// What keeps a journal from being written.
package struct JournalError: Error, Hashable, Sendable, CustomStringConvertible {
    package var path: String
    var doing: String
    var code: Int32

    /// Or the quota is used up.
    package var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }

    package var description: String {
        "cannot \(doing) the journal \(path): \(String(cString: strerror(code))); without it a crash would leave "
            + "everything in flight in doubt; check the folder's owner and the room on its disk"
    }
}

/// The entries of one lane. Stores from the lane's thread and from the tasks that lease and settle meet on different
/// entries; which are free is under a lock.
package final class JournalSheet: Sendable {
    let count: Int
    private let entries: JournalEntries<MappedWords>
    /// Last given back, first used: those are in the cache.
    private let free: Mutex<[Int32]>

    init(_ words: MappedWords, count: Int) {
        self.count = count
        entries = JournalEntries(words: words)
        entries.format(count)
        free = Mutex((0..<Int32(count)).reversed())
    }

    var isFree: Bool { free.withLock { $0.count == count } }

    /// Entries for so many pushes of a lease, queued; to be named by ``Push/entry``. There must be room.
    ///
    /// - Parameter push: the device and locale of each, by its row.
    package func enter(
        _ count: Int, lease: Int64, push: (_ row: Int) -> (device: Int64, localeIndex: Int?)
    ) -> [Int32] {
        let numbers = free.withLock { free in
            let start = free.count - count
            precondition(start >= 0, "a lane holds more pushes than its sheet of the journal has entries")
            let numbers = Array(free[start...])
            free.removeSubrange(start...)
            return numbers
        }
        for row in 0..<count {
            let (device, localeIndex) = push(row)
            entries.enter(Int(numbers[row]), lease: lease, device: device, localeIndex: localeIndex)
        }
        return numbers
    }

    /// Their outcomes are recorded in the store.
    package func free(_ numbers: [Int32]) {
        for number in numbers { entries.free(Int(number)) }
        free.withLock { $0 += numbers }
    }

    func started(_ number: Int32) { entries.started(Int(number)) }

    func returned(_ number: Int32) { entries.returned(Int(number)) }

    func answered(_ number: Int32, _ response: PushResponse) { entries.answered(Int(number), response) }
}

/// A stretch of a file in memory, unmapped with the last reference. Words are stored and loaded one by one, whole and
/// in order, so no lock is needed; who may store to which is said by ``JournalSheet``.
final class MappedWords: JournalWords, @unchecked Sendable {
    private let start: UnsafeMutableRawPointer
    private let byteCount: Int
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    /// Room for it is taken on the disk first: a store to a hole on a full disk would end the process.
    init(
        _ file: Int32, _ path: String, offset: Int, byteCount: Int, _ takeRoom: PushJournal.TakeRoom
    ) throws(JournalError) {
        let code = takeRoom(file, offset, byteCount)
        guard code == 0 else { throw JournalError(path: path, doing: "make room for", code: code) }
        let start = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, off_t(offset))
        guard let start, start != MAP_FAILED else { throw JournalError(path: path, doing: "map", code: errno) }
        self.start = start
        self.byteCount = byteCount
        words = start.assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    deinit { munmap(start, byteCount) }

    func load(_ index: Int) -> UInt64 { words[index].load(ordering: .relaxed) }

    func store(_ word: UInt64, at index: Int) { words[index].store(word, ordering: .releasing) }
}
