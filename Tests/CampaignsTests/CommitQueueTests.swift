import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import Synchronization
import Testing

@testable import Campaigns

@Suite(.timeLimit(.minutes(10)))
struct CommitQueueTests {
    @Test func `many at once share transactions, and each is answered as it is stored`() async throws {
        let scene = try PipelineScene()
        let store = scene.store
        let gate = AsyncStream.makeStream(of: Void.self)
        let opened = Gate(gate.stream)
        let queue = CommitQueue<DeviceRecord, RegisteredDevice>(
            "registrations", gather: { await opened.wait() },
            write: { try await store.registerDevices($0, reading: true, now: Timestamp(milliseconds: 0)) })
        let records = try (0..<50).map { number in
            var record = DeviceRecord(
                token: try #require(
                    DeviceToken(hex: String(repeating: "ab", count: 28) + String(format: "%08x", number))),
                environment: .production, topic: "a.b")
            record.installationID = "phone-\(number % 40)"
            return record
        }
        let effects = try await withThrowingTaskGroup(of: RegisteredDevice.self) { group in
            for record in records { group.addTask { try await queue.submit(record) } }
            gate.continuation.finish()
            return try await group.reduce(into: []) { $0.append($1.effect) }
        }
        #expect(effects.count { $0 == .inserted } == 40)
        #expect(effects.count { $0 == .tokenReplaced } == 10)
        #expect(try await store.deviceCounts().map(\.count) == [40])
    }

    @Test(arguments: [[7], Array(0..<10)]) func `an item that finds the store busy fails alone`(busy: [Int])
        async throws
    {
        let gate = AsyncStream.makeStream(of: Void.self)
        let opened = Gate(gate.stream)
        let asked = Mutex(0)
        let queue = CommitQueue<Int, Int>(
            "numbers", gather: { await opened.wait() },
            write: { numbers in
                asked.withLock { $0 += 1 }
                if numbers.contains(where: busy.contains) { throw StoreError.busy(path: "store") }
                return numbers
            })
        let answered = await withTaskGroup(of: Int?.self) { group in
            for number in 0..<10 { group.addTask { try? await queue.submit(number) } }
            // All of them are to be in one batch.
            while queue.waitingCount < 10 { await Task.yield() }
            gate.continuation.finish()
            return await group.reduce(into: [Int]()) { if let number = $1 { $0.append(number) } }
        }
        #expect(answered.sorted() == (0..<10).filter { !busy.contains($0) })
        #expect(asked.withLock { $0 } == (busy.count == 1 ? 11 : 4))
    }
}

/// Opens once, for whoever waits now or later.
private actor Gate {
    private let stream: AsyncStream<Void>
    private var isOpen = false

    init(_ stream: AsyncStream<Void>) { self.stream = stream }

    func wait() async {
        if isOpen { return }
        for await _ in stream {}
        isOpen = true
    }
}
