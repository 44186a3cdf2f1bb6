import Glibc

/// Detects a lack of memory behind a library's misleading error.
package enum MemoryProbe {
    private static let bytes = 1 << 20

    /// Whether the system gives this process no more memory.
    package static var isShort: Bool {
        let address = mmap(nil, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let address, address != MAP_FAILED else { return true }
        munmap(address, bytes)
        return false
    }

    package static let summary =
        "this process cannot allocate memory; raise its address space limit (LimitAS=, ulimit -v), or free memory"
}
