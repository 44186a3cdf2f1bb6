import CNGHTTP2

/// Gathers small frames into writes of whole TLS records: a record and a system call cost more than a frame.
struct OutputBuffer: ~Copyable {
    /// What one TLS record holds.
    private static let recordBytes = 16_384
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

    /// The next write: a whole record, or what is left. A write that is repeated never gets shorter, as TLS demands.
    var pending: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: storage[start..<min(end, start + Self.recordBytes)])
    }

    mutating func consume(_ count: Int) {
        start += count
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Takes frames from the session until a record's worth is there or it has no more. False when the session is
    /// broken.
    mutating func gather(from session: OpaquePointer, edit: (UnsafeMutableRawBufferPointer) -> Void) -> Bool {
        if storage.baseAddress == nil {
            storage = .allocate(byteCount: Self.recordBytes + Self.frameBytesMax, alignment: 16)
        }
        while end - start < Self.recordBytes {
            var chunk: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &chunk)
            if count < 0 || count > Self.frameBytesMax { return false }
            guard count > 0, let chunk else { return true }
            if count > storage.count - end { moveToFront() }
            let frame = UnsafeMutableRawBufferPointer(rebasing: storage[end..<end + count])
            frame.copyMemory(from: UnsafeRawBufferPointer(start: chunk, count: count))
            edit(frame)
            end += count
        }
        return true
    }

    private mutating func moveToFront() {
        storage.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[start..<end]))
        end -= start
        start = 0
    }
}
