import Foundation
import Model
import Store
import StoreContract
import Testing

@testable import SQLiteStore

/// Runs of a backup that waited for a person, and may have been continued after the backup.
struct RestoredRunTests {
    private let news = RunDefinition(
        campaign: Campaign(name: "news", topic: "com.example.a", pushType: .alert, template: "t"),
        template: Template(name: "t"), variables: [:], plannedAt: noon)

    /// A backup of a store with run 1, which a person has paused, and run 2, whose second stage waits for approval.
    private func waiting(in folder: URL) async throws -> String {
        let store = try SQLiteFileStore(path: folder.appending(path: "fanfare.sqlite").path)
        _ = try await store.createRun(news, occurrence: "a", now: noon, by: "anna")
        try await store.change(1, to: .paused, reason: "wrong link", now: noon, by: "anna")
        let stages = [Stage(.share(50), toleratePercent: 20), Stage(.rest, needsApproval: true)]
        let run = try await store.staged(300, stages)
        try await store.sendStage(of: run) { $0.settlements(.accepted) }
        #expect(try await store.leaseStaged(run).isPaused && run == 2)
        try await store.release(run, by: "a", state: .paused, reason: nil, now: noon)
        #expect(try await store.run(run)?.halt == .approval)
        let path = folder.appending(path: "copy.sqlite").path
        _ = try await store.backUp(to: path, overwriting: false)
        try store.close()
        return path
    }

    private static let unknown = "what it sent between"

    @Test func `a run that a person has paused is paused again once the gap is confirmed`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: try await waiting(in: folder))
            let reason = try #require(try await store.run(1)?.stateReason)
            #expect(reason.contains("`fanfare resume 1` confirms this and sends nothing"), "\(reason)")
            #expect(reason.hasSuffix("waits as in the backup: paused by anna: wrong link"), "\(reason)")
            try await store.change(1, to: .running, reason: "looked", now: noon, by: "bea")
            let again = try #require(try await store.run(1))
            #expect(again.state == .paused && again.pausedBy == "anna" && again.halt == nil)
            let words = again.stateReason ?? ""
            #expect(words.hasPrefix("wrong link; ") && words.contains(Self.unknown), "\(words)")
            let confirmed = try await store.events(run: 1).first { $0.kind == "restore_confirmed" }
            #expect(confirmed?.actor.name == "bea" && confirmed?.detail.hasPrefix("looked; ") == true)
            try await store.change(1, to: .running, reason: nil, now: noon, by: "bea")
            #expect(try await store.run(1)?.state == .running)
            // Every later pause says it, too, and only once.
            for person in ["carl", "dora"] {
                try await store.change(1, to: .paused, reason: "wait", now: noon, by: Actor(person))
                let later = try await store.run(1)?.stateReason ?? ""
                #expect(later.hasPrefix("wait; ") && later.matches(of: /is unknown/).count == 1, "\(later)")
                try await store.change(1, to: .running, reason: nil, now: noon, by: "bea")
            }
            try store.close()
        }
    }

    @Test func `a stage that waited for approval is not approved before the gap is confirmed`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: try await waiting(in: folder))
            #expect(try await store.run(2)?.halt == .restored)
            #expect(try await store.approveStage(of: 2, stage: 1, by: "eve", now: noon) == false)
            // A person's pause does not end the wait, either.
            try await store.change(2, to: .paused, reason: "wait", now: noon, by: "carl")
            try await store.change(2, to: .running, reason: nil, now: noon, by: "bea")
            let waiting = try #require(try await store.run(2))
            #expect(waiting.halt == .approval && waiting.state == .paused && waiting.pausedBy == nil)
            let words = waiting.stateReason ?? ""
            #expect(words.contains("fanfare approve 2 --stage 2") && words.contains(Self.unknown), "\(words)")
            await #expect(throws: StoreError.awaitsApproval(run: 2)) {
                try await store.change(2, to: .running, reason: nil, now: noon, by: "bea")
            }
            #expect(try await store.approveStage(of: 2, stage: 1, by: "eve", now: noon))
            #expect(try await store.claim(2, by: "a", now: noon) == .claimed)
            #expect(try await store.leaseStaged(2).deliveries.count > 100)
            try store.close()
        }
    }

    @Test func `a second restore keeps what a run waited for before the first`() async throws {
        try await withFolder { folder in
            let store = try SQLiteFileStore(path: try await waiting(in: folder))
            let path = folder.appending(path: "second.sqlite").path
            _ = try await store.backUp(to: path, overwriting: false)
            try store.close()
            let again = try SQLiteFileStore(path: path)
            #expect(again.restored?.runs.map(\.halt) == [.restored, .restored])
            for run: Int64 in [1, 2] {
                try await again.change(run, to: .running, reason: nil, now: noon, by: "bea")
            }
            #expect(try await again.run(1)?.pausedBy == "anna")
            #expect(try await again.run(2)?.halt == .approval)
            try again.close()
        }
    }
}
