import APNsSimulator
import Foundation
import TestSupport
import Testing

/// How far a broadcast at full speed on four lanes goes on after a stop. `FANFARE_STOP_TRIALS=200` measures; a few trials
/// only see that it stops, and that the sums close.
@Suite(.ownThread, .timeLimit(.minutes(60))) struct `The distance of a stop` {
    private static let trials =
        ProcessInfo.processInfo.environment["FANFARE_STOP_TRIALS"].flatMap(Int.init) ?? 1
    private static let devices = 30_000

    private static func microseconds() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000_000) }

    @Test func `ends within the requests that were about to start`() async throws {
        try await OwnThread.run {
            let asked = Collected<Int64>()
            let place = try Installation(devices: Self.devices) { options in
                options.keepsLog = false
                options.clock = {
                    let now = Self.microseconds()
                    asked.add(now)
                    return now / 1000
                }
            }
            try place.importDevices()
            // Without a pace.
            try place.folder.write(
                """
                campaign: fast
                topic: \(Installation.topic)
                push_type: alert
                template: new-podcast
                audience: everyone
                variables: {title: T, link_url: "https://example.com", show: WenderCast}
                expires_after: 1h

                """, to: "campaigns/fast.yaml")
            let configuration = try String(contentsOfFile: place.folder.file("fanfare.yaml"), encoding: .utf8)
            try place.folder.write(
                configuration.replacing("connections: 1", with: "connections: 4"), to: "fanfare.yaml")
            let path = try place.fanfare("stop", "--where").output.trimmingCharacters(in: .newlines)
            var distances: [Int64] = []
            var left: [Int] = []
            for trial in 0..<Self.trials {
                let before = place.simulator.counts().accepted
                let words = ["run", "fast", "--yes", "--occurrence", "\(trial)"]
                let run = try RunningProgram(words, in: place.folder)
                try run.wait { place.simulator.counts().accepted >= before + 1000 }
                let moment = Self.microseconds()
                try Data("all\t\(moment / 1000)\ttrial \(trial)\t\n".utf8)
                    .write(to: URL(filePath: path), options: .atomic)
                let ended = try run.finish()
                #expect(ended.status == 76, "\(ended.errors)")
                let later = asked.all.filter { $0 > moment }
                distances.append((later.max() ?? moment) - moment)
                left.append(later.count)
                #expect(place.simulator.counts().accepted < before + Self.devices)
                let report = try place.fanfare("report", "fast", "--check")
                #expect(report.output.contains("The counts balance."), "\(report.output)\(report.errors)")
                #expect(try place.fanfare("stop", "--all", "--lift", "--reason", "next trial").status == 0)
            }
            distances.sort()
            left.sort()
            func at(_ share: Double, _ count: Int) -> Int { min(count - 1, Int(Double(count) * share)) }
            let count = distances.count
            print(
                "stop: \(count) trials, last request after p50 \(distances[at(0.5, count)]) us, "
                    + "p99 \(distances[at(0.99, count)]) us, max \(distances[count - 1]) us; "
                    + "requests judged after it p50 \(left[at(0.5, count)]), p99 \(left[at(0.99, count)]), max \(left[count - 1])"
            )
        }
    }
}
