import CKernel
import CNGHTTP2
import Glibc
import HeapModule
import Platform
import Synchronization

/// One thread that waits on epoll for its descriptors and timers and calls their handlers. Only this thread uses the
/// loop's state.
///
/// The loop reads before it evaluates deadlines. A timer fires when its time has come and the sockets have been read
/// since (``readUntil``). A pause of the process does not count (``LoopClock``). A deadline that is a timer, or is
/// compared with ``readUntil``, therefore never passes while the response is in the socket.
///
/// `@unchecked Sendable`: other threads use only `inbox` (submitted jobs) and `thread`, both a `Mutex`. All other state
/// is confined to the loop's thread from ``start()`` on.
package final class EventLoop: @unchecked Sendable {
    private struct Inbox {
        var jobs: [@Sendable () -> Void] = []
        var isStopping = false
        /// Whether the loop has ended, so that new jobs are dropped. References may keep an ended loop in memory.
        var hasEnded = false
    }

    private let name: String
    private let poller: Int32
    private let wakeup = EventFD()
    private let inbox = Mutex(Inbox())
    private let thread = Mutex<LoopThread?>(nil)

    // Only the loop's thread may use the following state.
    private var handlers: [Int32: any EventHandler] = [:]
    /// The timers, nearest deadline first. A timer cannot be cancelled, so its target ignores a tag that it no longer
    /// expects.
    private var timers = Heap<LoopTimer>()
    private var timersStarted: UInt64 = 0
    private var roundEnds: [any EventHandler] = []
    private var isEnding = false
    private let monotonic: () -> UInt64
    private var clock: LoopClock
    /// The loop's clock at the start of the current round, in nanoseconds. It is cheap to read, and precise enough for
    /// the events of the round.
    package private(set) var roundStart: UInt64 = 0
    /// The moment of the loop's clock up to which all arrived data has been read. Deadlines are compared with it. It is
    /// no later than ``roundStart``, and advances after all events of a round have been handled.
    package private(set) var readUntil: UInt64 = 0
    /// The memory of the client's sessions.
    let memory = SessionMemory()
    /// Room for one TLS record, shared by the connections of this loop.
    let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)

    /// - Parameters:
    ///   - name: the thread's name. The first 15 bytes appear in the thread list.
    ///   - monotonic: nanoseconds of a clock that cannot be set. It is read on the loop's thread.
    package init(
        named name: String, monotonic: @escaping () -> UInt64 = EventLoop.monotonicNanoseconds
    ) throws(EventLoopError) {
        self.name = name
        self.monotonic = monotonic
        clock = LoopClock(at: monotonic())
        poller = fanfare_epoll_create()
        guard poller >= 0 else { throw .noDescriptor(code: errno) }
        guard fanfare_epoll_change(poller, EPOLL_CTL_ADD, wakeup.file, EPOLLIN.rawValue) == 0 else {
            let code = errno
            close(poller)
            throw .noDescriptor(code: code)
        }
    }

    deinit {
        scratch.deallocate()
        close(poller)
    }

    package func start() throws(EventLoopError) {
        let started = try LoopThread(named: name) { self.run() }
        thread.withLock { $0 = started }
    }

    /// Ends the loop, abandons its handlers and waits for its thread. Any thread may call it. The loop's own thread
    /// does not wait. Idempotent.
    package func stop() {
        inbox.withLock { $0.isStopping = true }
        wakeup.signal()
        let running = thread.withLock { $0.take() }
        if let running, !running.isCurrent { running.join() }
    }

    /// Runs `job` on the loop's thread, in the order of the calls. Any thread may call it. Jobs submitted before
    /// ``stop()`` are run. Later ones may be dropped.
    package func submit(_ job: @escaping @Sendable () -> Void) {
        let isTaken = inbox.withLock { inbox in
            if !inbox.hasEnded { inbox.jobs.append(job) }
            return !inbox.hasEnded
        }
        if isTaken { wakeup.signal() }
    }

    /// Runs `job` immediately on the loop's own thread, otherwise through ``submit(_:)``.
    func perform(isOnLoop: Bool, _ job: @escaping @Sendable () -> Void) {
        if isOnLoop { job() } else { submit(job) }
    }
}

/// Only the loop's thread may call these methods.
extension EventLoop {
    package func watch(_ descriptor: Int32, for interest: Readiness, _ handler: any EventHandler) -> Bool {
        guard fanfare_epoll_change(poller, EPOLL_CTL_ADD, descriptor, interest.rawValue) == 0 else { return false }
        handlers[descriptor] = handler
        return true
    }

    package func change(_ descriptor: Int32, to interest: Readiness) {
        // This cannot fail for a watched descriptor.
        _ = fanfare_epoll_change(poller, EPOLL_CTL_MOD, descriptor, interest.rawValue)
    }

    /// Stops watching a descriptor. Call it before the descriptor is closed.
    package func unwatch(_ descriptor: Int32) {
        _ = fanfare_epoll_change(poller, EPOLL_CTL_DEL, descriptor, 0)
        handlers[descriptor] = nil
    }

    /// Returns the current time of the loop's clock, in nanoseconds.
    package func now() -> UInt64 {
        clock.advance(to: monotonic())
        return clock.now
    }

    /// Calls `target` with `tag` once, at least `milliseconds` from now. The target is retained until then.
    package func schedule(afterMilliseconds milliseconds: Int, target: any TimerTarget, tag: Int64) {
        schedule(at: now() + UInt64(max(0, milliseconds)) * 1_000_000, target: target, tag: tag)
    }

    /// Schedules as ``schedule(afterMilliseconds:target:tag:)`` does, at a moment of the loop's clock. The timer fires
    /// in the next round at the earliest.
    package func schedule(at moment: UInt64, target: any TimerTarget, tag: Int64) {
        timersStarted += 1
        let deadline = max(moment, readUntil + 1)
        timers.insert(LoopTimer(deadline: deadline, order: timersStarted, target: target, tag: tag))
    }

    /// Calls ``EventHandler/roundEnded()`` once when the events of this round have been handled.
    package func atRoundEnd(_ handler: any EventHandler) {
        roundEnds.append(handler)
    }

    /// Runs the loop on the calling thread until ``end()``, instead of ``start()``.
    package func run() {
        let capacity = 256
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
        defer { events.deallocate() }
        while !isEnding {
            let waitBegan = now()
            let count = wait(from: waitBegan, for: events, capacity)
            var isWoken = false
            for index in 0..<max(0, count) {
                let descriptor = fanfare_epoll_descriptor(events, index)
                if descriptor == wakeup.file {
                    isWoken = true
                } else if let handler = handlers[descriptor] {
                    handler.ready(Readiness(rawValue: fanfare_epoll_readiness(events, index)))
                }
            }
            // One wait reports all sockets of a lane, because a lane has fewer than `capacity`. A wait that a signal
            // interrupts reports none.
            if count >= 0 { readUntil = waitBegan }
            if isWoken, !takeInbox() { break }
            fireTimers()
            endRound()
        }
        abandonAll()
    }

    /// Waits for events. Returns their number, or a negative number after a signal.
    private func wait(
        from moment: UInt64, for events: UnsafeMutablePointer<epoll_event>, _ capacity: Int
    ) -> Int32 {
        let timeout = timeoutMilliseconds(moment)
        let count = epoll_wait(poller, events, Int32(capacity), timeout)
        if timeout < 0 { clock.rest(until: monotonic()) } else { clock.advance(to: monotonic()) }
        roundStart = clock.now
        return count
    }

    /// Ends ``run()`` after this round, and abandons the handlers.
    package func end() {
        isEnding = true
    }

    /// Runs the submitted jobs. Returns false if the loop must end.
    private func takeInbox() -> Bool {
        wakeup.clear()
        let (jobs, isStopping) = inbox.withLock { inbox in
            defer { inbox.jobs = [] }
            return (inbox.jobs, inbox.isStopping)
        }
        for job in jobs { job() }
        return !isStopping
    }

    private func fireTimers() {
        while let timer = timers.min, timer.deadline <= readUntil {
            timers.removeMin()
            timer.target.timerFired(timer.tag)
        }
    }

    private func endRound() {
        let ending = roundEnds
        roundEnds.removeAll(keepingCapacity: true)
        for handler in ending { handler.roundEnded() }
    }

    private func abandonAll() {
        for handler in handlers.values { handler.abandon() }
        handlers = [:]
        roundEnds = []
        timers = Heap()
        // Release the jobs outside the lock, because they may hold objects that submit jobs.
        let dropped = inbox.withLock { inbox in
            inbox.hasEnded = true
            defer { inbox.jobs = [] }
            return inbox.jobs
        }
        _ = dropped
    }

    private func timeoutMilliseconds(_ now: UInt64) -> Int32 {
        if !roundEnds.isEmpty { return 0 }
        guard let deadline = timers.min?.deadline else { return -1 }
        guard deadline > now else { return 0 }
        return Int32((min(deadline - now, LoopClock.waitMax) + 999_999) / 1_000_000)
    }

    /// Returns the time of CLOCK_MONOTONIC, which loops use by default.
    package static func monotonicNanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// A timer. Timers of the same deadline fire in the order in which they were started.
private struct LoopTimer: Comparable {
    /// Nanoseconds of the loop's clock.
    var deadline: UInt64
    var order: UInt64
    var target: any TimerTarget
    var tag: Int64

    static func < (left: LoopTimer, right: LoopTimer) -> Bool {
        (left.deadline, left.order) < (right.deadline, right.order)
    }

    static func == (left: LoopTimer, right: LoopTimer) -> Bool { left.order == right.order }
}

/// The reason why an event loop cannot run.
package enum EventLoopError: Error, Hashable, Sendable, CustomStringConvertible {
    case noDescriptor(code: Int32)
    case noThread(code: Int32)

    package var description: String {
        switch self {
        case .noDescriptor(let code):
            "cannot open an event queue (error \(code)); raise the limit of open files"
        case .noThread(let code):
            "cannot start a thread (error \(code)); raise the limit of threads"
        }
    }
}

/// A thread outside the pool of Swift's tasks, for blocking work. Its owner joins it, or it runs detached.
package struct LoopThread {
    private let handle: pthread_t

    /// Starts a thread. The kernel keeps 15 bytes of `name`. The thread blocks signals: a write to a closed socket must
    /// not end the process, and the main thread handles SIGTERM.
    init(named name: String, _ body: @escaping @Sendable () -> Void) throws(EventLoopError) {
        var started = pthread_t()
        let box = Unmanaged.passRetained(Body(name: name, run: body))
        let code = pthread_create(&started, nil, { raw in LoopThread.main(raw) }, box.toOpaque())
        guard code == 0 else {
            box.release()
            throw .noThread(code: code)
        }
        handle = started
    }

    /// Runs `body` on a detached thread. Returns false if the system provides no thread.
    package static func runDetached(named name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        do throws(EventLoopError) {
            pthread_detach(try LoopThread(named: name, body).handle)
            return true
        } catch {
            return false
        }
    }

    func join() {
        pthread_join(handle, nil)
    }

    var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    private static func main(_ raw: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let raw else { return nil }
        let body = Unmanaged<Body>.fromOpaque(raw).takeRetainedValue()
        fanfare_begin_thread(body.name)
        body.run()
        return nil
    }
}

/// The events of a descriptor.
package struct Readiness: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let readable = Readiness(rawValue: EPOLLIN.rawValue)
    package static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
    /// The peer has hung up, or the socket has an error. Reading shows which.
    package static let broken = Readiness(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)
}

/// The owner of a descriptor that an ``EventLoop`` watches. Every call comes on the loop's thread.
package protocol EventHandler: AnyObject {
    /// The descriptor can be read or written, or is broken.
    func ready(_ readiness: Readiness)

    /// All events of the round have been handled. ``EventLoop/atRoundEnd(_:)`` requests this call.
    func roundEnded()

    /// The loop ends. Close the descriptor and release everything. No other call follows.
    func abandon()
}

/// Receives the timers that ``EventLoop/schedule(afterMilliseconds:target:tag:)`` started, on the loop's thread.
package protocol TimerTarget: AnyObject {
    func timerFired(_ tag: Int64)
}

/// A value that is created on one thread and used only on its loop's thread.
struct LoopConfined<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
