package import Model
package import Platform
package import Store
import Synchronization

/// Allows one count of many rows at a time. A count reads the store for seconds, and the sender needs the store too.
package final class CountQueue: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Acquires the queue. Returns `false` while another count holds it.
    func acquire() -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
    }

    func release() {
        let waiting = state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when nothing is being counted.
    package func settle() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isTaken { state.waiting.append(continuation) }
                return !state.isTaken
            }
            if isFree { continuation.resume() }
        }
    }
}

/// Figures that take seconds to count, for pages that show them on every request.
///
/// - The counts run in the background, one at a time, with a long pause after each.
/// - Every page shows the last figure and when it was counted.
package actor BackgroundCountCache<Key: Hashable & Sendable, Figure: Sendable> {
    /// A figure, and when it was counted.
    package struct Counted: Sendable {
        package var figure: Figure
        package var at: Timestamp
        fileprivate var uptime: Duration
        fileprivate var took: Duration

        /// Creates a figure that was counted for this request only.
        package init(_ figure: Figure, _ clock: WallClock) {
            self.init(figure, at: clock.now(), uptime: clock.uptime(), took: .zero)
        }

        fileprivate init(_ figure: Figure, at: Timestamp, uptime: Duration, took: Duration) {
            self.figure = figure
            self.at = at
            self.uptime = uptime
            self.took = took
        }
    }

    /// The minimum pause after a count, as a multiple of the time that the count took.
    private static var rest: Int { 40 }
    private static var keptMax: Int { 100 }

    /// Raised after each count.
    package nonisolated let countEnded = Signal()
    private let countQueue: CountQueue
    private let clock: WallClock
    private let every: Duration?
    private let overdueMax: Duration
    private var known: [Key: Counted] = [:]
    private var failures: [Key: any Error] = [:]
    private var counting: [Key: Task<Counted, any Error>] = [:]
    /// The keys that were recounted early because their figure was known to be outdated. If the new figure is outdated
    /// as well, the usual pause applies.
    private var refuted: Set<Key> = []

    /// - Parameters:
    ///   - countQueue: shared by all counts of this store.
    ///   - every: the minimum interval between counts; `nil` if a figure never changes once it is counted.
    ///   - overdueMax: the time for which a figure is still shown after its recount is due. Only a figure that no page
    ///     requests gets so old.
    package init(
        _ countQueue: CountQueue, clock: WallClock, every: Duration?, overdueMax: Duration = .seconds(600)
    ) {
        self.countQueue = countQueue
        self.clock = clock
        self.every = every
        self.overdueMax = overdueMax
    }

    /// Returns the last figure, or `nil` while it is being counted. Throws the error of the last count if there is no
    /// figure to show; each call then tries again.
    ///
    /// - Parameter isTrue: returns `false` if the figure is known to be outdated; such a figure is not shown.
    package func latest(
        _ key: Key, where isTrue: @Sendable (Figure) -> Bool = { _ in true },
        count: @escaping @Sendable () async throws -> Figure
    ) throws -> Counted? {
        let isFalse = known[key].map { !isTrue($0.figure) } ?? false
        if isDue(key) || isFalse && refuted.insert(key).inserted { countBehind(key, count) }
        if let counted = usable(key), !isFalse {
            refuted.remove(key)
            return counted
        }
        if let failure = failures[key] { throw failure }
        return nil
    }

    /// Returns the figure, like ``latest(_:where:count:)``, but waits for the count if there is no figure.
    package func awaited(_ key: Key, count: @escaping @Sendable () async throws -> Figure) async throws -> Counted {
        while true {
            if isDue(key) { countBehind(key, count) }
            if let counted = usable(key) { return counted }
            if let counting = counting[key] { return try await counting.value }
            // Another figure is being counted, so wait for that count.
            await countQueue.settle()
            try Task.checkCancellation()
        }
    }

    private func isDue(_ key: Key) -> Bool { known[key].map { overdue($0) >= .zero } ?? true }

    /// Returns the last figure, unless it is overdue by `overdueMax` or more.
    private func usable(_ key: Key) -> Counted? {
        known[key].flatMap { overdue($0) < overdueMax ? $0 : nil }
    }

    /// Returns how long ago the figure should have been recounted. A negative value is the time until it is due.
    private func overdue(_ counted: Counted) -> Duration {
        guard let every else { return .zero - overdueMax }
        return clock.uptime() - counted.uptime - max(every, counted.took * Self.rest)
    }

    /// Starts the count in the background. Does nothing while another count is running: the caller retries later.
    private func countBehind(_ key: Key, _ count: @escaping @Sendable () async throws -> Figure) {
        guard counting[key] == nil, countQueue.acquire() else { return }
        counting[key] = Task {
            defer { countQueue.release() }
            let result: Result<Counted, any Error>
            // Every viewer sees the figure, so the count continues if the first viewer leaves.
            do {
                result = .success(try await ReadAllowance.$current.withValue(nil) { try await counted(count) })
            } catch {
                result = .failure(error)
            }
            keep(result, key)
            return try result.get()
        }
    }

    private func counted(_ count: @Sendable () async throws -> Figure) async throws -> Counted {
        let (start, at) = (clock.uptime(), clock.now())
        let figure = try await count()
        let end = clock.uptime()
        return Counted(figure, at: at, uptime: end, took: end - start)
    }

    private func keep(_ result: Result<Counted, any Error>, _ key: Key) {
        defer { countEnded.raise() }
        counting[key] = nil
        switch result {
        case .success(let counted):
            failures[key] = nil
            if known.count >= Self.keptMax, let oldest = known.min(by: { $0.value.uptime < $1.value.uptime }) {
                known[oldest.key] = nil
            }
            known[key] = counted
        case .failure(let error):
            if failures.count >= Self.keptMax { failures = [:] }
            failures[key] = error
        }
    }
}
