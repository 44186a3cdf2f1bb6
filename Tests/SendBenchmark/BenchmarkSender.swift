import APNs
import Foundation
import Logging
import LonePipeline
import Model
import Platform
import SQLiteStore
import Senders
import Sending
import Store

/// This process as a sender of the store, with its registration and its journal, as `fanfare run` is one.
struct BenchmarkSender {
    let store: SQLiteFileStore
    private let registration: SenderRegistration
    private let journals: SenderJournals
    private let clock = WallClock(
        now: { Timestamp(Date()) }, uptime: { .nanoseconds(Int64(BootClock.now())) },
        sleep: { try? await Task.sleep(for: $0) })

    init(path: String, journal: Bool) throws {
        let folder = SenderFolder(besideStore: path, command: "benchmark", now: { Timestamp(Date()) })
        store = try SQLiteFileStore(path: path, isAlive: folder.isAlive)
        registration = try folder.register()
        let space = PushID(high: store.namespace.high, low: store.namespace.low)
        let own = try PushJournal(
            path: registration.journalPath, identity: .current(store: space, sender: registration.number))
        journals = journal ? folder.journals(of: store, own: own) : .none
    }

    var actor: Actor { Actor("benchmark").named(registration.name) }

    /// By the system's clock, to one endpoint.
    func pipeline(
        _ transport: any Transport, _ endpoint: PushEndpoint, lanes: Int, _ logger: Logger,
        jitter: @escaping @Sendable () -> Double
    ) -> LonePipeline {
        let sender = SendingSetup(
            transport: transport, endpoints: [.production: endpoint], lanesPerEnvironment: lanes, silentBudget: .init())
        return LonePipeline(
            store: store, sender: sender.journaling(in: journals), clock: clock, jitter: jitter, logger: logger,
            registration: registration)
    }
}
