package import Model
package import Sending
import Store
import Synchronization

/// Lets one of several counts of many rows go on at a time: they read through the store for seconds, and whoever sends needs
/// it as well.
package final class CountingGate: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// False while somebody else counts.
    func take() -> Bool {
        state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
    }

    func giveBack() {
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

/// Figures that take seconds to count, for pages that show them at each look: they are counted behind whoever looks, one at
/// a time and each a small part of the time, and all are told what was found last, with when that was.
package actor CountedBehind<Key: Hashable & Sendable, Figure: Sendable> {
    /// What was found, and when.
    package struct Counted: Sendable {
        package var figure: Figure
        package var at: Timestamp
        fileprivate var uptime: Duration
        fileprivate var took: Duration

        /// One that was counted for this look alone.
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

    /// So many times as long as counting took, nothing is counted again.
    private static var rest: Int { 40 }
    /// What is due for so long is not shown any more: nobody has looked meanwhile.
    private static var overdueMax: Duration { .seconds(600) }
    private static var keptMax: Int { 100 }

    private let gate: CountingGate
    private let clock: WallClock
    private let every: Duration?
    private var known: [Key: Counted] = [:]
    private var failures: [Key: any Error] = [:]
    private var counting: [Key: Task<Counted, any Error>] = [:]
    /// Counted once more because what was found is true no more; where that is not true either, it rests.
    private var refuted: Set<Key> = []

    /// - Parameters:
    ///   - gate: shared by all who count in this store.
    ///   - every: at the soonest; nil: what was counted once does not change any more.
    package init(_ gate: CountingGate, clock: WallClock, every: Duration?) {
        self.gate = gate
        self.clock = clock
        self.every = every
    }

    /// What was found last; nil: it is being counted. Throws why it cannot be, once that is known; then each look tries
    /// again.
    ///
    /// - Parameter isTrue: false: what was found is known to be so no more, and is not shown.
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

    /// The same for whoever needs a figure: waits for it where there is none.
    package func awaited(_ key: Key, count: @escaping @Sendable () async throws -> Figure) async throws -> Counted {
        while true {
            if isDue(key) { countBehind(key, count) }
            if let counted = usable(key) { return counted }
            if let counting = counting[key] { return try await counting.value }
            // Something else is being counted.
            await gate.settle()
            try Task.checkCancellation()
        }
    }

    private func isDue(_ key: Key) -> Bool { known[key].map { overdue($0) >= .zero } ?? true }

    /// Not from long ago.
    private func usable(_ key: Key) -> Counted? {
        known[key].flatMap { overdue($0) < Self.overdueMax ? $0 : nil }
    }

    /// How long ago it should have been counted again; below zero: it is good for as long yet.
    private func overdue(_ counted: Counted) -> Duration {
        guard let every else { return .zero - Self.overdueMax }
        return clock.uptime() - counted.uptime - max(every, counted.took * Self.rest)
    }

    /// Who comes while something is counted asks again later.
    private func countBehind(_ key: Key, _ count: @escaping @Sendable () async throws -> Figure) {
        guard counting[key] == nil, gate.take() else { return }
        counting[key] = Task {
            defer { gate.giveBack() }
            let result: Result<Counted, any Error>
            // Every viewer sees the figure: the first one's leaving does not end the count.
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
