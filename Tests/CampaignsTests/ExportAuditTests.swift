import Campaigns
import Foundation
import Model
import SQLiteStore
import SendingScene
import Store
import TestSupport
import Testing

/// An export of tokens is on record also if it fails after its first rows.
@Suite(.timeLimit(.minutes(10)))
struct ExportAuditTests {
    private struct Broken: Error {}

    private final class FullDisk: ExportData.Target {
        func write(_ bytes: [UInt8]) throws { throw Broken() }
        func finish() throws { throw Broken() }
    }

    private func exports(_ scene: PipelineScene) async throws -> [StoreEvent] {
        let filter = EventFilter(kind: EventKind.devicesExported.rawValue)
        return try await scene.store.events(filter, before: nil, limit: 10).events
    }

    @Test func `the CSV of devices`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let devices = ManageDevices(store: scene.store)
        await #expect(throws: Broken.self) {
            _ = try await devices.export(
                matching: nil, topic: PipelineScene.topic, to: "all.csv", by: "anna", now: scene.clock.now
            ) { rows in if rows.contains(PipelineScene.topic) { throw Broken() } }
        }
        let events = try await exports(scene)
        #expect(events.map(\.actor.name) == ["anna"])
        #expect(events.map(\.detail) == ["begins, devices of \(PipelineScene.topic), to all.csv"])
    }

    @Test(arguments: [true, false]) func `the table of devices`(withTokens: Bool) async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let question = ExportData.Question(.devices, format: .csv, withTokens: withTokens)
        await #expect(throws: Broken.self) {
            _ = try await ExportData(store: scene.store, version: "1").write(
                question, by: "anna", now: scene.clock.now
            ) { _ in FullDisk() }
        }
        let tokens = withTokens ? "with whole tokens" : "without tokens"
        #expect(try await exports(scene).map(\.detail) == ["begins, devices \(tokens)"])
    }

    @Test func `a table without devices and tokens is not`() async throws {
        let scene = try PipelineScene()
        let question = ExportData.Question(.runs, format: .csv)
        _ = try await ExportData(store: scene.store, version: "1").write(
            question, by: "anna", now: scene.clock.now
        ) { _ in FullDisk() }
        #expect(try await exports(scene).isEmpty)
    }
}
