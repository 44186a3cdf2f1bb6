import Campaigns
import Foundation
import Model
import SQLiteStore
import Senders
import Sending
import Store
import Synchronization
import TestSupport
import Testing

/// Lists by pages, and figures that are not counted for each who looks.
@Suite(.timeLimit(.minutes(10)))
struct ListingTests {
    private static let noon = Timestamp(milliseconds: 1_800_000_000_000)

    private static let clock = WallClock(now: { noon }, uptime: { .zero }, sleep: { _ in })

    private static func withStore(_ body: (SQLiteFileStore, URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "fanfare-listing-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        try await body(store, folder)
        try store.close()
    }

    private static func run(_ store: SQLiteFileStore, devices: Int) async throws -> Run {
        let records = try (0..<devices).map { number in
            var record = DeviceRecord(
                token: try #require(DeviceToken(hex: String(repeating: "ab", count: 31) + "\(10 + number)")),
                environment: .production, topic: "com.example.wendercast")
            record.installationID = "install-\(number)"
            return record
        }
        _ = try await store.importDevices(records, now: noon)
        let campaign = Campaign(
            name: "new-podcast", topic: "com.example.wendercast", pushType: .alert, template: "new-podcast")
        let definition = RunDefinition(
            campaign: campaign, template: Template(name: "new-podcast"), variables: [:], plannedAt: noon)
        let run = try await store.createRun(definition, occurrence: "once", now: noon, by: "amy").run
        _ = try await store.claim(run.id, by: "a", now: noon)
        _ = try await store.freeze(run.id, by: "a", now: noon) { _ in }
        return try await store.run(run.id) ?? run
    }

    @Test func `a list is gone through by its cursors to the end`() async throws {
        try await Self.withStore { store, folder in
            let run = try await Self.run(store, devices: 5)
            let deliveries = ListDeliveries(store: store)
            var found: [DeliveryResult] = []
            var cursor: String?
            repeat {
                let page = try await deliveries.page(of: run, DeliveryFilter(), cursor: cursor, limit: 2)
                found += page.deliveries
                cursor = page.next
            } while cursor != nil
            #expect(found.map(\.device) == Array(1...5) && found.allSatisfy { $0.state == "pending" })
            let audit = try await ReadAudit(store: store).page(EventFilter(run: run.id), cursor: nil, limit: 1)
            #expect(audit.events.map(\.kind) == ["run_claimed"])
            let rest = try await ReadAudit(store: store).page(EventFilter(run: run.id), cursor: audit.next, limit: 9)
            #expect(rest.events.map(\.kind) == ["run_created"] && rest.next == nil)
            let senders = SenderFolder(
                besideStore: folder.appending(path: "fanfare.sqlite").path, command: "test", now: { Self.noon })
            let follow = FollowRuns(store: store, senders: senders, clock: Self.clock)
            let runs = try await ListRuns(store: store, runs: follow)
                .page(RunSearch(RunFilter()), cursor: nil, limit: 1)
            #expect(runs.runs.map(\.run) == [run.id])
        }
    }

    @Test(arguments: ["", "-1", "x y", "zzzzzzzzzzzzzzzzzzzz"])
    func `what is no cursor is refused as such`(text: String) async throws {
        try await Self.withStore { store, _ in
            await #expect(throws: Failure.self) {
                _ = try await ReadAudit(store: store).page(EventFilter(), cursor: text, limit: 1)
            }
        }
    }

    @Test func `many devices are counted behind those who look, once a minute, and never shown from long ago`()
        async throws
    {
        try await Self.withStore { store, _ in
            _ = try await Self.run(store, devices: 3)
            let manual = ManualClock(Self.noon)
            let clock = WallClock(now: { manual.now }, uptime: { manual.uptime }, sleep: { _ in })
            let countQueue = CountQueue()
            let counts = CachedDeviceCounts(store: store, countQueue: countQueue, clock: clock, atOnceBytesMax: 0)
            #expect(try await counts.latest() == nil)
            await countQueue.settle()
            let first = try #require(try await counts.latest())
            #expect(first.counts.map(\.count) == [3] && first.countedAt == Self.noon.iso8601)
            #expect(try await store.removeDevice(1, now: Self.noon, by: "amy") == .deleted)
            manual.advance(by: .seconds(59))
            #expect(try await counts.latest() == first)
            await countQueue.settle()
            #expect(try await counts.latest() == first)
            // Whoever is first after a minute does not wait for it either.
            manual.advance(by: .seconds(1))
            #expect(try await counts.latest() == first)
            await countQueue.settle()
            let second = try #require(try await counts.latest())
            #expect(second.counts.map(\.count) == [2] && second.countedAt == (Self.noon + .seconds(60)).iso8601)
            manual.advance(by: .seconds(660))
            #expect(try await counts.latest() == nil)
            await countQueue.settle()
            #expect(try await counts.latest()?.countedAt == (Self.noon + .seconds(720)).iso8601)
        }
    }

    @Test func `few devices are counted at each look, and whoever needs to know of many waits`() async throws {
        try await Self.withStore { store, _ in
            _ = try await Self.run(store, devices: 3)
            let few = CachedDeviceCounts(store: store, countQueue: CountQueue(), clock: Self.clock)
            let many = CachedDeviceCounts(store: store, countQueue: CountQueue(), clock: Self.clock, atOnceBytesMax: 0)
            #expect(try await few.latest()?.counts.map(\.count) == [3])
            async let one = many.awaited()
            async let other = many.awaited()
            let both = try await [one, other]
            #expect(both.map { $0.counts.map(\.count) } == [[3], [3]])
            #expect(try await store.removeDevice(1, now: Self.noon, by: "amy") == .deleted)
            #expect(try await few.latest()?.counts.map(\.count) == [2])
            #expect(try await many.awaited() == both[0])
        }
    }

    @Test func `what cannot be counted says why, to all who wait at once, and is counted when it can be`() async throws
    {
        struct Broken: Error {}
        let countQueue = CountQueue()
        let counted = BackgroundCountCache<Int, String>(countQueue, clock: Self.clock, every: .seconds(10))
        let tries = Mutex(0)
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        let breaking: @Sendable () async throws -> String = {
            tries.withLock { $0 += 1 }
            for await _ in opened { break }
            throw Broken()
        }
        // Two more who ask while the first one's is under way.
        #expect(try await counted.latest(1, count: breaking) == nil)
        let waiting = (0..<2).map { _ in Task { try await counted.awaited(1, count: breaking) } }
        open.finish()
        for task in waiting { await #expect(throws: Broken.self) { _ = try await task.value } }
        #expect(tries.withLock { $0 } <= 3)
        await countQueue.settle()
        // Not "being counted" for ever.
        await #expect(throws: Broken.self) { _ = try await counted.latest(1) { throw Broken() } }
        await countQueue.settle()
        #expect(try await counted.awaited(1) { "now" }.figure == "now")
    }

    @Test func `what two figures need is counted one after the other`() async throws {
        let countQueue = CountQueue()
        let words = BackgroundCountCache<Int, String>(countQueue, clock: Self.clock, every: nil)
        let numbers = BackgroundCountCache<Int, Int>(countQueue, clock: Self.clock, every: nil)
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        let isCounting = Mutex(false)
        #expect(
            try await words.latest(1) {
                isCounting.withLock { $0 = true }
                for await _ in opened { break }
                isCounting.withLock { $0 = false }
                return "one"
            } == nil)
        #expect(try await numbers.latest(1) { 1 } == nil)
        async let number = numbers.awaited(1) { isCounting.withLock { $0 } ? 0 : 1 }
        open.finish()
        #expect(try await number.figure == 1)
        #expect(try await words.awaited(1) { "two" }.figure == "one")
    }

    @Test func `what is found to be true no more is counted once more at once, and then rests`() async throws {
        let countQueue = CountQueue()
        let counted = BackgroundCountCache<Int, Int>(countQueue, clock: Self.clock, every: .seconds(10))
        let counts = Mutex(0)
        let count: @Sendable () async throws -> Int = {
            counts.withLock {
                $0 += 1; return $0
            }
        }
        #expect(try await counted.awaited(1, count: count).figure == 1)
        for _ in 0..<3 {
            #expect(try await counted.latest(1, where: { _ in false }, count: count) == nil)
            await countQueue.settle()
        }
        #expect(counts.withLock { $0 } == 2)
    }

    @Test func `of what was counted the latest hundred are kept`() async throws {
        struct Broken: Error {}
        let countQueue = CountQueue()
        let counted = BackgroundCountCache<Int, Int>(countQueue, clock: Self.clock, every: nil)
        for number in 0...100 { _ = try await counted.awaited(number) { number } }
        var kept = 0
        for number in 0...100 where try await counted.latest(number, count: { throw Broken() })?.figure == number {
            kept += 1
        }
        await countQueue.settle()
        #expect(kept == 100)
    }

    @Test func `the report of a large run is counted behind those who look, and not for each of them`() async throws {
        try await Self.withStore { store, _ in
            let run = try await Self.run(store, devices: 3)
            let manual = ManualClock(Self.noon)
            let clock = WallClock(now: { manual.now }, uptime: { manual.uptime }, sleep: { _ in })
            let countQueue = CountQueue()
            let reports = RunningReports(store: store, countQueue: countQueue, clock: clock, atOnceMax: 2)
            let few = RunningReports(store: store, countQueue: countQueue, clock: clock, atOnceMax: 3)
            #expect(try await few.report(of: run)?.figure.counts.pending == 3)
            #expect(try await reports.report(of: run) == nil)
            await countQueue.settle()
            let first = try await reports.report(of: run)
            #expect(first?.figure.counts.pending == 3 && first?.at == Self.noon)
            manual.advance(by: .seconds(9))
            _ = try await reports.report(of: run)
            await countQueue.settle()
            #expect(try await reports.report(of: run)?.at == Self.noon)
            manual.advance(by: .seconds(1))
            #expect(try await reports.report(of: run)?.at == Self.noon)
            await countQueue.settle()
            #expect(try await reports.report(of: run)?.at == Self.noon + .seconds(10))
            // Its sums are kept with a run that is over: there is nothing to be counted.
            _ = try await ControlRun(store: store, clock: clock, isAlive: { _ in false })
                .cancel(run, reason: nil, by: "amy")
            try await store.release(run.id, by: "a", state: .running, reason: nil, now: Self.noon)
            let over = try #require(try await store.run(run.id))
            // Not the figures from before.
            #expect(over.state.isFinal && over.counts != run.counts)
            #expect(try await reports.report(of: over) == nil)
            await countQueue.settle()
            #expect(try await reports.report(of: over)?.figure.counts.suppressed == 3)
            try await store.summarizeOutcomes(run: run.id)
            manual.advance(by: .seconds(1))
            #expect(try await reports.report(of: run)?.at == Self.noon + .seconds(11))
        }
    }

    @Test func `a timeline of many slots is told by longer ones, and nothing is lost of it`() async throws {
        let slots = (0..<1_000).map { number in
            var slot = Timeline.Slot(startsAt: Self.noon + .seconds(Int64(number) * 10))
            slot.accepted = number
            slot.reopened = number % 2
            slot.latencies.add(microseconds: 20_000)
            return slot
        }
        let few = TimelineResult(run: 1, Timeline(slots: Array(slots.prefix(360)), isWhole: true))
        #expect(few.slotSeconds == 10 && few.slots.count == 360 && few.isPartial == nil)
        let many = TimelineResult(run: 1, Timeline(slots: slots, isWhole: false))
        #expect(many.slotSeconds == 30 && many.slots.count <= 360 && many.isPartial == true)
        #expect(many.slots.reduce(0) { $0 + $1.accepted } == slots.reduce(0) { $0 + $1.accepted })
        #expect(few.slots.map(\.reopened) == slots.prefix(360).map(\.reopened))
        #expect(many.slots.reduce(0) { $0 + $1.reopened } == 500)
        #expect(many.slots.allSatisfy { ($0.p50Ms ?? 0) > 15 && ($0.p99Ms ?? 0) < 25 })
    }
}
