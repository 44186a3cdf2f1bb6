import HTTP2

/// A batch a lane has taken, and room for its headers as the native lane lays them out. The lane's thread only.
final class QueuedBatch {
    let headers: PushHeaders
    let pushes: [Push]
    /// Nil before the first of its pushes starts.
    private(set) var fields: RequestFields?
    /// Of the provider token in `fields`.
    private(set) var tokenGeneration = 0

    init(_ batch: PushBatch) {
        headers = batch.headers
        pushes = batch.pushes
    }

    func lay(_ fields: RequestFields, tokenGeneration: Int) {
        self.fields = fields
        self.tokenGeneration = tokenGeneration
    }
}

/// The pushes a lane has taken and not yet started, in order; those given back go first.
struct BatchQueue {
    struct Entry {
        let batch: QueuedBatch
        let index: Int
        /// How often the peer refused it.
        var refusals = 0

        var push: Push { batch.pushes[index] }
        var tag: Int64 { batch.pushes[index].tag }
    }

    private var returned: [Entry] = []
    /// A few: the first is being started. One that is through goes at once, since a lane that is always fed never empties
    /// its queue.
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
