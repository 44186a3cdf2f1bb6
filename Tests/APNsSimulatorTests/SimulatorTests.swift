import Testing

/// One after the other: they count threads, and each has a server of its own.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct SimulatorTests {}
