import APNs
import Foundation
package import Model
package import Store
import Synchronization

/// The stops that this process has heard of by the file, and the runs that are to obey them at once.
///
/// A thread of its own waits for the kernel's word that something happened in the folder (inotify(7)), and looks every
/// ``lookEveryMilliseconds`` all the same, for file systems that do not tell.
package final class StopWatch: Sendable {
    private static let lookEveryMilliseconds: Int32 = 50
    /// Of a run, since it was stopped.
    private static let eventsMax = 1000

    private struct State {
        var orders = StopOrders()
        var runs: [Int: (run: Run, control: RunControl)] = [:]
        var next = 0
    }

    /// Which file it is, and since when.
    private struct Mark: Hashable {
        var inode: UInt64 = 0
        var seconds = 0
        var nanoseconds = 0
        var size = 0
    }

    private let state = Mutex(State())
    private let file: StopFile?
    private let now: @Sendable () -> Timestamp

    private init(_ file: StopFile?, now: @escaping @Sendable () -> Timestamp) {
        self.file = file
        self.now = now
    }

    /// Of a process that hears of stops from ``hear(_:)`` alone.
    package convenience init() { self.init(nil, now: { Timestamp(milliseconds: 0) }) }

    /// Watches the folder for as long as anybody has this.
    package static func following(_ folder: SenderFolder) -> StopWatch {
        let watch = StopWatch(folder.stopFile, now: folder.now)
        let inotify = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        let events = UInt32(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
        if inotify >= 0 { inotify_add_watch(inotify, folder.path, events) }
        let mark = watch.look(since: nil)
        let thread = Thread { [weak watch] in
            Thread.current.name = "stop-watch"
            var mark = mark
            while true {
                // Without a file to wait for, poll(2) waits its time.
                var waiting = pollfd(fd: inotify, events: Int16(POLLIN), revents: 0)
                poll(&waiting, 1, Self.lookEveryMilliseconds)
                guard let watch else { break }
                // What happened is found by looking; the events only need to be taken off.
                var bytes = [UInt8](repeating: 0, count: 4096)
                while inotify >= 0, read(inotify, &bytes, bytes.count) > 0 {}
                mark = watch.look(since: mark)
            }
            if inotify >= 0 { close(inotify) }
        }
        thread.start()
        return watch
    }

    /// In force, as far as this process has heard.
    package var orders: StopOrders { state.withLock { $0.orders } }

    /// From now on these are in force, and no others; the runs they are about stop before this returns.
    package func hear(_ orders: StopOrders) {
        let stopped = state.withLock { state in
            state.orders = orders
            return state.runs.values.compactMap { entry in
                orders.order(of: entry.run).map { ($0, entry.control) }
            }
        }
        for (order, control) in stopped { control.stop(.stopped(order), since: moment(of: order)) }
    }

    /// Records what the file holds now and the store does not have yet.
    ///
    /// Nothing is locked meanwhile, however long the store takes. The store remembers lifted stops, and does not take
    /// one again that another process has lifted since the file was read.
    package func record(in store: any StopLog & RunLog, now: Timestamp) async throws {
        guard let file else { return _ = try await Self.record(orders, in: store, now: now) }
        guard !orders.isEmpty else { return }
        for order in try await Self.record(file.read(), in: store, now: now) { try file.lift(order) }
    }

    /// Returns those to take out of the file: another machine has lifted them, or their run is over or absent.
    private static func record(
        _ orders: StopOrders, in store: any StopLog & RunLog, now: Timestamp
    ) async throws -> [StopOrder] {
        let known = orders.isEmpty ? orders : try await store.stops()
        var lifted: [StopOrder] = []
        for order in orders.orders where known[order.scope] == nil {
            let isLifted =
                switch order.scope {
                case .run(let run): try await record(order, of: run, in: store, now: now)
                case .occurrence(let campaign, let occurrence):
                    // A run that does not exist yet is stopped by the file until it is created.
                    if let run = try await store.run(campaign: campaign, occurrence: occurrence) {
                        try await record(order, of: run.id, in: store, now: now)
                    } else {
                        false
                    }
                case .all, .campaign:
                    try await store.recordStop(order, by: Actor(order.by), now: now) == .lifted
                }
            if isLifted { lifted.append(order) }
        }
        return lifted
    }

    /// Returns whether to take the stop out of the file: a person has resumed the run since, or it is over or absent. A
    /// stop of a wrong number would otherwise stop the run that gets this number later.
    private static func record(
        _ order: StopOrder, of run: Int64, in store: any StopLog & RunLog, now: Timestamp
    ) async throws -> Bool {
        let found: Run?
        do {
            found = try await store.run(run)
        } catch StoreError.unreadableRun {
            // No sender takes it up: the other stops go on record.
            return false
        }
        guard let known = found else { return true }
        // The sender of a cancelled run may still wait for responses.
        if known.state.isFinal { return known.owner == nil }
        // The stop stays in the file until the run is resumed: `resume` lifts both.
        guard known.state != .paused else { return false }
        let events = try await store.events(run: run, since: order.at, limit: eventsMax)
        let kept = events.firstIndex {
            $0.kind == EventKind.runPaused.rawValue && $0.detail == order.pauseReason
        }
        if let kept, events[kept...].contains(where: { $0.kind == EventKind.runRunning.rawValue }) { return true }
        do {
            try await store.change(run, to: .paused, reason: order.pauseReason, now: now, by: Actor(order.by))
        } catch StoreError.illegalChange {
            // It ended meanwhile.
        }
        return false
    }

    /// The run obeys from now on, also what is in force already. To be given to ``leave(_:)``.
    func join(_ run: Run, _ control: RunControl) -> Int {
        let (seat, order) = state.withLock { state in
            state.next += 1
            state.runs[state.next] = (run, control)
            return (state.next, state.orders.order(of: run))
        }
        if let order { control.stop(.stopped(order), since: moment(of: order)) }
        return seat
    }

    func leave(_ seat: Int) { state.withLock { _ = $0.runs.removeValue(forKey: seat) } }

    /// By ``BootClock``: what started later started in spite of the stop.
    private func moment(of order: StopOrder) -> UInt64 {
        let (boot, wall) = (BootClock.now(), now())
        let ago = max(0, wall.milliseconds - order.at.milliseconds)
        return file == nil ? boot : boot - min(boot, UInt64(ago) * 1_000_000)
    }

    private func look(since mark: Mark?) -> Mark {
        guard let file else { return Mark() }
        var facts = stat()
        var found = Mark()
        if stat(file.path, &facts) == 0 {
            found = Mark(
                inode: UInt64(facts.st_ino), seconds: facts.st_mtim.tv_sec, nanoseconds: facts.st_mtim.tv_nsec,
                size: Int(facts.st_size))
        }
        if found != mark { hear(file.read()) }
        return found
    }
}

extension StopOrder {
    /// Of the run that it pauses.
    package var pauseReason: String { "stopped\(reason.map { ": \($0)" } ?? "")" }
}

/// What a sender says of a stop it has obeyed, once the last answer is in.
package struct StopNote: Hashable, Sendable {
    /// Requests that were started after the moment of the stop.
    package var left: Int
    package var words: String

    init(_ order: StopOrder, left: Int) {
        self.left = left
        words =
            "\(left) \(left == 1 ? "request was" : "requests were") started after the stop of "
            + "\(order.scope.words) by \(order.by) at \(order.at.iso8601)"
    }

    /// As it stands in an event.
    package init?(_ event: StoreEvent) {
        guard event.kind == EventKind.runStopped.rawValue, let left = event.detail.split(separator: " ").first,
            let count = Int(left)
        else { return nil }
        self.left = count
        words = event.detail
    }
}
