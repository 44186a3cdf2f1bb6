import APNsSimulator
import Synchronization

/// A clock for a simulator that moves only when told.
final class ManualTime: Sendable {
    private let time = Mutex(SimulatorOptions.systemMilliseconds())

    var milliseconds: Int64 {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }
}

extension Simulator {
    /// Until its counts are so; for what a client is never told.
    func wait(until condition: (SimulatorCounts) -> Bool) throws {
        let patience = ContinuousClock.now + .seconds(20)
        while !condition(counts()) {
            if ContinuousClock.now > patience { throw TestClient.Failure.ended }
        }
    }
}
