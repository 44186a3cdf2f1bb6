/// The timers of one loop, nearest deadline first: a binary heap. Timers are not taken back; a target ignores a tag it
/// no longer knows.
struct TimerQueue {
    struct Entry {
        /// Nanoseconds of the monotonic clock.
        var deadline: UInt64
        /// Timers of the same deadline fire in the order they were started.
        var order: UInt64
        var target: any TimerTarget
        var tag: Int64

        func precedes(_ other: Entry) -> Bool {
            (deadline, order) < (other.deadline, other.order)
        }
    }

    private var heap: [Entry] = []
    private var nextOrder: UInt64 = 0

    var nextDeadline: UInt64? { heap.first?.deadline }

    mutating func add(deadline: UInt64, target: any TimerTarget, tag: Int64) {
        heap.append(Entry(deadline: deadline, order: nextOrder, target: target, tag: tag))
        nextOrder += 1
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].precedes(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// The nearest timer, if it is due.
    mutating func take(dueAt now: UInt64) -> Entry? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        sink()
        return first
    }

    mutating func removeAll() {
        heap.removeAll()
    }

    private mutating func sink() {
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { return }
            let right = left + 1
            let child = right < heap.count && heap[right].precedes(heap[left]) ? right : left
            guard heap[child].precedes(heap[parent]) else { return }
            heap.swapAt(child, parent)
            parent = child
        }
    }
}
