import GRDB
import Model
import Store
import StoreContract
import Testing

@testable import RelationalStore
@testable import SQLiteStore

/// Reports that wait to be recorded, as they are stored.
@Suite(.timeLimit(.minutes(1))) struct `Waiting reports` {
    private static let extremes: [Int64] = [.min, -1, 0, 1, 255, 256, 1 << 40, .max]
    private static let texts = ["", "a", "speichern “ж”", "Bjørn \u{1F3A7}", String(repeating: "x", count: 400)]

    private static func events() -> [FeedbackEvent] {
        FeedbackKind.allCases.flatMap { kind in
            extremes.enumerated().flatMap { index, number in
                let text = texts[index % texts.count]
                let sources: [FeedbackEvent.Source] = [
                    .push(run: number, device: -1 &- number), .installation(text, topic: text), .device(number),
                ]
                return sources.map { source in
                    FeedbackEvent(
                        source: source, kind: kind, name: text, id: (number, ~number),
                        valueMicros: index % 2 == 0 ? nil : number, at: Timestamp(milliseconds: number),
                        receivedAt: Timestamp(milliseconds: ~number))
                }
            }
        }
    }

    @Test func `have the same content when they are read again, and none of a part of one`() {
        let events = Self.events()
        #expect(FeedbackPacking.unpack(FeedbackPacking.pack(events)) == events)
        for event in events.prefix(4) {
            let packed = FeedbackPacking.pack([event])
            for count in 2..<packed.count { #expect(FeedbackPacking.unpack(Array(packed.prefix(count))) == nil) }
            #expect(FeedbackPacking.unpack([2] + packed.dropFirst()) == nil)
        }
        #expect(FeedbackPacking.unpack([]) == nil)
    }

    @Test func `a row that cannot be read stays, and stops no other`() async throws {
        try await withStore { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            for device in 1...3 {
                let event = FeedbackEvent(
                    source: .installation("install-\(device)", topic: wendercast), kind: .appStarted, id: (1, 1),
                    at: noon, receivedAt: noon)
                #expect(try await store.setFeedbackAside([event]) == [.waiting])
            }
            try await store.pool.write { db in
                try db.execute(sql: "UPDATE waiting_feedback SET packed = x'09' WHERE id = 2")
            }
            for _ in 0..<2 {
                #expect(try await store.recordWaitingFeedback() == [2])
                let left = try await store.read { try Int64.fetchAll($0, sql: "SELECT id FROM waiting_feedback") }
                #expect(left == [2])
            }
            let check = try await store.verify(budgets: [:])["waiting_feedback"]
            #expect(check?.faults.map(\.what) == ["the reports in row 2 of the table waiting_feedback cannot be read"])
            let devices = try await store.read { try Int64.fetchAll($0, sql: "SELECT device_id FROM feedback_event") }
            #expect(devices == [1, 3])
        }
    }
}
