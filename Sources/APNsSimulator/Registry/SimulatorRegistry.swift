import FoundationEssentials
import Glibc
import Platform

/// The device tokens that the simulated APNs knows. A token takes about 65 bytes, so that millions fit into memory.
/// Copies of the value share their storage until one changes.
package struct SimulatorRegistry: Sendable {
    private struct Entry {
        var offset: UInt32
        var length: UInt8
        var environment: SimulatorEnvironment
        var isActive: Bool
        var topic: UInt16
        var delayMs: UInt32
        /// Milliseconds since 1970. Negative if the token is active.
        var goneSince: Int64
    }

    static let topicsMax = Int(UInt16.max)
    private static let vacant: UInt32 = .max

    /// The tokens' bytes, concatenated.
    private var arena: [UInt8] = []
    private var entries: [Entry] = []
    /// A hash table with linear probing. Its size is a power of two, and it is at most three quarters full. It contains
    /// indices of `entries`. A removed token stays as an inactive entry.
    private var slots = [UInt32](repeating: vacant, count: 16)
    /// The topics as written in `apns-topic`.
    private(set) var topics: [[UInt8]] = []
    package private(set) var count = 0

    package init() {}

    /// Registers a token in an environment for exactly this `apns-topic`, and replaces earlier data. The token has 1 to
    /// 255 bytes.
    package mutating func register(
        token: [UInt8], environment: SimulatorEnvironment, topic: String, goneSince: Int64? = nil, delayMs: Int = 0
    ) {
        precondition((1...255).contains(token.count))
        var entry = Entry(
            offset: 0, length: UInt8(token.count), environment: environment, isActive: true,
            topic: index(ofTopic: topic), delayMs: UInt32(clamping: delayMs), goneSince: goneSince ?? -1)
        if let known = token.withUnsafeBytes({ position(of: $0, in: environment) }) {
            if !entries[known].isActive { count += 1 }
            entry.offset = entries[known].offset
            entries[known] = entry
            return
        }
        entry.offset = UInt32(arena.count)
        arena.append(contentsOf: token)
        entries.append(entry)
        count += 1
        if entries.count * 4 > slots.count * 3 {
            rehash(to: slots.count * 2)
        } else {
            insert(UInt32(entries.count - 1))
        }
    }

    /// Makes pushes to the token get a 410 with this time, in milliseconds since 1970. `nil` makes the token active.
    /// Does nothing for an unknown token.
    package mutating func setGone(token: [UInt8], environment: SimulatorEnvironment, since: Int64?) {
        change(token, environment) { $0.goneSince = since ?? -1 }
    }

    /// Delays the responses for this token. Does nothing for an unknown token.
    package mutating func setDelay(token: [UInt8], environment: SimulatorEnvironment, milliseconds: Int) {
        change(token, environment) { $0.delayMs = UInt32(clamping: milliseconds) }
    }

    package mutating func remove(token: [UInt8], environment: SimulatorEnvironment) {
        guard let known = token.withUnsafeBytes({ position(of: $0, in: environment) }) else { return }
        guard entries[known].isActive else { return }
        entries[known].isActive = false
        count -= 1
    }

    /// The data of a token. The topic is an index into ``topics``.
    struct Device {
        var topic: Int
        var goneSince: Int64?
        var delayMs: Int
    }

    func device(_ token: UnsafeRawBufferPointer, in environment: SimulatorEnvironment) -> Device? {
        guard let known = position(of: token, in: environment), entries[known].isActive else { return nil }
        let entry = entries[known]
        return Device(
            topic: Int(entry.topic), goneSince: entry.goneSince < 0 ? nil : entry.goneSince, delayMs: Int(entry.delayMs)
        )
    }

    func topic(_ index: Int, is topic: UnsafeRawBufferPointer) -> Bool {
        topic.isEqual(to: topics[index])
    }
}

extension SimulatorRegistry {
    private mutating func change(
        _ token: [UInt8], _ environment: SimulatorEnvironment, _ body: (inout Entry) -> Void
    ) {
        guard let known = token.withUnsafeBytes({ position(of: $0, in: environment) }) else { return }
        body(&entries[known])
    }

    private mutating func index(ofTopic topic: String) -> UInt16 {
        let bytes = Array(topic.utf8)
        // Files are usually sorted by app, so search from the topic that was added last.
        if let known = topics.lastIndex(of: bytes) { return UInt16(known) }
        topics.append(bytes)
        return UInt16(topics.count - 1)
    }

    private func position(of token: UnsafeRawBufferPointer, in environment: SimulatorEnvironment) -> Int? {
        guard let start = token.baseAddress else { return nil }
        var slot = Self.hash(token) & (slots.count - 1)
        while slots[slot] != Self.vacant {
            let index = Int(slots[slot])
            let entry = entries[index]
            if entry.environment == environment, Int(entry.length) == token.count {
                let isSame = arena.withUnsafeBytes { bytes in
                    bytes.baseAddress.map { memcmp($0 + Int(entry.offset), start, token.count) == 0 } ?? false
                }
                if isSame { return index }
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    private mutating func insert(_ index: UInt32) {
        let entry = entries[Int(index)]
        let hash = arena.withUnsafeBytes { bytes in
            let start = Int(entry.offset)
            return Self.hash(UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(entry.length)]))
        }
        var slot = hash & (slots.count - 1)
        while slots[slot] != Self.vacant { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = index
    }

    private mutating func rehash(to count: Int) {
        slots = [UInt32](repeating: Self.vacant, count: count)
        for index in entries.indices { insert(UInt32(index)) }
    }

    /// Hashes words of 8 bytes with the final mix of MurmurHash3. Test tokens are counters that differ only in the
    /// high bits of one word, so the hash must mix all bits.
    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        var position = 0
        while position + 8 <= bytes.count {
            hash = Self.mixed(hash ^ bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
            position += 8
        }
        while position < bytes.count {
            hash = (hash ^ UInt64(bytes[position])) &* 0x0000_0100_0000_01b3
            position += 1
        }
        return Int(truncatingIfNeeded: mixed(hash) & 0x7fff_ffff_ffff_ffff)
    }

    private static func mixed(_ value: UInt64) -> UInt64 {
        var mixed = (value ^ value >> 33) &* 0xff51_afd7_ed55_8ccd
        mixed = (mixed ^ mixed >> 33) &* 0xc4ce_b9fe_1a85_ec53
        return mixed ^ mixed >> 33
    }
}

extension SimulatorRegistry {
    /// A line of a registry file.
    private struct Line: Decodable {
        var token: String
        var environment: SimulatorEnvironment
        var topic: String
        var gone_since: Int64?
        var delay_ms: Int?
    }

    /// Reads JSON Lines with one token each:
    /// `{"token":"hex","environment":"production","topic":"...","gone_since":ms,"delay_ms":n}`. The last two keys are
    /// optional. Reading stops at the first invalid line.
    package static func load(_ path: String) throws -> SimulatorRegistry {
        var registry = SimulatorRegistry()
        let decoder = JSONDecoder()
        try LineReader.forEachLine(of: path) { number, bytes in
            let line: Line
            do {
                line = try decoder.decode(Line.self, from: Data(bytes))
            } catch {
                throw SimulatorError.malformedLine(
                    path: path, line: number,
                    reason:
                        "not a token registration; token, environment and topic must be strings, gone_since must be in "
                        + "milliseconds since 1970, delay_ms in milliseconds")
            }
            guard let token = Hex.bytes(of: line.token), DeviceTokenShape.byteCounts.contains(token.count) else {
                throw SimulatorError.malformedLine(
                    path: path, line: number, reason: "the token is not hex of 32 to 100 bytes")
            }
            guard registry.topics.count < Self.topicsMax else {
                throw SimulatorError.malformedLine(path: path, line: number, reason: "too many different topics")
            }
            registry.register(
                token: token, environment: line.environment, topic: line.topic, goneSince: line.gone_since,
                delayMs: line.delay_ms ?? 0)
        }
        return registry
    }
}

/// Reads a file of any size line by line, through one buffer.
enum LineReader {
    private static let chunkBytes = 256 * 1024

    /// Calls `body` with each line that is not empty, without its line end, and with its number from 1.
    static func forEachLine(of path: String, _ body: (Int, ArraySlice<UInt8>) throws -> Void) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw SimulatorError.unreadableFile(path: path, reason: String(cString: strerror(errno)))
        }
        defer { close(file) }
        var buffer: [UInt8] = []
        var number = 0
        while true {
            let kept = buffer.count
            buffer += [UInt8](repeating: 0, count: chunkBytes)
            let count = buffer.withUnsafeMutableBytes { read(file, $0.baseAddress.map { $0 + kept }, chunkBytes) }
            guard count >= 0 else {
                throw SimulatorError.unreadableFile(path: path, reason: String(cString: strerror(errno)))
            }
            buffer.removeLast(chunkBytes - count)
            var start = 0
            while let end = buffer[start...].firstIndex(of: UInt8(ascii: "\n")) {
                number += 1
                if end > start { try body(number, buffer[start..<end]) }
                start = end + 1
            }
            if count == 0 {
                if start < buffer.count { try body(number + 1, buffer[start...]) }
                return
            }
            buffer.removeFirst(start)
        }
    }
}

/// Reads and writes small files as a whole.
enum TextFile {
    /// Opens a file for writing. Only the owner can read a new file, whatever the umask. An existing file keeps its
    /// mode. Links are followed, and devices and FIFOs are written to.
    ///
    /// - Parameter flags: additional flags: `O_TRUNC`, `O_APPEND`.
    static func open(_ path: String, _ flags: Int32) throws(SimulatorError) -> Int32 {
        let new = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0o600)
        if new >= 0 {
            fchmod(new, 0o600)
            return new
        }
        let file = errno == EEXIST ? Glibc.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0o600) : -1
        guard file >= 0 else { throw .unwritableFile(path: path, reason: String(cString: strerror(errno))) }
        return file
    }

    static func write(_ bytes: [UInt8], to path: String) throws(SimulatorError) {
        let file = try open(path, O_TRUNC)
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw .unwritableFile(path: path, reason: String(cString: strerror(errno)))
        }
    }

    static func read(_ path: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try LineReader.forEachLine(of: path) { _, line in
            bytes.append(contentsOf: line)
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }
}
