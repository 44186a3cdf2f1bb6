/// The pushes a lane's thread has taken and not yet started, in order; those given back go first.
struct PushQueue {
    struct Entry {
        var push: Push
        var headers: PushHeaders
    }

    private var returned: [Entry] = []
    private var batches: [PushBatch] = []
    private var batchIndex = 0
    private var pushIndex = 0
    private(set) var count = 0

    mutating func append(_ new: [PushBatch]) {
        if batchIndex == batches.count {
            batches = new
            batchIndex = 0
        } else {
            batches += new
        }
        for batch in new { count += batch.pushes.count }
    }

    /// A push whose request was certainly not written is tried again before the others.
    mutating func giveBack(_ entry: Entry) {
        returned.append(entry)
        count += 1
    }

    mutating func next() -> Entry? {
        if let entry = returned.popLast() {
            count -= 1
            return entry
        }
        while batchIndex < batches.count {
            if pushIndex < batches[batchIndex].pushes.count {
                defer { pushIndex += 1 }
                count -= 1
                return Entry(push: batches[batchIndex].pushes[pushIndex], headers: batches[batchIndex].headers)
            }
            batches[batchIndex].pushes = []
            batchIndex += 1
            pushIndex = 0
        }
        return nil
    }

}
