import ArgumentParser

@main
struct SendBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Measures sending against one server: h2load, the transports alone, and the whole pipeline with each.",
        discussion: """
            Each line is measured in a process of its own. CPU per push is user and system time of the client alone; the \
            ratio is to h2load's (package nghttp2-client) with as many connections. Figures are medians of the rounds.
            Build with -c release: swift run -c release SendBenchmark
            """,
        subcommands: [Measure.self, Soak.self, Round.self, Preparation.self, Sink.self], defaultSubcommand: Measure.self
    )
}
