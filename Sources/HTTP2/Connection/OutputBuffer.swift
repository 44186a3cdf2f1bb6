import CNGHTTP2

/// Gathers small frames into writes of up to one TLS record: a record and a system call cost more than a frame.
struct OutputBuffer: ~Copyable {
    /// When to stop gathering: a TLS record holds 16,384 bytes.
    private static let writeBytes = 16_000
    /// What nghttp2 hands out at once: a frame of 16,384 bytes with its head.
    private static let frameBytesMax = 16_384 + 64

    /// Taken with the first frame: a connection that never gets that far costs nothing.
    private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var start = 0
    private var end = 0

    deinit {
        storage.deallocate()
    }

    var isEmpty: Bool { start == end }
    var pending: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[start..<end]) }

    mutating func consume(_ count: Int) {
        start += count
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Takes frames from the session until a write's worth is there or it has no more. Only to be called when empty.
    /// False when the session is broken.
    mutating func gather(from session: OpaquePointer, edit: (UnsafeMutableRawBufferPointer) -> Void) -> Bool {
        if storage.baseAddress == nil {
            storage = .allocate(byteCount: Self.writeBytes + Self.frameBytesMax, alignment: 16)
        }
        while end < Self.writeBytes {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &chunk)
            if count < 0 || count > storage.count - end { return false }
            guard count > 0, let chunk else { return true }
            let place = UnsafeMutableRawBufferPointer(rebasing: storage[end..<end + count])
            place.copyMemory(from: UnsafeRawBufferPointer(start: chunk, count: count))
            edit(place)
            end += count
        }
        return true
    }
}
