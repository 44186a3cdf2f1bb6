import Foundation
import TestSupport
import Testing

@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The README` {
    /// `fanfare devices export|show` names two commands.
    private static func commands() throws -> [[String]] {
        let text = try String(contentsOf: Installation.root.appending(path: "README.md"), encoding: .utf8)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("fanfare ") }
        let commands = lines.flatMap { line -> [[String]] in
            // The explanation stands behind at least two blanks.
            let words = line.prefix(upTo: line.firstRange(of: "  ")?.lowerBound ?? line.endIndex)
                .split(separator: " ").dropFirst()
                .prefix { $0.allSatisfy { $0.isLowercase || $0 == "-" || $0 == "|" } && !$0.hasPrefix("-") }
            return words.prefix(2).reduce([[]]) { paths, word in
                paths.flatMap { path in word.split(separator: "|").map { path + [String($0)] } }
            }
        }
        try #require(commands.count > 8)
        return commands
    }

    @Test func `names commands that exist`() throws {
        let folder = try TemporaryDirectory()
        for command in try Self.commands() {
            let result = try Program.run(command + ["--help"], in: folder)
            #expect(result.status == 0, "fanfare \(command.joined(separator: " "))")
            #expect(result.output.contains("USAGE: fanfare \(command.joined(separator: " "))"))
        }
    }
}

@Suite(.ownThread, .timeLimit(.minutes(10))) struct `The runbook` {
    @Test func `says of exit code 3 what --help says`() throws {
        let words =
            "refused by a guard, missed, or finished without reaching a device, unless its devices were left out on purpose"
        let help = try Program.run(["--help"], in: try TemporaryDirectory()).output
        let runbook = try String(
            contentsOf: Installation.root.appending(path: "systemd/runbook.md"), encoding: .utf8)
        for text in [runbook, help] {
            #expect(text.split(whereSeparator: \.isWhitespace).joined(separator: " ").contains(words), "\(text)")
        }
    }
}
