import Foundation
import TestSupport
import Testing

/// The `console` blocks of a document, typed word for word into one shell, and the files that it tells the reader to
/// write.
struct ConsoleWalk {
    /// One command with what the document shows under it.
    struct Step {
        var command: String
        /// Lines of the output, in order; between those around `...` others may stand. Empty lines do not count.
        var shown: [String] = []
        var status: Int32 = 0
    }

    /// The longest time for all commands together. Most documents take a few seconds.
    private static let secondsMax = 600

    private(set) var steps: [Step] = []

    init(_ text: String) throws {
        var fence: String?
        var file: (path: String, lines: [String])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if line.hasPrefix("```") {
                if let written = file { steps.append(Step(command: Self.writing(written.path, written.lines))) }
                file = nil
                let words = line.dropFirst(3).split(separator: " ")
                let path = words.first { $0.hasPrefix("file=") }?.dropFirst("file=".count)
                fence = fence == nil ? words.first.map(String.init) ?? "" : nil
                if fence != nil, let path { file = (String(path), []) }
            } else if file != nil {
                file?.lines.append(line)
            } else if fence == "console" {
                try read(line)
            }
        }
    }

    private mutating func read(_ line: String) throws {
        if line.hasPrefix("$ ") {
            steps.append(Step(command: String(line.dropFirst(2))))
        } else if line.hasPrefix("# exit ") {
            steps[steps.count - 1].status = try #require(Int32(line.dropFirst("# exit ".count)))
        } else if line != "...", !line.isEmpty {
            try #require(!steps.isEmpty, "a document shows output before the first command: \(line)")
            steps[steps.count - 1].shown.append(line)
        }
    }

    /// Returns the command that writes a file as an editor would.
    private static func writing(_ path: String, _ lines: [String]) -> String {
        let folder = path.split(separator: "/").dropLast().joined(separator: "/")
        return (folder.isEmpty ? "" : "mkdir -p \(folder); ") + "cat > \(path) <<'END-OF-FILE'\n"
            + lines.joined(separator: "\n") + "\nEND-OF-FILE"
    }

    /// Types all commands, and expects of each what the document shows.
    func type(in folder: URL, environment: [String: String] = [:]) throws {
        let outputs = try outputs(in: folder, environment)
        if outputs.count < steps.count {
            let (step, before) = (steps[outputs.count], outputs.last?.lines ?? [])
            Issue.record("\(step.command): no end; the command before it printed \(before)")
        }
        for (step, output) in zip(steps, outputs) {
            #expect(output.status == step.status, "\(step.command): \(output.lines)")
            var rest = output.lines[...]
            for line in step.shown {
                let place = rest.firstIndex(of: line)
                #expect(place != nil, "\(step.command) did not print '\(line)' but \(output.lines)")
                if let place { rest = rest[(place + 1)...] }
            }
        }
    }

    /// Runs all commands in one shell, so that variables stay.
    private func outputs(in folder: URL, _ environment: [String: String]) throws -> [(status: Int32, lines: [String])] {
        let mark = "-- \(UUID().uuidString)"
        let script = steps.map { "\($0.command)\necho \"\(mark) $?\"\n" }.joined()
        let files = try TemporaryDirectory()
        let shell = Process()
        // Nothing that the document starts outlives its shell. A command that hangs is ended with all of its group.
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
        let start = "exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n"
        shell.arguments = ["--kill-after=5", "\(Self.secondsMax)", "/bin/bash", "-c", start + script]
        shell.currentDirectoryURL = folder
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let more = environment.merging(["PATH": "\(Program.url.deletingLastPathComponent().path):\(path)"]) { $1 }
        shell.environment = ProcessInfo.processInfo.environment.merging(more) { $1 }
        shell.standardInput = FileHandle.nullDevice
        let file = try files.newFile()
        shell.standardOutput = try FileHandle(forWritingTo: file)
        try BlockedSignals.without { try shell.run() }
        shell.waitForEnd(killingAfter: .seconds(Self.secondsMax + 30))
        var outputs: [(status: Int32, lines: [String])] = []
        var lines: [String] = []
        let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        for line in text.split(separator: "\n").map(String.init) {
            guard line.hasPrefix(mark) else {
                lines.append(line)
                continue
            }
            outputs.append((try #require(Int32(line.dropFirst(mark.count + 1))), lines))
            lines = []
        }
        return outputs
    }
}
