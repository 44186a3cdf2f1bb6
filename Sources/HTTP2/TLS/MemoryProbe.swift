import Glibc

/// Tells an error for want of memory from what a library makes of it.
package enum MemoryProbe {
    private static let bytes = 1 << 20

    /// Whether this process gets no more memory.
    package static var isShort: Bool {
        let address = mmap(nil, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let address, address != MAP_FAILED else { return true }
        munmap(address, bytes)
        return false
    }

    package static let words =
        "this process gets no more memory; raise its limit of address space (LimitAS=, ulimit -v), or free memory"
}
