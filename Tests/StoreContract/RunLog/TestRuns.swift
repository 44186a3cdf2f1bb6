import Model
import Store
import Testing

extension RunLogContract {
    @PromiseList static var testRuns: [Promise] {
        Promise("a test run is frozen with its one device, whatever audience and holdout say") { store in
            try await devices(store)
            let definition = try definition(audience: .any([])) { $0.holdoutPercent = 100 }
            let run = try await store.createTestRun(definition, occurrence: "test-1", device: 2, now: noon, by: "ray")
            #expect(run.isTest && run.isFrozen && run.counts.audience == 1 && run.counts.pending == 1)
            #expect(try await store.claim(run.id, by: "a", now: noon) == .claimed)
            #expect(try await store.freeze(run.id, now: noon) { _ in }.audience == 1)
            let lease = try await store.lease(run.id, environment: .sandbox)
            #expect(lease.deliveries.map(\.device) == [2])
            _ = try await store.settle(run: run.id, lease.settlements(.accepted), now: noon)
            try await store.release(run.id, by: "a", state: .finished, reason: nil, now: noon)
            try await store.expectSumsClose(run.id)
            #expect(try await store.history(ofDevice: 2, limit: 1).map(\.isTest) == [true])
            #expect(try await store.events(run: run.id).first?.actor == "ray")
        }
        Promise("tests stay out of the way of the campaign's own runs") { store in
            try await devices(store)
            let definition = try definition()
            let real = try await store.createRun(definition, occurrence: "1", now: noon, by: "timer").run
            let test = try await store.createTestRun(definition, occurrence: "t", device: 1, now: noon, by: "ray")
            let other = try await store.createRun(definition, occurrence: "2", isTest: true, now: noon, by: "ray").run
            #expect(!real.isTest && other.isTest)
            #expect(try await store.latestRun(campaign: "new-podcast")?.id == real.id)
            #expect(try await store.latestRun(campaign: "new-podcast", includingTests: true)?.id == other.id)
            #expect(try await store.runs(limit: 9).map(\.id) == [real.id])
            #expect(try await store.runs(limit: 9, includingTests: true).map(\.id) == [other.id, test.id, real.id])
            #expect(try await store.run(test.id)?.isTest == true)
        }
        Promise("a device that may not be sent to is suppressed, one of another topic refused") { store in
            try await devices(store)
            let definition = try definition()
            let run = try await store.createTestRun(definition, occurrence: "a", device: 3, now: noon, by: "ray")
            #expect(run.counts.suppressed == 1)
            #expect(try await store.report(run.id).suppressed.map(\.reason) == ["alerts_not_allowed"])
            await #expect(throws: StoreError.deviceOfOtherTopic(4, topic: "other", expected: wendercast)) {
                try await store.createTestRun(definition, occurrence: "b", device: 4, now: noon, by: "ray")
            }
            await #expect(throws: StoreError.noSuchDevice(99)) {
                try await store.createTestRun(definition, occurrence: "b", device: 99, now: noon, by: "ray")
            }
            #expect(try await store.run(campaign: "new-podcast", occurrence: "b") == nil)
            let taken = StoreError.occurrenceTaken(campaign: "new-podcast", occurrence: "a", run: run.id)
            await #expect(throws: taken) {
                try await store.createTestRun(definition, occurrence: "a", device: 1, now: noon, by: "ray")
            }
        }
        Promise("a test gets the variant it asks for, or the device's own") { store in
            try await devices(store)
            let definition = try definition {
                $0.variants = ["a", "b"].map { Campaign.Variant(name: $0, weight: 1, template: "t") }
            }
            let own = CampaignSplit(definition.campaign).variant(of: 1)
            for (occurrence, variant, expected) in [("1", nil, own), ("2", 0, 0), ("3", 1, 1)] {
                let run = try await store.createTestRun(
                    definition, occurrence: occurrence, device: 1, variant: variant, now: noon, by: "ray")
                _ = try await store.claim(run.id, by: "a", now: noon)
                #expect(try await store.lease(run.id).deliveries.map(\.variant) == [expected])
            }
        }
    }

    private static func devices(_ store: any AllRoles) async throws {
        let records = [
            try record(1), try record(2, environment: .sandbox), try record(3) { $0.alertsAllowed = false },
            try record(4, topic: "other"),
        ]
        _ = try await store.importDevices(records, now: noon)
    }
}
