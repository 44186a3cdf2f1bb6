package import Model

/// A run whose stored row this version cannot read: the row is damaged, or a newer version wrote it.
package struct UnreadableRun: Hashable, Sendable {
    package var run: Int64
    package var campaign: String
    package var occurrence: String
    /// The stored word, which this version may not know.
    package var state: String
    /// What cannot be read.
    package var reason: String

    package init(run: Int64, campaign: String, occurrence: String, state: String, reason: String) {
        self.run = run
        self.campaign = campaign
        self.occurrence = occurrence
        self.state = state
        self.reason = reason
    }

    package var error: StoreError { .unreadableRun(run: run, reason: reason) }
}

/// A row of a list of runs.
///
/// Every list of runs is read through this type, so that one unreadable row never makes the list fail. The list leaves
/// the row out, and ``RunLog/unreadableRuns()`` reports it.
package enum ListedRun: Hashable, Sendable {
    case readable(Run)
    case unreadable(UnreadableRun)

    /// Reads a row; a value that this version cannot read makes it unreadable. Other errors are rethrown.
    package init(
        run: Int64, campaign: String, occurrence: String, state: String, read: (RunState) throws -> Run
    ) throws {
        func unreadable(_ reason: String) -> ListedRun {
            .unreadable(
                UnreadableRun(run: run, campaign: campaign, occurrence: occurrence, state: state, reason: reason))
        }
        guard let known = RunState(rawValue: state) else {
            self = unreadable("its state \"\(state)\" is not known")
            return
        }
        do {
            self = .readable(try read(known))
        } catch let error as DecodingError {
            self = unreadable("in its definition, \(DecodingFault(error))")
        }
    }

    package var id: Int64 {
        switch self {
        case .readable(let run): run.id
        case .unreadable(let run): run.run
        }
    }

    /// Returns the run; throws ``StoreError/unreadableRun(run:reason:)`` if its row cannot be read.
    package func get() throws -> Run {
        switch self {
        case .readable(let run): return run
        case .unreadable(let run): throw run.error
        }
    }

    /// The number of rows that ``first(_:)`` reads at most.
    private static let firstMax = 64

    /// Returns the first run that can be read.
    ///
    /// - Parameter rows: reads the first rows, at most as many as it is told.
    package static func first(_ rows: (_ limit: Int) throws -> [ListedRun]) rethrows -> Run? {
        for limit in [1, firstMax] {
            let found = try rows(limit)
            if let run = found.readable.first { return run }
            if found.count < limit { return nil }
        }
        return nil
    }

    /// Returns a full page of runs that can be read, or all that are left.
    ///
    /// - Parameter rows: reads the rows that follow an id in the order of the list, at most as many as it is told.
    package static func page(
        from id: Int64?, limit: Int, _ rows: (_ last: Int64?, _ limit: Int) throws -> [ListedRun]
    ) rethrows -> [Run] {
        var (runs, last): ([Run], Int64?) = ([], id)
        while runs.count < limit {
            let wanted = limit - runs.count
            let found = try rows(last, wanted)
            runs += found.readable
            last = found.last?.id
            if found.count < wanted { break }
        }
        return runs
    }
}

/// The progress of a run, which can be read without its definition.
package struct RunProgress: Hashable, Sendable {
    package var isFrozen: Bool
    package var counts: DeliveryCounts
    /// The stored word, which this version may not know.
    private let state: String
    /// Whether the run has ended completely: it is in a final state, and no sender works on it.
    private let isEnded: Bool

    package init(state: String, isFrozen: Bool, isEnded: Bool, counts: DeliveryCounts) {
        self.state = state
        self.isFrozen = isFrozen
        self.isEnded = isEnded
        self.counts = counts
    }

    /// Whether no delivery can change any more, except by a breaker that takes rejections back. In a cancelled run,
    /// senders that still take part may release their leases.
    package var isSettled: Bool {
        let isFinal = RunState(rawValue: state)?.isFinal ?? false
        return counts.leased == 0 && (isFinal ? isEnded : isFrozen && counts.pending == 0)
    }
}

extension Sequence<ListedRun> {
    package var readable: [Run] {
        compactMap { if case .readable(let run) = $0 { run } else { nil } }
    }

    package var unreadable: [UnreadableRun] {
        compactMap { if case .unreadable(let run) = $0 { run } else { nil } }
    }
}
