/// One connection of a lane as a transport makes it: carries requests and decides nothing. The lane's thread only.
///
/// It tells its ``LaneDriver`` what happens: ``LaneDriver/opened(_:streamLimit:)`` or
/// ``LaneDriver/openFailed(_:_:isFinal:)`` once, ``LaneDriver/ended(_:_:on:)`` once for each request that started,
/// ``LaneDriver/closed(_:_:)`` at its end.
protocol LaneConnection: AnyObject {
    associatedtype Slot: RequestSlot
    /// The headers of a batch as the transport lays them out.
    associatedtype Headers: AnyObject
    /// What the connections of one transport have in common.
    associatedtype Context: Sendable

    static var traits: LaneStateMachine.Traits { get }

    static func slot(number: Int, _ plan: LanePlan) throws(TransportError) -> Slot

    static func headers(_ headers: PushHeaders, _ token: ProviderToken?, _ plan: LanePlan) -> Headers

    init(id: Int, driver: LaneDriver<Self>) throws(TransportError)

    var id: Int { get }

    func open()

    /// False: nothing more can be started here.
    func start(_ slot: Slot, under headers: Headers) -> Bool

    /// The request has had no answer within its deadline: says so by ``LaneDriver/expired(_:isWritten:status:)`` or
    /// ends it.
    func expire(_ slot: Slot)

    func ping()

    /// Says goodbye and ends; what is still open ends with it.
    func close()

    /// Ends at once. `words`: for the log.
    func abort(_ words: String)

    /// Does what the time has come for, and says when there is more to do.
    func attend(_ now: UInt64) -> UInt64
}

extension LaneConnection {
    func attend(_ now: UInt64) -> UInt64 { .max }
}

/// Room for one push at a time, used again and again. The lane's thread only.
class RequestSlot {
    /// Its index in the pool.
    final let number: Int
    /// Nil: it has had its response, or is free.
    final private(set) var entry: BatchQueue.Entry?
    final private(set) var connectionID = 0
    /// Of the round of the event loop.
    final private(set) var startedAt: UInt64 = 0
    /// Counts the pushes it has held.
    final private(set) var use = 0
    /// Of the provider token it was sent with.
    final private(set) var tokenGeneration = 0

    init(number: Int) {
        self.number = number
    }

    /// The last byte was handed over, or may have been: from here on the peer may process it.
    var isWritten: Bool { false }

    final func hold(_ entry: BatchQueue.Entry, on connectionID: Int, tokenGeneration: Int, at now: UInt64) {
        self.entry = entry
        self.connectionID = connectionID
        self.tokenGeneration = tokenGeneration
        startedAt = now
        use += 1
    }

    /// Whether its push may start, as far as nothing of it has left.
    final var mayStart: Bool { entry?.batch.mayStart().answer ?? .open == .open }

    /// For who answers the push, or queues it again.
    final func takeEntry() -> BatchQueue.Entry? { entry.take() }
}

/// How a request ended.
enum RequestEnd {
    case answered(PushResponse, latencyMicroseconds: Int64)
    /// With another status than 200, and without the end of the answer.
    case cutOff(status: Int)
    /// Certainly not processed, and not for the connection's sake.
    case refused
    /// Certainly not processed: it was not written, or its connection takes no more.
    case notProcessed
    /// It was written, or may have been, and no answer will come: why, in words.
    case lost(String)
}

/// The slots of a lane: those in use, those free, and the order in which their deadlines come.
struct SlotPool<Slot: RequestSlot> {
    private(set) var all: [Slot] = []
    private var free: [Int] = []
    private var order = StartOrder()
    /// Pushes started and without a response.
    var unanswered = 0

    /// Nil where all are in use: to be made and added.
    mutating func take() -> Slot? { free.popLast().map { all[$0] } }

    mutating func add(_ slot: Slot) { all.append(slot) }

    mutating func giveBack(_ slot: Slot) { free.append(slot.number) }

    mutating func started(_ slot: Slot) {
        order.add(slot)
        unanswered += 1
    }

    /// The one that has waited longest, and so long.
    mutating func expired(_ deadline: UInt64, at now: UInt64) -> Slot? {
        guard let slot = order.oldest(), now >= slot.startedAt + deadline else { return nil }
        return all[slot.number]
    }

    mutating func nextDeadline(_ deadline: UInt64) -> UInt64? { order.oldest().map { $0.startedAt + deadline } }

    mutating func compact() { order.compact(open: unanswered) }
}

/// Requests in the order they started, which is the order of their deadlines. Those that are over are passed when they
/// come to the front.
struct StartOrder {
    private struct Entry {
        let slot: RequestSlot
        /// Tells this use of the slot from the next one.
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

    /// The one that waits longest.
    mutating func oldest() -> RequestSlot? {
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

/// A batch that a lane has taken. A class: each of its pushes refers to it, at the cost of one count.
final class QueuedBatch {
    let headers: PushHeaders
    let pushes: [Push]
    private let journal: JournalSheet?
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

    /// Whether a push of it may start now. The clock is read for each: between two of them the process may have slept.
    func mayStart() -> (answer: StartGate.Answer, at: UInt64) {
        guard gate != nil || startBefore != BootClock.never else { return (.open, 0) }
        let now = BootClock.now()
        if now >= startBefore { return (.closed, now) }
        guard let gate else { return (.open, now) }
        return (gate.isRecalled(since: recallCount) ? .closed : gate.answer(at: now), now)
    }
}

// What the journal is told; nothing where none is kept.
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

/// The pushes a lane has taken and not yet started, in order; those given back go first.
struct BatchQueue {
    /// A push that the peer refused so often is given up.
    static let refusalsMax = 8

    struct Entry {
        let batch: QueuedBatch
        let index: Int
        /// How often the peer refused it.
        var refusals = 0
        /// When it was last allowed to start, by ``BootClock``; 0: it was not asked for.
        var allowedAt: UInt64 = 0

        /// Whether it may start now, and from when on.
        mutating func mayStart() -> StartGate.Answer {
            let (answer, moment) = batch.mayStart()
            allowedAt = moment
            return answer
        }

        var push: Push { batch.pushes[index] }
        var tag: Int64 { batch.pushes[index].tag }

        /// To be called before the first byte of its request leaves.
        func started() { batch.started(index) }
        /// It was certainly not processed.
        func returned() { batch.returned(index) }
        func answered(_ response: PushResponse) { batch.answered(index, response) }
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
