import Glibc

/// The journal's record of one push.
package struct JournalEntry: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// A lane has the push, and no request was started.
        case queued
        /// The request was started. The entry is set before its first byte leaves.
        case started
        case answered(PushResponse)
    }

    package var state: State
    /// The locale of the push's text, as given when the push was entered.
    package var localeIndex: Int?

    package init(state: State, localeIndex: Int? = nil) {
        self.state = state
        self.localeIndex = localeIndex
    }
}

/// The memory of a journal's entries: 64-bit words that are stored atomically and become visible in order.
protocol JournalWords: Sendable {
    func load(_ index: Int) -> UInt64
    /// Stores a word. A reader that sees this word also sees every word stored before it.
    func store(_ word: UInt64, at index: Int)
}

/// The entries of one segment of a journal, eight words each, by their number.
///
///     0  check (32 bits) | status (16) | length of the reason (8) | state (8)
///     1  lease           2  device           3  timestamp of a 410
///     4  locale (16) | first 6 bytes of the reason           5 6 7  the rest of it
///
/// The first word is stored last and determines the meaning of the others. If the process ends between two stores, the
/// entry is unchanged. The check is computed from lease and device and is never 0, so a lost or overwritten page fails
/// the check.
struct JournalEntries<Words: JournalWords>: Sendable {
    static var wordsPerEntry: Int { 8 }
    static var byteCount: Int { wordsPerEntry * 8 }
    /// The maximum length of a stored reason. The longest reason that Apple documents has 27 characters.
    static var reasonMax: Int { 30 }

    /// The stored value for no timestamp. No time in milliseconds since 1970 equals it.
    private static var noTimestamp: UInt64 { UInt64(bitPattern: Int64.min) }

    let words: Words

    /// Initialises a new segment before it has readers.
    func format(_ count: Int) {
        for number in 0..<count { free(number) }
    }

    /// - Parameter number: the number of a free entry.
    func enter(_ number: Int, lease: Int64, device: Int64, localeIndex: Int?) {
        let base = number * Self.wordsPerEntry
        words.store(UInt64(bitPattern: lease), at: base + 1)
        words.store(UInt64(bitPattern: device), at: base + 2)
        words.store(Self.noTimestamp, at: base + 3)
        words.store(UInt64(UInt16(clamping: (localeIndex ?? -1) + 1)), at: base + 4)
        words.store(Self.check(lease, device) | Code.queued, at: base)
    }

    /// Records that the request starts. Call it before the first byte of the request leaves.
    func started(_ number: Int) { set(number, Code.started) }

    /// Records that no byte of the request left, or that the peer certainly did not process it.
    func returned(_ number: Int) { set(number, Code.queued) }

    func answered(_ number: Int, _ response: PushResponse) {
        let base = number * Self.wordsPerEntry
        if let moment = response.momentToKeep { words.store(UInt64(bitPattern: moment), at: base + 3) }
        let length = response.reason.map { storeReason($0.description, at: base + 4) } ?? 0
        let status = UInt64(UInt16(clamping: response.status))
        let check = words.load(base) & 0xFFFF_FFFF_0000_0000
        words.store(check | status << 16 | UInt64(length) << 8 | Code.answered, at: base)
    }

    func free(_ number: Int) {
        let base = number * Self.wordsPerEntry
        // The other words stay as they are. The check is that of a free entry.
        words.store(Self.check(0, 0) | Code.free, at: base)
    }

    /// Returns an entry, or `nil` if it is free. Throws if no store by Fanfare can have produced the words.
    func read(_ number: Int) throws(JournalDamage) -> (lease: Int64, device: Int64, entry: JournalEntry)? {
        let base = number * Self.wordsPerEntry
        let head = words.load(base)
        let lease = Int64(bitPattern: words.load(base + 1))
        let device = Int64(bitPattern: words.load(base + 2))
        let check = head & 0xFFFF_FFFF_0000_0000
        let code = head & 0xFF
        if code == Code.free {
            guard head == Self.check(0, 0) | Code.free else { throw JournalDamage(entry: number) }
            return nil
        }
        guard check == Self.check(lease, device), lease > 0, device > 0 else { throw JournalDamage(entry: number) }
        let locale = Int(words.load(base + 4) & 0xFFFF) - 1
        return (lease, device, JournalEntry(state: try state(head, number), localeIndex: locale < 0 ? nil : locale))
    }

    private func state(_ head: UInt64, _ number: Int) throws(JournalDamage) -> JournalEntry.State {
        let base = number * Self.wordsPerEntry
        switch head & 0xFF {
        case Code.queued where head & 0xFFFF_FF00 == 0: return .queued
        case Code.started where head & 0xFFFF_FF00 == 0: return .started
        case Code.answered:
            let length = Int(head >> 8 & 0xFF)
            let status = Int(head >> 16 & 0xFFFF)
            guard length <= Self.reasonMax, (100..<1000).contains(status) else { break }
            let moment = words.load(base + 3)
            return .answered(
                PushResponse(
                    status: status, reason: length == 0 ? nil : PushReason(reason(length, at: base + 4)),
                    keptMoment: moment == Self.noTimestamp ? nil : Int64(bitPattern: moment)))
        default: break
        }
        throw JournalDamage(entry: number)
    }

    private func set(_ number: Int, _ code: UInt64) {
        let base = number * Self.wordsPerEntry
        words.store(words.load(base) & 0xFFFF_FFFF_0000_0000 | code, at: base)
    }

    /// Stores a reason. Returns the number of stored bytes.
    private func storeReason(_ text: String, at index: Int) -> Int {
        var length = 0
        var word = words.load(index) & 0xFFFF
        var position = index
        for byte in text.utf8.prefix(Self.reasonMax) {
            let place = (length + 2) % 8
            if place == 0 {
                words.store(word, at: position)
                position += 1
                word = 0
            }
            word |= UInt64(byte) << UInt64(8 * place)
            length += 1
        }
        words.store(word, at: position)
        return length
    }

    private func reason(_ length: Int, at index: Int) -> String {
        let bytes = (0..<length).map { position in
            UInt8(truncatingIfNeeded: words.load(index + (position + 2) / 8) >> UInt64(8 * ((position + 2) % 8)))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the check in the upper half of the word. It is an odd number, so never 0.
    private static func check(_ lease: Int64, _ device: Int64) -> UInt64 {
        var mixed = UInt64(bitPattern: lease) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(bitPattern: device)
        mixed ^= mixed >> 32
        mixed = mixed &* 0xD6E8_FEB8_6659_FD93
        return (mixed | 1 << 32) & 0xFFFF_FFFF_0000_0000
    }
}

/// The one moment that an entry stores, in milliseconds since 1970. It is the timestamp of a 410, or the end of a pause
/// that the response requests. No response has both.
extension PushResponse {
    fileprivate static func asksForPause(_ status: Int) -> Bool { status == 429 || status >= 500 }

    fileprivate var momentToKeep: Int64? {
        guard Self.asksForPause(status), let retryAfter else { return timestamp }
        let now = Int64(time(nil)) * 1000
        return now + Int64(retryAfter.wait(from: now).milliseconds)
    }

    fileprivate init(status: Int, reason: PushReason?, keptMoment: Int64?) {
        let isPause = Self.asksForPause(status)
        self.init(
            status: status, reason: reason, timestamp: isPause ? nil : keptMoment,
            retryAfter: isPause ? keptMoment.map(RetryAfter.moment) : nil)
    }
}

/// Codes that differ from each other in more than one bit.
private enum Code {
    static let free: UInt64 = 0x11
    static let queued: UInt64 = 0x22
    static let started: UInt64 = 0x44
    static let answered: UInt64 = 0x88
}

/// An entry that no store by Fanfare can have produced.
struct JournalDamage: Error {
    var entry: Int
}
