import Model
import Store
import Testing

@Suite struct `A run that is tried again` {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)

    private func run(_ halt: RunHalt?, halted: Int?, last: Int?, pausedBy: String? = nil) -> Run {
        func moment(_ seconds: Int?) -> Timestamp? { seconds.map { Self.noon + .seconds($0) } }
        let definition = RunDefinition(
            campaign: Campaign(name: "c", topic: "t", pushType: .alert, template: "t"), template: Template(name: "t"),
            variables: [:], plannedAt: Self.noon)
        return Run(
            id: 1, campaign: "c", occurrence: "o", definition: definition, state: .paused, createdAt: Self.noon,
            heartbeatAt: moment(last), pausedBy: pausedBy, halt: halt, haltedAt: moment(halted))
    }

    @Test(arguments: [
        (RunHalt.unreachable, 0, 0, 30), (.unreachable, 0, 30, 60), (.unreachable, 0, 60, 120),
        (.unreachable, 0, 120, 240), (.unreachable, 0, 240, 480), (.unreachable, 0, 480, 780),
        (.unreachable, 0, 3000, 3300), (.credential, 0, 0, 120), (.credential, 0, 120, 240),
        (.credential, 0, 240, 480), (.unreachable, 500, 500, 530),
    ])
    func `waits as long as it was halted, within bounds`(halt: RunHalt, halted: Int, last: Int, next: Int) throws {
        let run = run(halt, halted: halted, last: last)
        let moment = Self.noon + .seconds(next)
        #expect(HaltRetry.nextTry(of: run) == moment)
        #expect(!HaltRetry.isDue(run, at: moment - .milliseconds(1)) && HaltRetry.isDue(run, at: moment))
    }

    @Test func `is not tried again while it waits for a person`() {
        for halt in RunHalt.allCases {
            #expect((HaltRetry.nextTry(of: run(halt, halted: 0, last: 0)) == nil) == halt.waitsForPerson)
            #expect(HaltRetry.nextTry(of: run(halt, halted: 0, last: 0, pausedBy: "ray")) == nil)
        }
        #expect(RunHalt.automatic == [.unreachable, .credential])
    }

    /// Somebody set the clock back since.
    @Test func `waits for no moment that a wrong clock has written down`() {
        #expect(HaltRetry.isDue(run(.unreachable, halted: 7200, last: 7200), at: Self.noon))
        #expect(!HaltRetry.isDue(run(.unreachable, halted: 50, last: 50), at: Self.noon))
    }
}
