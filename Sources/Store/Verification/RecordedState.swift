package import Model

/// The state that a run is in after an event.
package struct RecordedState: Sendable {
    package let kind: EventKind
    package let state: RunState

    package static let all =
        [
            RecordedState(kind: .runCreated, state: .scheduled), RecordedState(kind: .runClaimed, state: .running),
            RecordedState(kind: .runLate, state: .paused),
        ] + RunState.allCases.map { RecordedState(kind: .entered($0), state: $0) }
}
