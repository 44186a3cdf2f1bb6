import CNGHTTP2
import Glibc

/// Memory for the nghttp2 sessions of one event loop. It reuses small blocks. A request allocates a few blocks and
/// frees them a thousand requests later. malloc is several times slower for this pattern.
///
/// Only the loop's thread may use it. It must outlive its sessions.
final class SessionMemory {
    private typealias Block = UnsafeMutableRawPointer
    private typealias Lists = UnsafeMutablePointer<Block?>

    /// The unit to which sizes are rounded up.
    private static let granuleBytes = 64
    /// The maximum size of a reused block. malloc manages larger blocks.
    private static let smallBytesMax = 1024
    /// The header in front of nghttp2's memory. It stores the block's size, including the header.
    private static let headBytes = 16

    /// The first free block of each size in granules. Each free block stores the address of the next.
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

    /// The functions for `nghttp2_session_client_new3` and similar calls.
    var functions: nghttp2_mem {
        nghttp2_mem(
            mem_user_data: lists,
            malloc: { size, lists in SessionMemory.allocate(size, lists) },
            free: { pointer, lists in SessionMemory.free(pointer, lists) },
            calloc: { count, size, lists in
                let (bytes, isTooMuch) = count.multipliedReportingOverflow(by: size)
                guard !isTooMuch, let pointer = SessionMemory.allocate(bytes, lists) else { return nil }
                return memset(pointer, 0, bytes)
            },
            realloc: { pointer, size, lists in SessionMemory.resize(pointer, size, lists) })
    }

    private static func allocate(_ size: Int, _ lists: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
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

    private static func free(_ pointer: UnsafeMutableRawPointer?, _ lists: UnsafeMutableRawPointer?) {
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
        guard let pointer else { return allocate(size, lists) }
        let room = (pointer - headBytes).load(as: Int.self) - headBytes
        if size <= room { return pointer }
        guard let new = allocate(size, lists) else { return nil }
        memcpy(new, pointer, room)
        free(pointer, lists)
        return new
    }
}
