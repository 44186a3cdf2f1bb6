import Model
import Store

/// Tells other processes that this one is alive and has the run, and hears from them.
struct Heartbeat: Sendable {
    static let interval: Duration = .seconds(1)

    let store: any SendingStore
    let run: Int64
    let owner: String
    let control: RunControl
    let clock: WallClock

    /// Beats while `work` goes on.
    func beating(_ work: @escaping @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await work()
                return true
            }
            group.addTask {
                try await beat()
                return false
            }
            while let isWork = try await group.next() {
                if isWork { group.cancelAll() }
            }
        }
    }

    private func beat() async throws {
        while !Task.isCancelled {
            await clock.sleep(Self.interval)
            guard !Task.isCancelled else { return }
            let state: RunState
            do {
                state = try await store.heartbeat(run, owner: owner, now: clock.now())
            } catch is CancellationError {
                return
            }
            if state != .running { control.stop(.stateChanged(state)) }
        }
    }
}
