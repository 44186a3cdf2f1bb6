import APNsSimulator
import ArgumentParser
import Foundation

/// The server side, in a process of its own so that its CPU time is not counted: a simulator that accepts everything.
struct Sink: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve in accept-all mode until standard input closes.", shouldDisplay: false)

    @Argument var directory: String
    @Option var answerDelay = 0

    func run() throws {
        var options = SimulatorOptions(directory: directory)
        options.mode = .acceptAll
        options.sandboxPort = nil
        options.answerDelayMs = answerDelay
        let simulator = try Simulator(options)
        try simulator.start()
        defer { simulator.stop() }
        // Straight to the pipe: what is printed would wait in a buffer, and the other side for it.
        let line = "\(simulator.port(for: .production)) \(simulator.authorityPath)\n"
        try FileHandle.standardOutput.write(contentsOf: Data(line.utf8))
        _ = FileHandle.standardInput.readDataToEndOfFile()
    }
}
