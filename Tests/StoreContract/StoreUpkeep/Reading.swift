import Dispatch
import Model
import Store
import Synchronization
import Testing

/// Which reads wait for which, in every store.
extension StoreUpkeepContract {
    /// More expensive reads than any store has connections for.
    private static let manyReads = 12
    /// All of a store's connections for expensive reads.
    private static let busyReads = ReadQueue.atOnceMax + 2

    @PromiseList static var reading: [Promise] {
        Promise("what everything depends on is read while every expensive read is under way") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let gate = ExportGate()
            try await withThrowingTaskGroup(of: Void.self) { group in
                defer { gate.open() }
                for _ in 0..<manyReads { group.addTask { try await gate.export(from: store) } }
                await gate.begun(busyReads)
                // Were one of these to wait for an export, its time would be over first.
                #expect(try await store.stops().isEmpty)
                #expect(try await store.accessToken(secretHash: "none") == nil)
                #expect(try await store.session(secretHash: "none") == nil)
                #expect(try await store.run(7) == nil)
                #expect(try await store.openRuns(for: "me", inHand: []).isEmpty)
                #expect(try await store.runsWithLeases().isEmpty)
                #expect(try await store.daemon() == nil)
                #expect(try await store.observation(now: noon).queues.isEmpty)
                _ = try await store.recordStop(StopOrder(.all, by: "a", at: noon), by: "a", now: noon)
                gate.open()
                try await group.waitForAll()
            }
        }
        Promise("an outside caller's expensive reads leave connections for the daemon's own") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let (gate, queue) = (ExportGate(), ReadQueue())
            try await withThrowingTaskGroup(of: Void.self) { group in
                defer { gate.open() }
                for number in 0..<manyReads {
                    let allowance = ReadAllowance(queue: queue, caller: "caller \(number)")
                    group.addTask { try await allowance.use { try await gate.export(from: store) } }
                }
                await gate.begun(ReadQueue.atOnceMax)
                #expect(try await store.deviceCounts().map(\.count) == [1])
                gate.open()
                try await group.waitForAll()
            }
        }
        Promise("an expensive read ends when its time is over, or its caller is gone") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let audience = AudienceExpression.everyone
            let queue = ReadQueue()
            let late = ReadAllowance(queue: queue, caller: "a", limit: .zero)
            let waiting = ExportGate()
            // The first holds the caller's turn, so that the second is still waiting when its time is over.
            async let first: Void = ReadAllowance(queue: queue, caller: "a").use {
                try await waiting.export(from: store)
            }
            defer { waiting.open() }
            await waiting.begun(1)
            await #expect(throws: ReadRefusal.tookTooLong(limit: .zero)) {
                try await late.use {
                    _ = try await store.reach(of: audience, topic: wendercast, pushType: .alert, now: noon)
                }
            }
            let gone = ReadAllowance(queue: queue, caller: "a", presence: {})
            await #expect(throws: CancellationError.self) {
                try await gone.use {
                    _ = try await store.reach(of: audience, topic: wendercast, pushType: .alert, now: noon)
                }
            }
            waiting.open()
            try await first
            // The turn is free again.
            let reach = try await ReadAllowance(queue: queue, caller: "a").use {
                try await store.reach(of: audience, topic: wendercast, pushType: .alert, now: noon)
            }
            #expect(reach.total == 1)
        }
    }
}

/// Holds exports in the middle of their read until it is opened.
private final class ExportGate: Sendable {
    private let barrier = DispatchSemaphore(value: 0)
    private let isOpen = Mutex(false)
    private let beginnings: AsyncStream<Void>
    private let begin: AsyncStream<Void>.Continuation

    init() { (beginnings, begin) = AsyncStream.makeStream(of: Void.self) }

    func export(from store: any AllRoles) async throws {
        _ = try await store.exportDevices(topic: nil, matching: .everyone, now: noon) { [self] _ in
            begin.yield()
            // An export whose test has failed must not hold its connection, and the end of the run, for ever.
            _ = barrier.wait(timeout: .now() + 120)
            barrier.signal()
        }
    }

    /// Returns when so many are in the middle of their read.
    func begun(_ count: Int) async {
        var left = count
        for await _ in beginnings {
            left -= 1
            if left == 0 { return }
        }
    }

    func open() { barrier.signal() }
}
