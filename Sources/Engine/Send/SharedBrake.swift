import Model
import Synchronization

/// The brake of one endpoint, for all runs and lanes that use it.
final class SharedBrake: Sendable {
    private let endpoint: String
    private let chance: @Sendable () -> Double
    private let brake = Mutex(EndpointBrake())

    init(endpoint: String, chance: @escaping @Sendable () -> Double) {
        self.endpoint = endpoint
        self.chance = chance
    }

    func allowance(at now: Timestamp) -> EndpointBrake.Allowance {
        brake.withLock { $0.allowance(at: now) }
    }

    /// Hears what the responses say about the endpoint; returns why to stop when it is down for good.
    func saw(_ signs: some Sequence<EndpointBrake.Sign>, at now: Timestamp) -> RunControl.Halt? {
        let downSince = brake.withLock { brake in
            for sign in signs { brake.saw(sign, at: now, chance: chance) }
            defer {
                // Whoever goes on with a run later has reason to think that it works again.
                if brake.downSince != nil { brake = EndpointBrake() }
            }
            return brake.downSince
        }
        return downSince.map { downSince in
            .unreachable(
                "\(endpoint) has answered nothing but errors since \(downSince.iso8601), or not at all; look at Apple's "
                    + "system status page and at the network, then run the same command again")
        }
    }
}
