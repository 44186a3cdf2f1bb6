import Model
import Testing

struct `Run transitions` {
    private static let allowed: [RunState: Set<RunState>] = [
        .scheduled: [.running, .paused, .missed, .cancelled, .failed],
        .running: [.paused, .finished, .cancelled, .failed],
        .paused: [.running, .finished, .cancelled, .failed],
        .finished: [], .cancelled: [], .failed: [], .missed: [],
    ]

    private static let all = RunState.allCases.flatMap { from in
        RunState.allCases.map { RunTransition(from: from, to: $0) }
    }

    @Test(arguments: all) func `are those of the diagram and no others`(transition: RunTransition) {
        #expect(transition.isAllowed == (Self.allowed[transition.from]?.contains(transition.to) ?? false))
    }

    @Test func `lead nowhere from a final state, and somewhere from any other`() {
        for state in RunState.allCases {
            #expect(RunTransition.successors(of: state).isEmpty == state.isFinal)
            #expect(!RunTransition.successors(of: state).contains(state))
        }
        #expect(RunState.unfinished == [.scheduled, .running, .paused])
    }

    /// What `fanfare pause`, `resume` and `cancel` did before the rule had a type of its own.
    @Test(arguments: all, [false, true]) func `asked for by a person are carried out, of no effect or refused`(
        transition: RunTransition, isPausedByItself: Bool
    ) {
        let (from, to) = (transition.from, transition.to)
        let isHeldFast = to == .paused && from == .paused && isPausedByItself
        let request = transition.request(isPausedByItself: isPausedByItself)
        if !(from != to || to == .cancelled || isHeldFast) {
            #expect(request == .nothingToDo)
        } else if !((Self.allowed[from]?.contains(to) ?? false) || from == to) || to == .finished {
            #expect(request == .refused)
        } else {
            #expect(request == .carriedOut)
        }
    }
}
