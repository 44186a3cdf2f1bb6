import Campaigns
import Foundation
import Model
import SQLiteStore
import Store
import StoreContract
import Synchronization
import TestSupport
import Testing

@testable import PostgresStore

/// A move and its being given up, in both orders and both directions: one store is in use at the end, never two.
@Suite(.timeLimit(.minutes(10)), .enabled(if: PostgresCluster.isAvailable, PostgresCluster.missing))
struct `A move that is given up` {
    private static let moved = noon + .seconds(1000)

    struct Row: Sendable, CustomTestStringConvertible {
        var toServer: Bool
        var phase: MoveStore.Progress.Phase

        var testDescription: String { "\(toServer ? "to a server" : "to a file"), \(phase)" }
    }

    static let rows = [true, false].flatMap { toServer in
        [MoveStore.Progress.Phase.copying, .provingNew, .provingOld].map { Row(toServer: toServer, phase: $0) }
    }

    /// One store of each kind, the first filled and departing, the second empty and arriving.
    private func withStores(
        toServer: Bool, _ body: (_ old: any AllRoles, _ new: any AllRoles, _ file: String) async throws -> Void
    ) async throws {
        let folder = try TemporaryDirectory()
        let path = folder.file("store.sqlite")
        let cluster = try await PostgresCluster.shared
        let url = cluster.url(try await cluster.makeDatabase())
        if toServer {
            let made = try SQLiteFileStore(path: path, access: .making)
            try await FilledStore.fill(made, devices: 20, seed: 5)
            try made.close()
        } else {
            let made = try await PostgresDatabase.open(url: url)
            try await FilledStore.fill(made, devices: 20, seed: 5)
            try made.close()
        }
        let file = try SQLiteFileStore(path: path, access: toServer ? .departing : .arriving)
        let server = try await PostgresDatabase.open(url: url, access: toServer ? .arriving : .departing)
        try await toServer ? body(file, server, path) : body(server, file, path)
        try file.close()
        try server.close()
    }

    private func isUsable(_ store: any AllRoles) async throws -> Bool {
        do {
            _ = try await store.importDevices([try record(901)], now: noon)
            return true
        } catch is StoreError {
            return false
        }
    }

    @Test(arguments: rows) func `under a process that moves ends that move`(row: Row) async throws {
        try await withStores(toServer: row.toServer) { old, new, _ in
            let door = StageDoor(at: row.phase)
            let mover = Task(executorPreference: OneThread()) {
                let move = MoveStore(from: old, to: new, mover: "m", now: { Self.moved })
                return try await move.execute(by: "mover") { door.pass($0.phase) }
            }
            for await _ in door.reached { break }
            // Known to be alive, it is left alone.
            await #expect(throws: StoreError.self) { try await MoveStore.giveUp(old) { $0 == "m" } }
            try await MoveStore.giveUp(old) { _ in false }
            door.open()
            let late = await mover.result
            #expect(throws: StoreError.moveGivenUp(path: old.path, to: new.path)) { try late.get() }
            #expect(try await isUsable(old))
            // An arrival that has not ended is refused when the place is opened.
            let arrival = try #require(try await new.arrival())
            #expect(arrival.move.endedAt == nil)
        }
    }

    @Test(arguments: [true, false]) func `cannot be after its end, nor end after that`(toServer: Bool) async throws {
        try await withStores(toServer: toServer) { old, new, _ in
            let move = StoreMove(id: "1", from: old.path, to: new.path, begunAt: noon, mover: "m")
            try await old.beginDeparture(move, by: "a")
            let other = StoreMove(id: "2", from: old.path, to: "elsewhere", begunAt: noon, mover: "n")
            await #expect(throws: move.refusal(at: old.path)) { try await old.beginDeparture(other, by: "a") }
            // What was read before another process went on with the move is no ground to take it back.
            var continued = move
            continued.mover = "o"
            try await old.beginDeparture(continued, by: "a")
            await #expect(throws: StoreError.busy(path: old.path)) { try await old.giveUpDeparture(move) }
            try await old.giveUpDeparture(continued)
            await #expect(throws: StoreError.moveGivenUp(path: old.path, to: new.path)) {
                try await old.endDeparture(continued, at: noon)
            }
            try await old.beginDeparture(other, by: "a")
            await #expect(throws: StoreError.moveGivenUp(path: old.path, to: new.path)) {
                try await old.endDeparture(move, at: noon)
            }
            try await old.endDeparture(other, at: noon)
            try await old.endDeparture(other, at: noon + .seconds(1))
            #expect(try await old.departure()?.endedAt == noon)
            await #expect(throws: StoreError.moved(path: old.path, to: "elsewhere", at: noon)) {
                try await old.giveUpDeparture(other)
            }
            try await new.beginArrival(move, namespace: old.namespace)
            await #expect(throws: StoreError.busy(path: new.path)) {
                try await new.beginArrival(other, namespace: old.namespace)
            }
        }
    }

    @Test(arguments: [true, false]) func `stops in force are in force in the new store`(toServer: Bool) async throws {
        try await withStores(toServer: toServer) { old, new, _ in
            let recorded = StopOrder(.campaign("a"), by: "anna", at: noon, reason: "wrong text")
            let byFile = StopOrder(.all, by: "bert", at: noon + .seconds(1))
            let move = MoveStore(from: old, to: new, stopsByFile: { StopOrders([byFile]) }, now: { Self.moved })
            // Recorded where the look at the senders is over already.
            let begun = StoreMove(id: "1", from: old.path, to: new.path, begunAt: noon)
            #expect(try await old.recordStop(recorded, by: "anna", now: noon) == .recorded)
            try await old.beginDeparture(begun, by: "a")
            await #expect(throws: StoreError.self) {
                _ = try await old.recordStop(StopOrder(.campaign("b"), by: "anna", at: noon), by: "anna", now: noon)
            }
            _ = try await move.execute(by: "mover")
            #expect(try await new.stops().orders == [recorded, byFile])
        }
    }
}

/// Runs a task on a thread of its own, which may be held up without holding up other tests.
private final class OneThread: TaskExecutor {
    private let queue = DispatchQueue(label: "mover")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Holds a move still where it first comes to a stage, until it is opened.
private final class StageDoor: Sendable {
    let reached: AsyncStream<Void>
    private let phase: MoveStore.Progress.Phase
    private let reach: AsyncStream<Void>.Continuation
    private let isOpen = Atomic(false)
    private let opened = DispatchSemaphore(value: 0)

    init(at phase: MoveStore.Progress.Phase) {
        self.phase = phase
        (reached, reach) = AsyncStream.makeStream(of: Void.self)
    }

    func pass(_ phase: MoveStore.Progress.Phase) {
        guard phase == self.phase, !isOpen.load(ordering: .acquiring) else { return }
        reach.yield()
        opened.wait()
    }

    func open() {
        isOpen.store(true, ordering: .releasing)
        opened.signal()
    }
}
