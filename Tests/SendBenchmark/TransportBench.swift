import APNs
import Platform
import Sending
import Synchronization

/// Sends through bare lanes: distinct path, id and payload for each push.
struct TransportBench {
    let transport: any Transport
    let endpoint: PushEndpoint
    let lanes: Int
    let pushes: Int

    func run() async throws -> BenchmarkResult {
        let tally = Tally()
        let watch = Stopwatch()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<lanes {
                let lane = transport.lane(to: endpoint, named: "bench-\(number)")
                let share = pushes / lanes
                group.addTask { try await lane.run() }
                group.addTask { await Self.feed(lane, from: number * share, count: share) }
                group.addTask { await tally.count(lane) }
            }
            try await group.waitForAll()
        }
        return BenchmarkResult(
            pushes: pushes / lanes * lanes, seconds: watch.seconds, cpuSeconds: watch.cpuSeconds,
            p50Microseconds: tally.latencies.microseconds(atPercentile: 50) ?? 0,
            p99Microseconds: tally.latencies.microseconds(atPercentile: 99) ?? 0,
            peakMegabytes: Usage.peakMegabytes, failures: tally.failures.withLock { $0 })
    }

    private static func feed(_ lane: any Lane, from start: Int, count: Int) async {
        let headers = PushHeaders(
            topic: "com.example.wendercast", pushType: "alert", priority: 10, expiration: 1_900_000_000,
            collapseID: "bench-1")
        let ids = PushIDSpace(namespace: PushID(high: 1, low: 2))
        var next = start
        while next < start + count {
            let end = min(next + 1000, start + count)
            let pushes = (next..<end).map { number in
                Push(
                    tag: Int64(number), id: ids.id(run: 1, device: Int64(number), generation: 1),
                    token: token(number), payload: payload(number))
            }
            guard await lane.send(PushBatch(headers: headers, pushes: pushes)) else { break }
            next = end
        }
        lane.finish()
    }

    static func token(_ number: Int) -> [UInt8] {
        (0..<32).map { UInt8(truncatingIfNeeded: (number &* 2_654_435_761) >> ($0 % 4 * 8)) &+ UInt8($0) }
    }

    static func payload(_ number: Int) -> [UInt8] {
        Array(
            #"{"aps":{"alert":{"title":"New on WenderCast","body":"Episode \#(number) is out. Listen now."},"sound":"default"}}"#
                .utf8)
    }
}

/// What came back, over all lanes.
private final class Tally: Sendable {
    let latencies = LatencyRecorder()
    let failures = Mutex(0)

    func count(_ lane: any Lane) async {
        while let responses = await lane.completions() {
            latencies.record(responses)
            let bad = responses.filter { !$0.isAccepted }.count
            failures.withLock { $0 += bad }
        }
    }
}

extension PushCompletion {
    var isAccepted: Bool {
        if case .answered(let answer) = result { answer.status == 200 } else { false }
    }
}
