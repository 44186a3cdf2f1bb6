/// A set of device ids, one bit each. Ids are nearly consecutive, so ten million of them take less than two
/// megabytes.
struct DeviceSet: Hashable, Sendable {
    private static let pageIDs: Int64 = 65_536
    private static let wordIDs = 64
    private static let emptyPage = [UInt64](repeating: 0, count: Int(pageIDs) / wordIDs)

    private var pages: [Int64: [UInt64]] = [:]
    private(set) var count = 0

    init() {}

    func contains(_ id: Int64) -> Bool {
        let (page, word, bit) = Self.place(id)
        return pages[page].map { $0[word] & bit != 0 } ?? false
    }

    mutating func insert(_ id: Int64) {
        let (page, word, bit) = Self.place(id)
        guard !contains(id) else { return }
        pages[page, default: Self.emptyPage][word] |= bit
        count += 1
    }

    mutating func remove(_ id: Int64) {
        let (page, word, bit) = Self.place(id)
        guard contains(id) else { return }
        pages[page]?[word] &= ~bit
        count -= 1
    }

    /// Passes the ids to `body` in order, at most `size` at a time.
    func forEachBatch(of size: Int, _ body: ([Int64]) throws -> Void) rethrows {
        var batch: [Int64] = []
        for (page, blocks) in pages.sorted(by: { $0.key < $1.key }) {
            for (index, word) in blocks.enumerated() where word != 0 {
                var rest = word
                while rest != 0 {
                    batch.append(page * Self.pageIDs + Int64(index * Self.wordIDs + rest.trailingZeroBitCount))
                    rest &= rest - 1
                    guard batch.count == size else { continue }
                    try body(batch)
                    batch.removeAll(keepingCapacity: true)
                }
            }
        }
        if !batch.isEmpty { try body(batch) }
    }

    private static func place(_ id: Int64) -> (page: Int64, word: Int, bit: UInt64) {
        let offset = Int(id & (pageIDs - 1))
        return (id / pageIDs, offset / wordIDs, 1 << UInt64(offset % wordIDs))
    }
}
