import APNsSimulator
import ArgumentParser
import Foundation

/// Plays the demo's commands one after the other, and looks at each run from APNs' side as well.
struct DemoScene {
    let simulator: Simulator

    func broadcast() async throws {
        try await play("devices", "import", "devices.csv")
        try await play("segments", "import", "podcast-fans", "fans.csv")
        try await play("validate")
        let words = [
            "--var", "title=The Long Way Home", "--var", "link_url=https://example.com/42",
        ]
        try await play(["plan", "new-podcast"] + words)
        try await watched { try await play(["run", "new-podcast", "--occurrence", "episode-42", "--yes"] + words) }
        try await play("report", "new-podcast", "--check")
    }

    /// The budget is three background pushes an hour: the fourth run reaches nobody.
    func silentPushes() async throws {
        for number in 1...4 {
            try await watched {
                try await play("run", "refresh-episodes", "--occurrence", "refresh-\(number)", "--yes")
            }
        }
        try await play("report", "refresh-episodes", "--check")
    }

    private func play(_ arguments: String...) async throws {
        try await play(arguments)
    }

    private func play(_ arguments: [String]) async throws {
        let shown = arguments.map { $0.contains(" ") ? "'\($0)'" : $0 }.joined(separator: " ")
        Console.print("\n$ fanfare \(shown)")
        guard var command = try Fanfare.parseAsRoot(arguments) as? any AsyncParsableCommand else { return }
        try await command.run()
    }

    /// Runs a step and says what the simulator saw of it.
    private func watched(_ step: () async throws -> Void) async throws {
        let before = simulator.log().count
        try await step()
        Console.print("\n# APNs' side: " + WireAccount(simulator.log().dropFirst(before)).text)
    }
}

/// What APNs' side saw of one run.
struct WireAccount {
    let text: String

    init(_ entries: some Collection<SimulatorLogEntry>) {
        let accepted = entries.filter { $0.status == 200 }
        let acceptances = Dictionary(accepted.map { ($0.token ?? "", 1) }, uniquingKeysWith: +)
        let twice = acceptances.values.filter { $0 > 1 }.count
        let connections = Set(entries.map(\.connection)).count
        let early = entries.filter { !$0.hadAcceptance }.map(\.openStreams).max() ?? 0
        text =
            "\(entries.count.grouped) requests on \(connections) connections, \(accepted.count.grouped) accepted, "
            + "\(twice) tokens twice; at most \(early) stream open before the first accepted request"
    }
}
