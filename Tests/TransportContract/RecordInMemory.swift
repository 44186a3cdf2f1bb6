package import APNs
import Synchronization

/// What a store would keep, in memory; busy, it answers nobody.
package final class RecordInMemory: ProviderTokenSharing {
    struct Busy: Error {}

    /// How many tokens there were, each time one is added.
    private let (counts, counted) = AsyncStream.makeStream(of: Int.self)

    private struct State {
        var current: SharedProviderToken?
        var tokens: Set<String> = []
        var isBusy = false
    }

    private let state = Mutex(State())

    package init() {}

    package var tokens: Set<String> { state.withLock { $0.tokens } }

    package func until(_ isReached: (Int) -> Bool) async {
        for await count in counts where isReached(count) { return }
    }

    package var isBusy: Bool {
        get { state.withLock { $0.isBusy } }
        set { state.withLock { $0.isBusy = newValue } }
    }

    package func current() async throws -> SharedProviderToken? {
        try state.withLock { state in
            if state.isBusy { throw Busy() }
            return state.current
        }
    }

    package func replace(_ known: SharedProviderToken?, with new: SharedProviderToken) async throws
        -> SharedProviderToken
    {
        try state.withLock { state in
            if state.isBusy { throw Busy() }
            if let current = state.current, current != known { return current }
            state.current = new
            if state.tokens.insert(new.authorization).inserted { counted.yield(state.tokens.count) }
            return new
        }
    }
}
