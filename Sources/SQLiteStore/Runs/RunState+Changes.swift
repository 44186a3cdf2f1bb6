import Store
import Model

extension RunState {
    /// The arrows of the state diagram, as the cases of `RunState` document them.
    func mayBecome(_ next: RunState) -> Bool {
        switch self {
        case .scheduled: [.running, .paused, .missed, .cancelled, .failed].contains(next)
        case .running: [.paused, .finished, .cancelled, .failed].contains(next)
        // The last outcomes may arrive after somebody asked for a pause.
        case .paused: [.running, .finished, .cancelled, .failed].contains(next)
        case .finished, .cancelled, .failed, .missed: false
        }
    }
}
