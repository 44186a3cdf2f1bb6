/// A batch that a lane has taken. A class: each of its pushes refers to it, at the cost of one count.
final class QueuedBatch {
    let headers: PushHeaders
    let pushes: [Push]

    init(_ batch: PushBatch) {
        headers = batch.headers
        pushes = batch.pushes
    }
}

/// The pushes a lane has taken and not yet started, in order; those given back go first.
struct BatchQueue {
    /// A push that the peer refused so often is given up.
    static let refusalsMax = 8

    struct Entry {
        let batch: QueuedBatch
        let index: Int
        /// How often the peer refused it.
        var refusals = 0

        var push: Push { batch.pushes[index] }
        var tag: Int64 { batch.pushes[index].tag }
    }

    private var returned: [Entry] = []
    /// A few: the first is being started. One that is through goes at once, since a lane that is always fed never
    /// empties its queue.
    private var batches: [QueuedBatch] = []
    private var pushIndex = 0
    private(set) var count = 0

    mutating func append(_ new: [PushBatch]) {
        for batch in new {
            batches.append(QueuedBatch(batch))
            count += batch.pushes.count
        }
    }

    /// A push that was certainly not processed is tried again before the others.
    mutating func giveBack(_ entry: Entry) {
        returned.append(entry)
        count += 1
    }

    mutating func next() -> Entry? {
        if let entry = returned.popLast() {
            count -= 1
            return entry
        }
        while let batch = batches.first {
            if pushIndex < batch.pushes.count {
                defer { pushIndex += 1 }
                count -= 1
                return Entry(batch: batch, index: pushIndex)
            }
            batches.removeFirst()
            pushIndex = 0
        }
        return nil
    }
}
