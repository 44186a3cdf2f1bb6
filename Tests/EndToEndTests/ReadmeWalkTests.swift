import Foundation
import TestSupport
import Testing

/// The README's walk through, typed word for word into a shell beside a demo that stays up.
@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The walk through` {
    /// One command of a `console` block with what the README shows under it.
    struct Step {
        var command: String
        /// Lines of the output, in order; between those around `...` others may stand.
        var shown: [String] = []
        var status: Int32 = 0
    }

    private static func steps() throws -> [Step] {
        let text = try String(contentsOf: Installation.root.appending(path: "README.md"), encoding: .utf8)
        var steps: [Step] = []
        var isInside = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if line.hasPrefix("```") {
                isInside = line == "```console"
            } else if isInside, line.hasPrefix("$ ") {
                steps.append(Step(command: String(line.dropFirst(2))))
            } else if isInside, line.hasPrefix("# exit ") {
                steps[steps.count - 1].status = try #require(Int32(line.dropFirst("# exit ".count)))
            } else if isInside, line != "..." {
                steps[steps.count - 1].shown.append(line)
            }
        }
        try #require(steps.count >= 10)
        return steps
    }

    @Test func `does and prints what the README shows`() throws {
        let folder = try TemporaryDirectory()
        let demo = try StayingDemo(in: folder)
        defer { demo.stop() }
        let steps = try Self.steps()
        let outputs = try Self.type(steps.map(\.command), in: folder)
        try #require(outputs.count == steps.count)
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
    private static func type(_ commands: [String], in folder: TemporaryDirectory) throws
        -> [(status: Int32, lines: [String])]
    {
        let mark = "-- \(UUID().uuidString)"
        let script = commands.map { "\($0)\necho \"\(mark) $?\"\n" }.joined()
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/bash")
        shell.arguments = ["-c", "exec 2>&1\ncd demo\n" + script]
        shell.currentDirectoryURL = folder.url
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        shell.environment = ProcessInfo.processInfo.environment.merging(
            ["PATH": "\(Program.url.deletingLastPathComponent().path):\(path)"]) { $1 }
        shell.standardInput = FileHandle.nullDevice
        let file = try folder.newFile()
        shell.standardOutput = try FileHandle(forWritingTo: file)
        try shell.run()
        // A walk of many commands.
        shell.waitForEnd(killingAfter: .seconds(540))
        var outputs: [(status: Int32, lines: [String])] = []
        var lines: [String] = []
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init) {
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

/// `fanfare demo --stay`, past its last step.
private struct StayingDemo {
    private let process = Process()

    init(in folder: TemporaryDirectory) throws {
        let output = Pipe()
        process.executableURL = Program.url
        process.arguments = ["demo", "--dir", "demo", "--stay"]
        process.currentDirectoryURL = folder.url
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        try process.run()
        let overdue = process.killed()
        defer { overdue.cancel() }
        var seen = Data()
        while !String(decoding: seen, as: UTF8.self).contains("# The simulator and the daemon keep running") {
            let next = output.fileHandleForReading.availableData
            try #require(!next.isEmpty, "\(String(decoding: seen, as: UTF8.self))")
            seen += next
        }
    }

    /// As Ctrl-C does.
    func stop() {
        process.interrupt()
        process.waitForEnd()
    }
}
