import Model
@testable import PostgresStore
import Store
import StoreContract
import Testing

extension SenderTests {
    @Test func `several senders of one run send the rest with the variant that one of them decided on`() async throws {
        try await withSenders { stores in
            _ = try await stores[0].importDevices(try (1...1_500).map { try record($0) }, now: noon)
            let run = try await stores[0].startRun(
                try definition {
                    $0.feedback = CampaignFeedback()
                    $0.variants = ["long", "short"].map {
                        Campaign.Variant(name: $0, weight: 1, template: "new-podcast")
                    }
                    $0.stages = [
                        Stage(.share(30), toleratePercent: 50, decides: VariantRule(undecided: .first)), Stage(.rest),
                    ]
                }, owner: Self.names[0])
            for (store, name) in zip(stores.dropFirst(), Self.names.dropFirst()) {
                #expect(try await store.join(run, by: Actor(name)))
            }
            let rest = Collected<Int?>()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (store, name) in zip(stores, Self.names) {
                    group.addTask { try await Self.send(run, store, name, rest) }
                }
                try await group.waitForAll()
            }
            let decided = try #require(try await stores[1].stages(of: run)[0].decision?.variants)
            #expect(decided.variant != nil && Set(rest.all) == [decided.variant])
            let counts = try #require(try await stores[2].run(run)).counts
            #expect(counts.accepted == 1_500 && rest.all.count == 1_500 - decided.counts.reduce(0) { $0 + $1.accepted })
            let verified = try await stores[0].verify(budgets: [:])
            #expect(verified.checks.first { $0.name == "stages" }?.faults == [])
        }
    }

    /// Sends until nothing is left. The devices of the second variant open the push, also while the others decide.
    private static func send(
        _ run: Int64, _ store: PostgresDatabase, _ name: String, _ rest: Collected<Int?>
    ) async throws {
        var request = LeaseRequest(run: run, environment: .production, limit: 50, now: noon, owner: name)
        (request.stages, request.decidingStage) = (2, 0)
        while try await store.run(run)?.counts.accepted != 1_500 {
            let lease = try await store.lease(request)
            try #require(!lease.isPaused)
            rest.add(lease.deliveries.filter { $0.stage == nil }.map(\.variant))
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            let opened = lease.deliveries.filter { $0.variant == 1 }.map { delivery in
                FeedbackEvent(
                    source: .push(run: run, device: delivery.device), kind: .opened, id: (high: 0, low: 1), at: noon,
                    receivedAt: noon)
            }
            _ = try await store.recordFeedback(opened)
            await Task.yield()
        }
    }
}
