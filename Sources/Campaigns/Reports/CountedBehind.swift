package import Model
package import Sending

/// Figures that take seconds to count, for pages that show them at each look: they are counted behind whoever looks, one at
/// a time and a small part of the time, and all are told what was found last, with when that was.
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

    private let clock: WallClock
    private let every: Duration?
    private var known: [Key: Counted] = [:]
    private var counting: Task<Void, Never>?

    /// - Parameter every: at the soonest; nil: what was counted once does not change any more.
    package init(clock: WallClock, every: Duration?) {
        self.clock = clock
        self.every = every
    }

    /// What was found last; nil: it is being counted.
    ///
    /// - Parameter isTrue: false: what was found is known to be so no more, and is not shown.
    package func latest(
        _ key: Key, where isTrue: @Sendable (Figure) -> Bool = { _ in true },
        count: @escaping @Sendable () async throws -> Figure
    ) -> Counted? {
        let counted = known[key].flatMap { isTrue($0.figure) && overdue($0) < Self.overdueMax ? $0 : nil }
        if counted.map({ overdue($0) >= .zero }) ?? true { countBehind(key, count) }
        return counted
    }

    /// The same for whoever needs a figure: waits for it where there is none.
    package func awaited(_ key: Key, count: @escaping @Sendable () async throws -> Figure) async throws -> Counted {
        if let counted = latest(key, count: count) { return counted }
        await settle()
        if let counted = latest(key, count: count) { return counted }
        // It cannot be counted, which this says, or something else was.
        return try await counted(key, count)
    }

    /// Returns when nothing is being counted.
    package func settle() async { await counting?.value }

    /// How long ago it should have been counted again; below zero: it is good for as long yet.
    private func overdue(_ counted: Counted) -> Duration {
        guard let every else { return .zero - Self.overdueMax }
        return clock.uptime() - counted.uptime - max(every, counted.took * Self.rest)
    }

    /// One at a time: who comes meanwhile asks again later.
    private func countBehind(_ key: Key, _ count: @escaping @Sendable () async throws -> Figure) {
        guard counting == nil else { return }
        counting = Task {
            _ = try? await counted(key, count)
            counting = nil
        }
    }

    private func counted(_ key: Key, _ count: @Sendable () async throws -> Figure) async throws -> Counted {
        let (start, at) = (clock.uptime(), clock.now())
        let figure = try await count()
        let end = clock.uptime()
        let counted = Counted(figure, at: at, uptime: end, took: end - start)
        if known.count >= Self.keptMax, let oldest = known.min(by: { $0.value.uptime < $1.value.uptime }) {
            known[oldest.key] = nil
        }
        known[key] = counted
        return counted
    }
}
