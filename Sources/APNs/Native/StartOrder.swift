/// The requests of one connection in the order they started, which is the order of their deadlines. Those that are over
/// are passed when they come to the front.
struct StartOrder {
    struct Entry {
        let slot: PushSlot
        /// Tells this use of the slot from the next one.
        let use: Int
        var isOver: Bool { slot.use != use || slot.entry == nil }
    }

    private var entries: [Entry] = []
    private var head = 0

    mutating func add(_ slot: PushSlot) {
        if entries.count >= 64, head > entries.count / 2 {
            entries.removeFirst(head)
            head = 0
        }
        entries.append(Entry(slot: slot, use: slot.use))
    }

    /// The one that waits longest.
    mutating func oldest() -> PushSlot? {
        while head < entries.count {
            if !entries[head].isOver { return entries[head].slot }
            head += 1
        }
        entries.removeAll(keepingCapacity: true)
        head = 0
        return nil
    }

    /// One request without an answer at the front must not keep the thousands that came after it: to be called with the
    /// number of those still open.
    mutating func compact(open: Int) {
        guard entries.count - head > 1024 + 2 * open else { return }
        entries = entries[head...].filter { !$0.isOver }
        head = 0
    }
}
