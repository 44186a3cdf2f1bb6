import Glibc
import HTTP2
package import Platform
import Synchronization

/// A sender's own record of started requests and received responses: a memory-mapped file that the kernel shares. Its
/// contents survive any end of the process. They are not guaranteed to survive a power failure. The file names the
/// kernel's boot and proves nothing after the next one.
///
/// A lane records each start before the request's first byte, and each response on arrival, with no system call. An
/// entry is freed once the store has recorded the outcome. A sender that takes over therefore knows which leased
/// deliveries were started, and their responses.
///
/// The file grows by segments, one for each lane that is open at the same time.
package final class PushJournal: Sendable {
    /// The machine, store and sender that a journal belongs to.
    package struct Identity: Hashable, Sendable {
        /// The id of the kernel's boot. Empty if no journal can be trusted.
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

        /// Returns the identity of this process, with the kernel's current boot.
        package static func current(store: PushID, sender: Int64) -> Identity {
            Identity(boot: BootClock.bootID, store: store, sender: sender)
        }
    }

    static let pageBytes = 4096
    /// The size of the file's header, before the first segment.
    static let headerBytes = pageBytes

    private struct State {
        var entries = 0
        var spare: [JournalSegment] = []
    }

    /// Extends a file and allocates the disk space. Returns 0 or an error number, like posix_fallocate(3).
    package typealias TakeRoom = @Sendable (_ file: Int32, _ offset: Int, _ byteCount: Int) -> Int32

    package let path: String
    private let file: Int32
    private let takeRoom: TakeRoom
    private let header: MappedWords
    private let state = Mutex(State())

    /// Creates a new file, readable by its owner alone.
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

    /// Returns a segment for at least this many pushes.
    package func segment(entries: Int) throws(JournalError) -> JournalSegment {
        try state.withLock { (state) throws(JournalError) in
            if let index = state.spare.firstIndex(where: { $0.count >= entries }) {
                return state.spare.remove(at: index)
            }
            let perPage = Self.pageBytes / JournalEntries<MappedWords>.byteCount
            let count = (entries + perPage - 1) / perPage * perPage
            let offset = Self.headerBytes + state.entries * JournalEntries<MappedWords>.byteCount
            let words = try MappedWords(
                file, path, offset: offset, byteCount: count * JournalEntries<MappedWords>.byteCount, takeRoom)
            let segment = JournalSegment(words, count: count)
            state.entries += count
            // From here on, every reader of the file expects these entries.
            JournalHeader(words: header).setEntries(state.entries)
            return segment
        }
    }

    /// Leaves a note for other processes while the store accepts no writes. `nil` removes the note.
    package func recordNote(_ note: JournalNote?) { JournalHeader(words: header).setNote(note) }

    /// Takes back a segment for another lane. A segment with an entry in use is kept as evidence, because an outcome
    /// could not be recorded.
    package func release(_ segment: JournalSegment) {
        state.withLock { if segment.isFree { $0.spare.append(segment) } }
    }
}

/// The reason why a journal cannot be written.
package struct JournalError: Error, Hashable, Sendable, CustomStringConvertible {
    package var path: String
    var doing: String
    var code: Int32

    package var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }

    package var description: String {
        "cannot \(doing) the journal \(path): \(String(cString: strerror(code))); without it a crash would leave "
            + "everything in flight in doubt; check the folder's owner and the free disk space"
    }
}

/// The entries of one lane. The lane's thread and the tasks that lease and settle store to different entries. A lock
/// protects the list of free entries.
package final class JournalSegment: Sendable {
    let count: Int
    private let entries: JournalEntries<MappedWords>
    /// The free entries. The last one returned is reused first, because it is in the cache.
    private let free: Mutex<[Int32]>

    init(_ words: MappedWords, count: Int) {
        self.count = count
        entries = JournalEntries(words: words)
        entries.format(count)
        free = Mutex((0..<Int32(count)).reversed())
    }

    var isFree: Bool { free.withLock { $0.count == count } }

    /// Enters this many pushes of a lease as queued. Returns the numbers of their entries, for ``Push/entry``. The
    /// segment must have as many free entries.
    ///
    /// - Parameter push: returns the device and locale of each push, by its row.
    package func enter(
        _ count: Int, lease: Int64, push: (_ row: Int) -> (device: Int64, localeIndex: Int?)
    ) -> [Int32] {
        let numbers = free.withLock { free in
            let start = free.count - count
            precondition(start >= 0, "a lane holds more pushes than its segment of the journal has entries")
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

    /// Frees entries whose outcomes are recorded in the store.
    package func free(_ numbers: [Int32]) {
        for number in numbers { entries.free(Int(number)) }
        free.withLock { $0 += numbers }
    }

    func started(_ number: Int32) { entries.started(Int(number)) }

    func returned(_ number: Int32) { entries.returned(Int(number)) }

    func answered(_ number: Int32, _ response: PushResponse) { entries.answered(Int(number), response) }
}

/// A mapped part of a file, unmapped with the last reference. Words are stored and loaded atomically and in order, so
/// no lock is needed. ``JournalSegment`` defines which thread stores to which words.
final class MappedWords: JournalWords, @unchecked Sendable {
    private let start: UnsafeMutableRawPointer
    private let byteCount: Int
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    /// Maps the part after allocating its disk space. A store to a hole on a full disk would end the process.
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
