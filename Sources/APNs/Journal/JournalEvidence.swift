import Glibc
import Platform

/// The evidence of a sender's journal after the sender has exited.
package struct JournalEvidence: Hashable, Sendable {
    /// The entries by lease and device. A leased delivery without an entry was not given to a lane, or its outcome is
    /// recorded.
    package var entries: [Int64: [Int64: JournalEntry]]

    package init(entries: [Int64: [Int64: JournalEntry]]) { self.entries = entries }

    /// Reads a journal that has no writer any more.
    package static func read(
        path: String, expecting identity: PushJournal.Identity
    ) throws(JournalDistrust) -> JournalEvidence {
        let words = try FileWords(path)
        guard words.count * 8 >= PushJournal.headerBytes else { throw .damaged("it is cut off") }
        let count = try JournalHeader(words: words).read(expecting: identity)
        let start = PushJournal.headerBytes / 8
        let entries = JournalEntries(words: words.suffix(from: start))
        guard (words.count - start) / JournalEntries<FileWords>.wordsPerEntry >= count else {
            throw .damaged("it is cut off")
        }
        var evidence = JournalEvidence(entries: [:])
        for number in 0..<count {
            do {
                guard let found = try entries.read(number) else { continue }
                evidence.entries[found.lease, default: [:]][found.device] = found.entry
            } catch {
                throw .damaged("entry \(error.entry) is invalid")
            }
        }
        return evidence
    }
}

/// A live sender's note to other processes while its store accepts no writes. The note is for display only and has no
/// checksum.
package struct JournalNote: Hashable, Sendable {
    /// The start of the noted state, in milliseconds since 1970.
    package var since: Int64
    /// The note's meaning, as writer and reader agree. Not 0.
    package var code: UInt8

    package init(since: Int64, code: UInt8) {
        self.since = since
        self.code = code
    }

    /// Reads a sender's note. Returns `nil` if there is none, or no readable journal.
    package static func read(path: String) -> JournalNote? {
        guard let head = try? FileWords(path, atMost: PushJournal.headerBytes),
            head.count * 8 >= PushJournal.headerBytes
        else { return nil }
        return JournalHeader(words: head).readNote()
    }
}

/// The reason why a journal proves nothing. All deliveries that its sender had leased are then in doubt.
package enum JournalDistrust: Error, Hashable, Sendable, CustomStringConvertible {
    case missing
    /// The machine has restarted since, so the contents of its memory are lost.
    case otherBoot
    /// The journal belongs to another store or sender.
    case foreign
    case damaged(String)
    case unreadable(code: Int32)
    /// The store has lost recorded outcomes, so the entries are dropped.
    case forgotten

    package var description: String {
        switch self {
        case .missing: "its journal does not exist"
        case .otherBoot: "its journal was written before the machine restarted"
        case .foreign: "its journal belongs to another store or sender"
        case .damaged(let what): "its journal is damaged: \(what)"
        case .forgotten:
            "the database server lost recorded outcomes, for instance by a failover to a lagging standby"
        case .unreadable(let code): "its journal cannot be read: \(String(cString: strerror(code)))"
        }
    }
}

/// The first page of a journal.
///
///     0  magic    1  version    2 3  store    4  sender    5 to 9  boot id    10  check of 0 to 9    11  entries
///     12  start of the note, in milliseconds since 1970    13  its code; 0: there is no note
struct JournalHeader<Words: JournalWords> {
    /// "fanfareJ"
    private static var magic: UInt64 { 0x6661_6E66_6172_654A }
    private static var version: UInt64 { 1 }
    private static var checked: Range<Int> { 0..<10 }
    private static var entries: Int { 11 }
    private static var noteSince: Int { 12 }
    private static var noteCode: Int { 13 }

    let words: Words

    func write(_ identity: PushJournal.Identity) {
        for (index, word) in Self.words(of: identity).enumerated() { words.store(word, at: index) }
        setEntries(0)
        words.store(check(), at: Self.checked.upperBound)
    }

    /// Stores the number of entries. The complement protects the number, because the header's check does not cover it.
    func setEntries(_ count: Int) {
        let number = UInt32(clamping: count)
        words.store(UInt64(~number) << 32 | UInt64(number), at: Self.entries)
    }

    /// Returns the number of entries.
    func read(expecting identity: PushJournal.Identity) throws(JournalDistrust) -> Int {
        guard words.load(0) == Self.magic, words.load(Self.checked.upperBound) == check() else {
            throw .damaged("its header is invalid")
        }
        let found = Self.checked.map { words.load($0) }
        let expected = Self.words(of: identity)
        guard found[..<5] == expected[..<5] else { throw .foreign }
        guard found == expected, !identity.boot.isEmpty else { throw .otherBoot }
        let word = words.load(Self.entries)
        let number = UInt32(truncatingIfNeeded: word)
        guard UInt32(word >> 32) == ~number else { throw .damaged("its number of entries is missing") }
        return Int(number)
    }

    func setNote(_ note: JournalNote?) {
        words.store(UInt64(bitPattern: note?.since ?? 0), at: Self.noteSince)
        words.store(UInt64(note?.code ?? 0), at: Self.noteCode)
    }

    func readNote() -> JournalNote? {
        let code = words.load(Self.noteCode)
        guard words.load(0) == Self.magic, code > 0 else { return nil }
        return JournalNote(since: Int64(bitPattern: words.load(Self.noteSince)), code: UInt8(clamping: code))
    }

    private static func words(of identity: PushJournal.Identity) -> [UInt64] {
        var words = [magic, version, identity.store.high, identity.store.low, UInt64(bitPattern: identity.sender)]
        var boot = Array(identity.boot.utf8.prefix(40))
        boot += [UInt8](repeating: 0, count: 40 - boot.count)
        for start in stride(from: 0, to: 40, by: 8) {
            words.append(boot[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) })
        }
        return words
    }

    private func check() -> UInt64 {
        Self.checked.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ words.load($1)) &* 0x0000_0100_0000_01B3 }
    }
}

/// A file's content as words.
struct FileWords: JournalWords {
    private var words: ArraySlice<UInt64>

    init(_ path: String, atMost bytesMax: Int = .max) throws(JournalDistrust) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw errno == ENOENT ? .missing : .unreadable(code: errno) }
        defer { close(file) }
        var all: [UInt64] = []
        var chunk = [UInt64](repeating: 0, count: 8192)
        while all.count * 8 < bytesMax {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress, $0.count) }
            if count < 0 { throw .unreadable(code: errno) }
            // An incomplete word at the end was not written by Fanfare.
            all += chunk[..<(count / 8)]
            if count < chunk.count * 8 { break }
        }
        words = all[...]
    }

    private init(_ words: ArraySlice<UInt64>) { self.words = words }

    var count: Int { words.count }

    func suffix(from index: Int) -> FileWords { FileWords(words.dropFirst(index)) }

    func load(_ index: Int) -> UInt64 { words[words.startIndex + index] }

    func store(_ word: UInt64, at index: Int) {}
}
