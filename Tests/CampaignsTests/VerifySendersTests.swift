import APNs
@testable import Campaigns
import Foundation
import GRDB
import Model
import Platform
@testable import SQLiteStore
import Senders
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// What is beside a store: who sent from it, and what their journals prove.
struct VerifySendersTests {
    private static func senders(_ scene: PipelineScene) -> SenderFolder {
        SenderFolder(besideStore: scene.store.path, command: "test", now: { scene.clock.now })
    }

    /// A run of which a sender holds a lease, and the sender.
    private static func leased(
        _ scene: PipelineScene, _ senders: SenderFolder
    ) async throws -> (registration: SenderRegistration, journal: PushJournal, run: Int64) {
        let registration = try senders.register()
        let space = PushID(high: scene.store.namespace.high, low: scene.store.namespace.low)
        let journal = try PushJournal(
            path: registration.journalPath, identity: .current(store: space, sender: registration.number))
        try await scene.addDevices(0..<3)
        let run = try await scene.start(try scene.definition())
        _ = try await scene.store.claim(run.id, by: Actor(registration.name), now: scene.clock.now)
        _ = try await scene.store.freeze(run.id, by: registration.name, now: scene.clock.now) { _ in }
        _ = try await scene.store.lease(
            LeaseRequest(
                run: run.id, environment: .production, limit: 3, now: scene.clock.now, owner: registration.name))
        return (registration, journal, run.id)
    }

    @Test func `a living sender and a dead one with its journal are as they should be`() async throws {
        let scene = try PipelineScene()
        let senders = Self.senders(scene)
        let (registration, _, _) = try await Self.leased(scene, senders)
        let maintain = MaintainStore(store: scene.store)
        for _ in 0..<2 {
            let found = try await maintain.verify(nil, senders: senders, faultsMax: 20)
            #expect(found.isSound, "\(found.checks.filter { $0.faultCount > 0 })")
            #expect(found["ownership"]?.compared == 1 && found["journals"]?.compared == 1)
            registration.release()
        }
    }

    enum Corruption: CaseIterable {
        case deleted, cut, overwritten, otherStore
    }

    @Test(arguments: Corruption.allCases)
    func `a journal that proves nothing is found`(corruption: Corruption) async throws {
        let scene = try PipelineScene()
        let senders = Self.senders(scene)
        let (registration, journal, run) = try await Self.leased(scene, senders)
        _ = try journal.segment(entries: 64)
        let file = URL(filePath: registration.journalPath)
        registration.release()
        switch corruption {
        case .deleted: try FileManager.default.removeItem(at: file)
        case .cut: try Data(contentsOf: file).prefix(5000).write(to: file)
        case .overwritten: try Data(count: 8192).write(to: file)
        case .otherStore:
            _ = try PushJournal(
                path: file.path, identity: .current(store: PushID(high: 1, low: 1), sender: registration.number))
        }
        let found = try await MaintainStore(store: scene.store).verify(nil, senders: senders, faultsMax: 20)
        #expect(found.checks.filter { $0.faultCount > 0 }.map(\.name) == ["journals"])
        #expect(found["journals"]?.faults.first?.run == run)
        #expect(found["journals"]?.faults.first?.what.contains("is in doubt: its journal") == true)
    }

    @Test func `a sender that never was is found`() async throws {
        let scene = try PipelineScene()
        let senders = Self.senders(scene)
        let (registration, _, run) = try await Self.leased(scene, senders)
        let forged = registration.name.replacing(":\(registration.number):", with: ":\(registration.number + 100):")
        try await scene.store.write { db in
            try db.execute(
                sql: "UPDATE run SET owner = :owner WHERE id = :run; UPDATE lease SET owner = :owner",
                arguments: ["owner": forged, "run": run])
        }
        let found = try await MaintainStore(store: scene.store).verify(nil, senders: senders, faultsMax: 20)
        #expect(found["ownership"]?.faultCount == 1)
    }
}
