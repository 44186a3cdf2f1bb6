import HTTP2
import Synchronization

/// The listening ports of a simulator, one for each environment, to be closed and opened while it runs. Any thread.
final class SimulatorPorts: Sendable {
    private let listeners = Mutex<[SimulatorEnvironment: HTTP2Listener]>([:])

    func set(_ new: [SimulatorEnvironment: HTTP2Listener]) {
        listeners.withLock { $0 = new }
    }

    subscript(_ environment: SimulatorEnvironment) -> HTTP2Listener? {
        listeners.withLock { $0[environment] }
    }

    /// Ends every connection and refuses new ones for a while.
    func breakDown(_ environment: SimulatorEnvironment, milliseconds: Int) {
        guard let listener = self[environment] else { return }
        listener.refuse(milliseconds: milliseconds)
        listener.endConnections()
    }
}
