/// The lane's slots: those with a request in flight, in no order, and those free.
struct SlotPool {
    private(set) var inFlight: [CurlSlot] = []
    private var free: [CurlSlot] = []

    /// A free slot, now counted as in flight; nil where there is none, see ``add(_:)``.
    mutating func take() -> CurlSlot? {
        guard let slot = free.popLast() else { return nil }
        enter(slot)
        return slot
    }

    /// A new slot, at once in flight.
    mutating func add(_ slot: CurlSlot) { enter(slot) }

    mutating func giveBack(_ slot: CurlSlot) {
        let last = inFlight.removeLast()
        if last !== slot {
            inFlight[slot.place] = last
            last.place = slot.place
        }
        slot.clear()
        free.append(slot)
    }

    private mutating func enter(_ slot: CurlSlot) {
        slot.place = inFlight.count
        inFlight.append(slot)
    }
}
