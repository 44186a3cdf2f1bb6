import APNs
import Foundation

/// The server to send to: a given one, or a simulator this process starts and stops.
final class BenchmarkTarget {
    let endpoint: PushEndpoint
    let trust: String?
    private let sink: Process?
    private let sinkInput: Pipe?

    enum Problem: Error, CustomStringConvertible {
        case badEndpoint(String)
        case sinkDidNotStart

        var description: String {
            switch self {
            case .badEndpoint(let text): "--endpoint \(text): write host:port"
            case .sinkDidNotStart: "the server process did not start"
            }
        }
    }

    private init(endpoint: PushEndpoint, trust: String?, sink: Process?, sinkInput: Pipe?) {
        self.endpoint = endpoint
        self.trust = trust
        self.sink = sink
        self.sinkInput = sinkInput
    }

    static func open(
        endpoint: String?, trust: String?, answerDelay: Int, directory: String, faultSeed: UInt64? = nil
    ) throws -> BenchmarkTarget {
        guard let endpoint else { return try started(in: directory, answerDelay, faultSeed) }
        guard let parsed = PushEndpoint(parsing: endpoint) else { throw Problem.badEndpoint(endpoint) }
        return BenchmarkTarget(endpoint: parsed, trust: trust, sink: nil, sinkInput: nil)
    }

    private static func started(
        in directory: String, _ answerDelay: Int, _ faultSeed: UInt64?
    ) throws -> BenchmarkTarget {
        let sink = Process()
        sink.executableURL = Child.executable
        sink.arguments =
            ["sink", directory, "--answer-delay", "\(answerDelay)"]
            + (faultSeed.map { ["--fault-seed", "\($0)"] } ?? [])
        let input = Pipe()
        let output = Pipe()
        sink.standardInput = input
        sink.standardOutput = output
        try sink.run()
        let line = try firstLine(output.fileHandleForReading)
        let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        guard words.count == 2, let port = Int(words[0]) else { throw Problem.sinkDidNotStart }
        return BenchmarkTarget(
            endpoint: PushEndpoint(host: "127.0.0.1", port: port), trust: words[1], sink: sink, sinkInput: input)
    }

    /// Up to the first line's end, or to the end of what the process writes.
    private static func firstLine(_ file: FileHandle) throws -> String {
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")), let more = try file.read(upToCount: 1), !more.isEmpty { line += more }
        return String(decoding: line, as: UTF8.self)
    }

    func close() {
        try? sinkInput?.fileHandleForWriting.close()
        sink?.waitUntilExit()
    }
}
