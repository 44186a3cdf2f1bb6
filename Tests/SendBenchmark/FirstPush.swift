import APNs
import Synchronization

/// Notes when the first batch was handed to any lane.
final class FirstPush: Transport {
    private let transport: any Transport
    private let start = ContinuousClock.now
    private let moment = Mutex<Duration?>(nil)

    init(_ transport: any Transport) {
        self.transport = transport
    }

    /// Since this was made.
    var seconds: Double {
        let passed = moment.withLock { $0 } ?? .zero
        return Double(passed.components.seconds) + Double(passed.components.attoseconds) / 1e18
    }

    func lane(to endpoint: PushEndpoint, named name: String) -> any Lane {
        NotingLane(lane: transport.lane(to: endpoint, named: name), note: note)
    }

    private func note() {
        moment.withLock { $0 = $0 ?? ContinuousClock.now - start }
    }

    private struct NotingLane: Lane {
        let lane: any Lane
        let note: @Sendable () -> Void

        func run() async throws(TransportError) { try await lane.run() }
        func completions() async -> [PushCompletion]? { await lane.completions() }
        func finish() { lane.finish() }
        var status: LaneStatus { lane.status }

        func send(_ batch: PushBatch) async -> Bool {
            note()
            return await lane.send(batch)
        }
    }
}
