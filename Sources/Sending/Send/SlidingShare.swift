/// How many of the last answers were of one kind: a ring, so that a million good answers do not hide what comes after.
struct SlidingShare {
    /// Answers remembered.
    static let windowMax = 1000

    private var ring: [Bool] = []
    private var next = 0
    private(set) var hits = 0

    /// Answers in the window.
    var count: Int { ring.count }

    mutating func add(_ isHit: Bool) {
        if isHit { hits += 1 }
        guard ring.count == Self.windowMax else { return ring.append(isHit) }
        if ring[next] { hits -= 1 }
        ring[next] = isHit
        next = next + 1 == Self.windowMax ? 0 : next + 1
    }

    func exceeds(_ share: Double) -> Bool {
        Double(hits) > Double(count) * share
    }
}
