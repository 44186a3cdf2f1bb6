import Platform

/// One connection of a lane, as a transport creates it. It carries requests and decides nothing. Only the lane's thread
/// may use it.
///
/// It reports to its ``LaneDriver``:
///
/// - ``LaneDriver/opened(_:streamLimit:)`` or ``LaneDriver/openFailed(_:_:isFinal:)`` once;
/// - ``LaneDriver/ended(_:_:on:)`` once for each started request;
/// - ``LaneDriver/closed(_:_:)`` at its end.
protocol LaneConnection: AnyObject {
    associatedtype Slot: RequestSlot
    /// The headers of a batch in the transport's layout.
    associatedtype Headers: AnyObject
    /// The state that the connections of one transport share.
    associatedtype Context: Sendable

    static var traits: LaneStateMachine.Traits { get }

    static func slot(number: Int, _ plan: LanePlan) throws(TransportError) -> Slot

    static func headers(_ headers: PushHeaders, _ token: ProviderToken?, _ plan: LanePlan) -> Headers

    init(id: Int, driver: LaneDriver<Self>) throws(TransportError)

    var id: Int { get }

    func open()

    /// Starts a request. Returns false if the connection can start no more requests.
    func start(_ slot: Slot, under headers: Headers) -> Bool

    /// Handles a request that had no response within its deadline: calls ``LaneDriver/expired(_:isWritten:)`` or
    /// ends the request.
    func expire(_ slot: Slot)

    func ping()

    /// Closes the connection gracefully, and ends all open requests.
    func close()

    /// Ends immediately. `reason` is for the log.
    func abort(_ reason: String)

    /// Does the due work. Returns the time at which more work is due.
    func attend(_ now: UInt64) -> UInt64
}

extension LaneConnection {
    func attend(_ now: UInt64) -> UInt64 { .max }
}

/// The buffers for one push at a time, reused for later pushes. Only the lane's thread may use them.
class RequestSlot {
    /// The slot's index in the pool.
    final let number: Int
    /// The push in the slot. `nil` if the push has been completed or queued again, or if the slot is free.
    final private(set) var entry: BatchQueue.Entry?
    final private(set) var connectionID = 0
    /// The start of the push, as the time of the event loop's round.
    final private(set) var startedAt: UInt64 = 0
    /// The number of pushes that the slot has held.
    final private(set) var use = 0
    /// The generation of the provider token that the push was sent with.
    final private(set) var tokenGeneration = 0

    init(number: Int) {
        self.number = number
    }

    /// Whether the peer may process the request, because its last byte was or may have been written.
    var isWritten: Bool { false }
    /// The response's status, if its headers have arrived, or 0.
    var status: Int { 0 }

    final func hold(_ entry: BatchQueue.Entry, on connectionID: Int, tokenGeneration: Int, at now: UInt64) {
        self.entry = entry
        self.connectionID = connectionID
        self.tokenGeneration = tokenGeneration
        startedAt = now
        use += 1
    }

    /// Whether the slot's push may still start. Check it before the first byte leaves.
    final var mayStart: Bool { entry?.batch.mayStart().answer ?? .open == .open }

    /// Takes the entry out of the slot. The caller completes the push or queues it again.
    final func takeEntry() -> BatchQueue.Entry? { entry.take() }
}

/// The end of a request.
enum RequestEnd {
    case answered(PushResponse, latencyMicroseconds: Int64)
    /// The response has a status other than 200 and is incomplete.
    case cutOff(status: Int)
    /// The request was certainly not processed, for a reason other than the connection's end.
    case refused
    /// The request was certainly not processed: it was not written, or its connection accepts no more.
    case notProcessed
    /// The request was written, or may have been, and no response will come. The text is the reason.
    case lost(String)
}

/// The slots of a lane: the used and the free ones, and the order of their deadlines.
struct SlotPool<Slot: RequestSlot> {
    private(set) var all: [Slot] = []
    private var free: [Int] = []
    private var sequence = StartSequence()
    /// The number of started pushes that are not completed.
    var unanswered = 0

    /// Returns a free slot, or `nil` if all are in use. The caller then creates one and adds it.
    mutating func acquire() -> Slot? { free.popLast().map { all[$0] } }

    mutating func add(_ slot: Slot) { all.append(slot) }

    mutating func release(_ slot: Slot) { free.append(slot.number) }

    mutating func started(_ slot: Slot) {
        sequence.add(slot)
        unanswered += 1
    }

    /// Returns the slot whose request has waited longest, if the request has missed its deadline.
    mutating func expired(_ deadline: UInt64, at now: UInt64) -> Slot? {
        guard let slot = sequence.oldest(), now >= slot.startedAt + deadline else { return nil }
        return all[slot.number]
    }

    mutating func nextDeadline(_ deadline: UInt64) -> UInt64? { sequence.oldest().map { $0.startedAt + deadline } }

    mutating func compact() { sequence.compact(open: unanswered) }
}

/// Requests in the order of their starts, which is the order of their deadlines. Ended requests are removed when they
/// come to the front.
struct StartSequence {
    private struct Entry {
        let slot: RequestSlot
        /// Distinguishes this use of the slot from the next one.
        let use: Int
        var isOver: Bool { slot.use != use || slot.entry == nil }
    }

    private var entries: [Entry] = []
    private var head = 0

    mutating func add(_ slot: RequestSlot) {
        if entries.count >= 64, head > entries.count / 2 {
            entries.removeFirst(head)
            head = 0
        }
        entries.append(Entry(slot: slot, use: slot.use))
    }

    /// Returns the request that has waited longest.
    mutating func oldest() -> RequestSlot? {
        while head < entries.count {
            if !entries[head].isOver { return entries[head].slot }
            head += 1
        }
        entries.removeAll(keepingCapacity: true)
        head = 0
        return nil
    }

    /// Removes ended requests that are queued behind an unanswered one, so that they do not accumulate. `open` is the
    /// number of unanswered requests.
    mutating func compact(open: Int) {
        guard entries.count - head > 1024 + 2 * open else { return }
        entries = entries[head...].filter { !$0.isOver }
        head = 0
    }
}

/// A batch that a lane has accepted. It is a class, because a reference from each push is cheaper than a copy.
final class QueuedBatch {
    let headers: PushHeaders
    let pushes: [Push]
    private let journal: JournalSegment?
    private let gate: StartGate?
    private let recallCount: UInt64
    private let startBefore: UInt64

    init(_ batch: PushBatch) {
        headers = batch.headers
        pushes = batch.pushes
        journal = batch.journal
        gate = batch.gate
        recallCount = batch.recallCount
        startBefore = batch.startBefore
    }

    /// Tells whether a push of the batch may start now, and when this was checked. Reads the clock for each push,
    /// because the process may have been suspended.
    func mayStart() -> (answer: StartGate.Answer, at: UInt64) {
        guard gate != nil || startBefore != BootClock.never else { return (.open, 0) }
        let now = BootClock.now()
        if now >= startBefore { return (.closed, now) }
        guard let gate else { return (.open, now) }
        return (gate.isRecalled(since: recallCount) ? .closed : gate.answer(at: now), now)
    }
}

// Notifications to the journal, if there is one.
extension QueuedBatch {
    fileprivate func started(_ index: Int) {
        if let journal { journal.started(pushes[index].entry) }
    }

    fileprivate func returned(_ index: Int) {
        if let journal { journal.returned(pushes[index].entry) }
    }

    fileprivate func answered(_ index: Int, _ response: PushResponse) {
        if let journal { journal.answered(pushes[index].entry, response) }
    }
}

/// The pushes that a lane has accepted and not yet started, in order. Pushes that are queued again go first.
struct BatchQueue {
    /// The number of refusals by the peer after which a push is completed as `notSent`.
    static let refusalsMax = 8

    struct Entry {
        let batch: QueuedBatch
        let index: Int
        /// The number of refusals by the peer.
        var refusals = 0
        /// The time when the push was last allowed to start, by ``BootClock``. 0 if no check was needed.
        var allowedAt: UInt64 = 0

        /// Tells whether the push may start now, and records the time.
        mutating func mayStart() -> StartGate.Answer {
            let (answer, moment) = batch.mayStart()
            allowedAt = moment
            return answer
        }

        var push: Push { batch.pushes[index] }
        var tag: Int64 { batch.pushes[index].tag }

        /// Records the start. Call this before the first byte of the request leaves.
        func started() { batch.started(index) }
        /// Records that the push was certainly not processed.
        func returned() { batch.returned(index) }
        func answered(_ response: PushResponse) { batch.answered(index, response) }
    }

    private var returned: [Entry] = []
    /// The batches in order. The first one is being started. A finished batch is removed even while others wait,
    /// because the queue of a busy lane never becomes empty.
    private var batches: [QueuedBatch] = []
    private var pushIndex = 0
    private(set) var count = 0

    mutating func append(_ new: [PushBatch]) {
        for batch in new {
            batches.append(QueuedBatch(batch))
            count += batch.pushes.count
        }
    }

    /// Queues a push again that was certainly not processed. It is sent before the others.
    mutating func requeue(_ entry: Entry) {
        entry.returned()
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
