import APNs
import Foundation
package import Model
import Platform
package import Store
import Synchronization

/// The stops that this process knows from the STOP file, and the runs that obey them immediately.
///
/// A separate thread waits for events in the folder (inotify(7)). It also checks every ``lookEveryMilliseconds``,
/// because some file systems report no events.
package final class StopWatch: Sendable {
    /// Stops a run. The number is the moment of the stop by ``BootClock``. Requests that start later are counted.
    package typealias Obey = @Sendable (StopOrder, UInt64) -> Void

    private static let lookEveryMilliseconds: Int32 = 50
    /// The maximum number of events read from a run's history since its stop.
    private static let eventsMax = 1000

    private struct State {
        var orders = StopOrders()
        var runs: [Int: (run: Run, obey: Obey)] = [:]
        var next = 0
    }

    /// The identity of the file and its last change.
    private struct Mark: Hashable {
        var inode: UInt64 = 0
        var seconds = 0
        var nanoseconds = 0
        var size = 0
    }

    private let state = Mutex(State())
    /// The file at the last look. Taken before ``state``.
    private let seen = Mutex<Mark?>(nil)
    private let file: StopFile?
    private let now: @Sendable () -> Timestamp

    private init(_ file: StopFile?, now: @escaping @Sendable () -> Timestamp) {
        self.file = file
        self.now = now
    }

    /// Creates a watch for a process that learns of stops only through ``hear(_:)``.
    package convenience init() { self.init(nil, now: { Timestamp(milliseconds: 0) }) }

    /// Watches the folder for as long as the returned watch is referenced.
    package static func following(_ folder: SenderFolder) -> StopWatch {
        let watch = StopWatch(folder.stopFile, now: folder.now)
        let inotify = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        let events = UInt32(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
        if inotify >= 0 { inotify_add_watch(inotify, folder.path, events) }
        watch.look()
        let thread = Thread { [weak watch] in
            Thread.current.name = "stop-watch"
            while true {
                // If inotify is unavailable, poll(2) just waits for the timeout.
                var waiting = pollfd(fd: inotify, events: Int16(POLLIN), revents: 0)
                poll(&waiting, 1, Self.lookEveryMilliseconds)
                guard let watch else { break }
                // Discard the events: the check below finds the change.
                var bytes = [UInt8](repeating: 0, count: 4096)
                while inotify >= 0, read(inotify, &bytes, bytes.count) > 0 {}
                watch.look()
            }
            if inotify >= 0 { close(inotify) }
        }
        thread.start()
        return watch
    }

    /// The stops in force, as far as this process knows. Looks at the file: the thread that watches it may not have
    /// seen yet that `resume` has just lifted a stop, also in this process.
    package var orders: StopOrders {
        look()
        return state.withLock { $0.orders }
    }

    /// Puts exactly these stops in force. The runs that they affect stop before this returns.
    package func hear(_ orders: StopOrders) {
        let stopped = state.withLock { state in
            state.orders = orders
            return state.runs.values.compactMap { entry in
                orders.order(of: entry.run).map { ($0, entry.obey) }
            }
        }
        for (order, obey) in stopped { obey(order, moment(of: order)) }
    }

    /// Records the stops that the file holds and the store does not have yet.
    ///
    /// Holds no lock while it waits for the store. The store remembers lifted stops. It rejects a stop that another
    /// process has lifted since the file was read.
    package func record(in store: any StopLog & RunLog & AuditLog, now: Timestamp) async throws {
        guard let file else { return _ = try await Self.record(orders, in: store, now: now) }
        guard !orders.isEmpty else { return }
        for order in try await Self.record(file.read(), in: store, now: now) { try file.lift(order) }
    }

    /// Returns the stops to remove from the file: another machine has lifted them, or their run is over or absent.
    private static func record(
        _ orders: StopOrders, in store: any StopLog & RunLog & AuditLog, now: Timestamp
    ) async throws -> [StopOrder] {
        let known = orders.isEmpty ? orders : try await store.stops()
        var lifted: [StopOrder] = []
        for order in orders.orders where known[order.scope] == nil {
            let isLifted =
                switch order.scope {
                case .run(let run): try await record(order, of: run, in: store, now: now)
                case .occurrence(let campaign, let occurrence):
                    // The run does not exist yet: the file keeps the stop until the run is created.
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

    /// Returns whether to remove the stop from the file: a person has resumed the run since, or the run is over or
    /// absent. A stop with a mistyped number would otherwise stop the run that gets this number later.
    private static func record(
        _ order: StopOrder, of run: Int64, in store: any StopLog & RunLog & AuditLog, now: Timestamp
    ) async throws -> Bool {
        let found: Run?
        do {
            found = try await store.run(run)
        } catch StoreError.unreadableRun {
            // No sender can send this run, so leave its stop in the file and record the other stops.
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
            // The run ended meanwhile.
        }
        return false
    }

    /// Makes the run obey stops from now on, including those in force. Pass the returned number to ``remove(_:)``.
    package func join(_ run: Run, _ obey: @escaping Obey) -> Int {
        look()
        let (number, order) = state.withLock { state in
            state.next += 1
            state.runs[state.next] = (run, obey)
            return (state.next, state.orders.order(of: run))
        }
        if let order { obey(order, moment(of: order)) }
        return number
    }

    package func remove(_ number: Int) { state.withLock { _ = $0.runs.removeValue(forKey: number) } }

    /// Returns the moment of a stop by ``BootClock``.
    private func moment(of order: StopOrder) -> UInt64 {
        let (boot, wall) = (BootClock.now(), now())
        guard file != nil else { return boot }
        // A stop from before the boot counts from the boot.
        let sinceBoot = Int64(min(boot / 1_000_000, UInt64(Int64.max)))
        let (ago, isTooLong) = wall.milliseconds.subtractingReportingOverflow(order.at.milliseconds)
        let known = isTooLong ? sinceBoot : min(max(0, ago), sinceBoot)
        return boot - UInt64(known) * 1_000_000
    }

    /// Reads the file if it has changed since the last look.
    private func look() {
        guard let file else { return }
        // Two looks at the same time could put the older content in force.
        seen.withLock { mark in
            var facts = stat()
            var found = Mark()
            if stat(file.path, &facts) == 0 {
                found = Mark(
                    inode: UInt64(facts.st_ino), seconds: facts.st_mtim.tv_sec, nanoseconds: facts.st_mtim.tv_nsec,
                    size: Int(facts.st_size))
            }
            guard found != mark else { return }
            mark = found
            hear(file.read())
        }
    }
}

extension StopOrder {
    /// The reason recorded for the run that this stop pauses.
    package var pauseReason: String { "stopped\(reason.map { ": \($0)" } ?? "")" }
}

/// The report of a sender about a stop that it has obeyed, written after the last response.
package struct StopNote: Hashable, Sendable {
    /// Requests that were started after the moment of the stop.
    package var left: Int
    package var summary: String

    package init(_ order: StopOrder, left: Int) {
        self.left = left
        summary =
            "\(left) \(left == 1 ? "request was" : "requests were") started after the stop of "
            + "\(order.scope.summary) by \(order.by) at \(order.at.iso8601)"
    }

    /// Reads the note from an event's detail.
    package init?(_ event: StoreEvent) {
        guard event.kind == EventKind.runStopped.rawValue, let left = event.detail.split(separator: " ").first,
            let count = Int(left)
        else { return nil }
        self.left = count
        summary = event.detail
    }
}
