import Dispatch
import Synchronization
import Testing

@testable import HTTP2

/// A resolver that does not answer is left alone, and costs no more than its thread.
@Suite(.timeLimit(.minutes(10))) struct `Name look-ups` {
    /// Counts, and wakes whoever waits for a number.
    private final class Count: Sendable {
        private let state = Mutex((count: 0, waiters: [CheckedContinuation<Void, Never>]()))

        var value: Int { state.withLock { $0.count } }

        func add() {
            let woken = state.withLock { state in
                state.count += 1
                defer { state.waiters = [] }
                return state.waiters
            }
            for waiter in woken { waiter.resume() }
        }

        func reached(_ count: Int) async {
            while value < count {
                await withCheckedContinuation { continuation in
                    let isThere = state.withLock { state in
                        if state.count >= count { return true }
                        state.waiters.append(continuation)
                        return false
                    }
                    if isThere { continuation.resume() }
                }
            }
        }
    }

    /// Look-ups that hang until they are let go on.
    private final class Hanging: Sendable {
        let asked = Count()
        private let gate = DispatchSemaphore(value: 0)

        /// Blocks its thread.
        func lookUp() -> NameResolver.Found {
            asked.add()
            gate.wait()
            gate.signal()
            return .failure(SocketAddress.ResolveFault(reason: "let go"))
        }

        func open() { gate.signal() }
    }

    private final class Owner: ClientConnectionOwner, Sendable {
        let ended = Mutex<ClientConnectionEnd?>(nil)

        func opened(_ connection: ClientConnection) {}
        func ended(_ request: ClientRequest, _ end: ClientRequest.End, on connection: ClientConnection) {}
        func goingAway(_ connection: ClientConnection, _ notice: GoAwayNotice) {}
        func suspended(_ connection: ClientConnection) {}
        func inputRead(_ connection: ClientConnection) {}
        func closed(_ connection: ClientConnection, _ reason: ClientConnectionEnd) {
            ended.withLock { $0 = reason }
        }
    }

    private func onLoop<Value: Sendable>(_ loop: EventLoop, _ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in loop.submit { continuation.resume(returning: body()) } }
    }

    /// Uncounted; read on the loop's thread.
    private final class Sight: @unchecked Sendable {
        weak var connection: ClientConnection?
    }

    private func settings(_ resolver: NameResolver) throws -> ClientSettings {
        var settings = ClientSettings(
            peer: TLSPeer(host: "push.example.com", port: 443),
            tls: try TLSContext(clientTrusting: nil, identity: nil))
        settings.resolver = resolver
        // However slow the machine is.
        settings.connectDeadlineMs = 600_000
        return settings
    }

    @Test func `a connection that ends meanwhile is let go of at once, and its loop with it`() async throws {
        let hanging = Hanging()
        let resolver = NameResolver { _, _ in hanging.lookUp() }
        let settings = try settings(resolver)
        let (owner, sight) = (Owner(), Sight())
        weak var seen: EventLoop?
        do {
            let loop = try EventLoop(named: "resolving")
            seen = loop
            try loop.start()
            await onLoop(loop) {
                let connection = ClientConnection(settings, loop: loop, owner: owner)
                sight.connection = connection
                connection.connect()
            }
            await hanging.asked.reached(1)
            await onLoop(loop) { sight.connection?.abort(.local) }
            #expect(owner.ended.withLock { $0 } == .local)
            loop.stop()
        }
        #expect(resolver.threads == 1)
        #expect(sight.connection == nil && seen == nil)
        hanging.open()
    }

    @Test func `hanging look-ups are few, however many ask, and all of them hear`() async throws {
        let hanging = Hanging()
        let time = Mutex<UInt64>(0)
        let resolver = NameResolver(now: { time.withLock { $0 } }) { _, _ in hanging.lookUp() }
        let answered = Count()
        for _ in 0..<100 {
            time.withLock { $0 += 1_000_000_000 }
            _ = resolver.resolve(host: "a", port: 443) { _ in answered.add() }
        }
        let other = resolver.resolve(host: "b", port: 443) { _ in Issue.record("it was given back") }
        await hanging.asked.reached(NameResolver.threadsMax + 1)
        #expect(resolver.threads == NameResolver.threadsMax + 1)
        other?.cancel()
        hanging.open()
        await answered.reached(100)
        #expect(hanging.asked.value == NameResolver.threadsMax + 1)
    }

    @Test func `a job for a loop that has ended is dropped, with all it holds`() throws {
        final class Held: Sendable {}
        let loop = try EventLoop(named: "ended")
        try loop.start()
        loop.stop()
        weak var seen: Held?
        do {
            let held = Held()
            seen = held
            loop.submit { _ = held }
        }
        #expect(seen == nil)
    }
}
