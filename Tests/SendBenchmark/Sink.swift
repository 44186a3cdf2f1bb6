import APNsSimulator
import ArgumentParser
import Foundation

/// The server side, in a process of its own so that its CPU time is not counted: a simulator that accepts everything.
struct Sink: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve in accept-all mode until standard input closes.", shouldDisplay: false)

    @Argument var directory: String
    @Option var answerDelay = 0
    /// Misbehaves at random if given.
    @Option var faultSeed: UInt64?

    /// Each at its rate, so that minutes at full speed meet them all.
    private static let faults = [
        FaultRule(when: .rate(1e-4), action: .answer(status: 503, reason: "ServiceUnavailable")),
        FaultRule(when: .rate(1e-5), action: .page(status: 502, body: "<html>Bad Gateway</html>")),
        FaultRule(when: .rate(1e-4), action: .refuseStream),
        FaultRule(when: .rate(1e-5), action: .reset(code: 2)),
        FaultRule(when: .rate(1e-5), action: .delay(milliseconds: 200)),
        FaultRule(when: .rate(1e-6), action: .cutAnswer),
        .answerLost(.rate(1e-6)),
        .answerLost(.rate(1e-6), by: .silence),
        FaultRule(when: .rate(2e-6), action: .goAway(lastStream: .this, reason: "Shutdown")),
        FaultRule(when: .rate(1e-6), action: .goAway(lastStream: .middle, reason: nil, closes: true)),
        FaultRule(when: .rate(1e-6), action: .streamLimit(50, forMilliseconds: 500)),
        FaultRule(when: .rate(2e-7), action: .silentConnection),
        FaultRule(when: .rate(1e-7), action: .outage(milliseconds: 300)),
        .droppedConnect(.rate(0.05)),
    ]

    func run() throws {
        var options = SimulatorOptions(directory: directory)
        options.mode = .acceptAll
        options.sandboxPort = nil
        options.answerDelayMs = answerDelay
        if let faultSeed { (options.faults, options.seed) = (Self.faults, faultSeed) }
        let simulator = try Simulator(options)
        try simulator.start()
        defer { simulator.stop() }
        // Straight to the pipe: what is printed would wait in a buffer, and the other side for it.
        let line = "\(simulator.port(for: .production)) \(simulator.authorityPath)\n"
        try FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
        _ = FileHandle.standardInput.readDataToEndOfFile()
    }
}
