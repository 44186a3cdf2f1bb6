import Foundation
import Synchronization
import TestSupport
import Testing

/// A daemon that is told to stop while several clients fuzz it exits with 0 within 10 s.
@Suite(.ownThread, .serialized, .timeLimit(.minutes(10))) struct `A daemon that is fuzzed and told to stop` {
    /// Requests that have ended before the signal.
    private static let requests = 60

    @Test func `ends in time`() throws {
        let daemon = try StoppedDaemon(devices: 2_000)
        for seed in 1...(Nightly.isOn ? 4 : 1) as ClosedRange<UInt64> {
            let load = FuzzLoad(port: daemon.port, credentials: daemon.credentials, seed: seed)
            defer { load.end() }
            try Patience.wait(for: "requests; \(load.ended) have ended") { load.ended >= Self.requests }
            try daemon.expectEndInTime("fuzzers, seed \(seed)")
            load.end()
            try daemon.restart()
        }
        try daemon.expectEndInTime("the last")
    }
}

/// Clients with a thread each, which send one fuzzed request after the other until they are told to end.
private final class FuzzLoad: Sendable {
    private static let clients = 6

    private struct State {
        var ended = 0
        var isOver = false
        var clients = FuzzLoad.clients
    }

    private let state = Mutex(State())

    init(port: Int, credentials: String, seed: UInt64) {
        for client in 0..<Self.clients {
            let requests = FuzzedRequests(credentials: credentials, seed: seed << 8 + UInt64(client))
            Thread { [self] in
                send(requests, to: port)
                state.withLock { $0.clients -= 1 }
            }.start()
        }
    }

    /// Requests that were answered, or whose client has left.
    var ended: Int { state.withLock { $0.ended } }

    /// Returns when no client is left.
    func end() {
        state.withLock { $0.isOver = true }
        while state.withLock({ $0.clients > 0 }) { usleep(5_000) }
    }

    private func send(_ requests: FuzzedRequests, to port: Int) {
        var requests = requests
        while !state.withLock({ $0.isOver }) {
            // The daemon takes no more connections once it stops.
            guard let client = try? StopClient(port: port, patience: 1) else {
                usleep(5_000)
                continue
            }
            client.sendAll(requests.next())
            client.read(64)
            state.withLock { $0.ended += 1 }
        }
    }
}
