import Glibc

/// One request: the headers of the vocabulary and the body as bytes. It is reused for other streams of its connection,
/// so keep nothing of it after the response. Only the loop's thread may use it.
package final class IncomingRequest {
    private struct Slot {
        var start = 0
        var count = 0
    }

    /// The maximum number of kept bytes of header values. Further values are only counted.
    private static let headerBytesMax = 16 * 1024

    package internal(set) var stream: Int32 = 0
    /// The size by RFC 9113 section 6.5.2: the bytes of all names and values, plus 32 per header.
    package private(set) var headerListSize = 0
    /// The repeated headers: bit n is set if header n of the vocabulary arrived again after it was kept.
    package private(set) var repeated: UInt64 = 0
    /// The kept headers: bit n is set if header n of the vocabulary arrived and its value was kept.
    package private(set) var present: UInt64 = 0
    /// The number of body bytes that the peer sent. ``body`` may contain fewer.
    package private(set) var bodySize = 0
    /// A number for the handler, to identify its requests. 0 in a new request.
    package var tag = 0
    /// Whether the request's stream is open.
    var isOpen = false
    /// Whether a response was submitted. It may not have been sent yet.
    package internal(set) var hasResponse = false
    /// Whether the stream is reset where the response's body would begin.
    var isResponseReset = false

    private let slots: UnsafeMutableBufferPointer<Slot>
    private var headerBytes = ByteStore(capacity: 1024)
    private var bodyBytes = ByteStore(capacity: 1024)
    private let bodyBytesMax: Int

    /// The response's body. Its first ``responseOffset`` bytes have been written.
    var responseBody: [UInt8] = []
    var responseOffset = 0

    init(headers count: Int, bodyBytesMax: Int) {
        slots = .allocate(capacity: count)
        slots.initialize(repeating: Slot())
        self.bodyBytesMax = bodyBytesMax
    }

    deinit {
        slots.deallocate()
    }

    /// Returns the first value of header `index` of the vocabulary, or `nil` if none was kept. The bytes are valid
    /// until the response.
    package func value(_ index: Int) -> UnsafeRawBufferPointer? {
        guard present & (1 << UInt64(index)) != 0 else { return nil }
        let slot = slots[index]
        return headerBytes.bytes(from: slot.start, count: slot.count)
    }

    /// The body, up to the server's limit. Valid until the response.
    package var body: UnsafeRawBufferPointer { bodyBytes.bytes(from: 0, count: bodyBytes.count) }

    func reset(for stream: Int32) {
        self.stream = stream
        headerListSize = 0
        repeated = 0
        present = 0
        bodySize = 0
        tag = 0
        isOpen = true
        hasResponse = false
        isResponseReset = false
        headerBytes.count = 0
        bodyBytes.count = 0
        responseOffset = 0
    }

    func add(header index: Int?, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        headerListSize += name.count + value.count + 32
        guard let index else { return }
        let bit: UInt64 = 1 << UInt64(index)
        if present & bit != 0 {
            repeated |= bit
            return
        }
        guard headerBytes.count + value.count <= Self.headerBytesMax else { return }
        present |= bit
        slots[index] = Slot(start: headerBytes.count, count: value.count)
        headerBytes.append(value)
    }

    func add(body bytes: UnsafeRawBufferPointer) {
        bodySize += bytes.count
        let room = bodyBytesMax - bodyBytes.count
        bodyBytes.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(room)))
    }
}

/// A growing byte buffer that keeps its capacity.
struct ByteStore: ~Copyable {
    private var storage: UnsafeMutableRawBufferPointer
    var count = 0

    init(capacity: Int) {
        storage = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        storage.deallocate()
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if count + bytes.count > storage.count { grow(to: count + bytes.count) }
        UnsafeMutableRawBufferPointer(rebasing: storage[count..<count + bytes.count]).copyMemory(from: bytes)
        count += bytes.count
    }

    borrowing func bytes(from start: Int, count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: storage[start..<start + count])
    }

    private mutating func grow(to needed: Int) {
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(needed, 2 * storage.count), alignment: 16)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<count]))
        storage.deallocate()
        storage = larger
    }
}

/// The header names that a server reads, each with its index. They are compared as bytes, with no string per header.
package final class HeaderVocabulary: Sendable {
    private struct Word: Sendable {
        let index: Int
        let bytes: [UInt8]
    }

    private static let lengthMax = 63

    /// The names by length. Few names have the same length, so a look-up compares few.
    private let namesByLength: [[Word]]
    package let count: Int

    /// Creates a vocabulary of at most 64 lower-case names of at most 63 bytes. A name's index is its position in the
    /// list.
    package init(_ names: [String]) {
        precondition(names.count <= 64)
        var namesByLength = [[Word]](repeating: [], count: Self.lengthMax + 1)
        for (index, name) in names.enumerated() {
            namesByLength[name.utf8.count].append(Word(index: index, bytes: Array(name.utf8)))
        }
        self.namesByLength = namesByLength
        count = names.count
    }

    func index(of name: UnsafeRawBufferPointer) -> Int? {
        guard name.count <= Self.lengthMax, let start = name.baseAddress else { return nil }
        for word in namesByLength[name.count] where memcmp(word.bytes, start, name.count) == 0 { return word.index }
        return nil
    }
}
