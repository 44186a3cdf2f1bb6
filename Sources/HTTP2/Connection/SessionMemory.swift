import CNGHTTP2
import Glibc

/// Memory for the nghttp2 sessions of one event loop: small blocks that are given back are used again. A request takes
/// a handful of them and returns them a thousand requests later, which costs malloc several times as much.
///
/// The loop's thread only; to outlive its sessions.
final class SessionMemory {
    private typealias Block = UnsafeMutableRawPointer
    private typealias Lists = UnsafeMutablePointer<Block?>

    /// Sizes are rounded up to this.
    private static let granuleBytes = 64
    /// Blocks above this are malloc's business.
    private static let smallBytesMax = 1024
    /// In front of what nghttp2 gets: the block's size with this.
    private static let headBytes = 16

    /// By size in granules, the first block that is free; each holds the address of the next.
    private let lists: Lists

    init() {
        let count = Self.smallBytesMax / Self.granuleBytes + 1
        lists = .allocate(capacity: count)
        lists.initialize(repeating: nil, count: count)
    }

    deinit {
        for granules in 0...Self.smallBytesMax / Self.granuleBytes {
            while let block = lists[granules] {
                lists[granules] = block.load(as: Block?.self)
                Glibc.free(block)
            }
        }
        lists.deallocate()
    }

    /// For `nghttp2_session_client_new3` and its like.
    var functions: nghttp2_mem {
        nghttp2_mem(
            mem_user_data: lists,
            malloc: { size, lists in SessionMemory.take(size, lists) },
            free: { pointer, lists in SessionMemory.giveBack(pointer, lists) },
            calloc: { count, size, lists in
                let (bytes, isTooMuch) = count.multipliedReportingOverflow(by: size)
                guard !isTooMuch, let pointer = SessionMemory.take(bytes, lists) else { return nil }
                return memset(pointer, 0, bytes)
            },
            realloc: { pointer, size, lists in SessionMemory.resize(pointer, size, lists) })
    }

    private static func take(_ size: Int, _ lists: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        let granules = (size + headBytes + granuleBytes - 1) / granuleBytes
        let bytes = granules * granuleBytes
        guard let lists = lists?.assumingMemoryBound(to: Block?.self) else { return nil }
        var block: Block?
        if bytes <= smallBytesMax, let free = lists[granules] {
            lists[granules] = free.load(as: Block?.self)
            block = free
        } else {
            block = Glibc.malloc(bytes)
        }
        guard let block else { return nil }
        block.storeBytes(of: bytes, as: Int.self)
        return block + headBytes
    }

    private static func giveBack(_ pointer: UnsafeMutableRawPointer?, _ lists: UnsafeMutableRawPointer?) {
        guard let pointer, let lists = lists?.assumingMemoryBound(to: Block?.self) else { return }
        let block = pointer - headBytes
        let bytes = block.load(as: Int.self)
        guard bytes <= smallBytesMax else { return Glibc.free(block) }
        block.storeBytes(of: lists[bytes / granuleBytes], as: Block?.self)
        lists[bytes / granuleBytes] = block
    }

    private static func resize(
        _ pointer: UnsafeMutableRawPointer?, _ size: Int, _ lists: UnsafeMutableRawPointer?
    ) -> UnsafeMutableRawPointer? {
        guard let pointer else { return take(size, lists) }
        let room = (pointer - headBytes).load(as: Int.self) - headBytes
        if size <= room { return pointer }
        guard let new = take(size, lists) else { return nil }
        memcpy(new, pointer, room)
        giveBack(pointer, lists)
        return new
    }
}
