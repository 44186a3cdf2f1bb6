import CCurl

/// One malloc arena for all threads. Lanes and runs come and go with theirs, and what was freed in the arena of one is of
/// no use to the next: a process that works for days would hold half as much again for nothing.
package enum SharedHeap {
    /// To be called before there are other threads.
    package static func adopt() {
        mallopt(M_ARENA_MAX, 1)
    }
}
