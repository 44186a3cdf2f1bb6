import Model
import Store
import Testing

extension DeliveryQueueContract {
    @PromiseList static var badges: [Promise] {
        Promise("a push counts into the badge when it is accepted, or may have been, and a refused one does not") {
            store in
            _ = try await store.importDevices(
                try (1...4).map { number in try record(number) { $0.badge = 5 } }, now: noon)
            let run = try await store.startRun(try badged("count", .increment(2)))
            let lease = try await store.lease(request(run, increment: 2))
            #expect(lease.deliveries.map(\.badge) == [7, 7, 7, 7])
            #expect(try await shown(store) == [5, 5, 5, 5])
            var settlements = lease.settlements(.accepted)
            settlements[1] = settlements[1].withVerdict(.rejected)
            settlements[2] = settlements[2].withVerdict(.unknown)
            settlements[3] = settlements[3].withVerdict(.suppressed(.payloadTooLarge))
            _ = try await store.settle(run: run, settlements, now: noon)
            #expect(try await shown(store) == [7, 5, 7, 5])
            // A second outcome of the same lease is none.
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(try await shown(store) == [7, 5, 7, 5])
        }
        Promise("devices far apart are counted, and none between them") { store in
            _ = try await store.importDevices(try (1...40).map { try record($0) }, now: noon)
            let run = try await store.startRun(try badged("apart", .increment(1)))
            var request = request(run, increment: 1)
            request.limit = 40
            let settlements = try await store.lease(request).settlements(.accepted)
            _ = try await store.settle(run: run, [settlements[39], settlements[3]], now: noon)
            let expected = (0..<40).map { $0 == 3 || $0 == 39 ? 1 : 0 }
            #expect(try await shown(store) == expected)
        }
        Promise("a push that goes out again shows the same number, and counts once") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try badged("again", .increment(1)))
            let first = try await store.lease(request(run, increment: 1))
            _ = try await store.settle(run: run, first.settlements(.retry(notBefore: noon)), now: noon)
            let second = try await store.lease(request(run, increment: 1))
            #expect(second.deliveries.map(\.badge) == [1] && second.deliveries.map(\.attempt) == [2])
            _ = try await store.settle(run: run, second.settlements(.accepted), now: noon)
            #expect(try await shown(store) == [1])
        }
        Promise("a definite number sets the count, 0 as well") { store in
            _ = try await store.importDevices(
                try (1...2).map { number in try record(number) { $0.badge = 6 } }, now: noon)
            for (name, number) in [("zero", 0), ("nine", 9)] {
                let run = try await store.startRun(try badged(name, .number(number)))
                let lease = try await store.lease(request(run, increment: 0))
                var settlements = lease.settlements(.accepted)
                settlements[1] = settlements[1].withVerdict(.rejected)
                _ = try await store.settle(run: run, settlements, now: noon)
                #expect(try await shown(store) == [number, 6])
            }
        }
        Promise("each variant counts by its own template") { store in
            _ = try await store.importDevices(try (1...40).map { try record($0) }, now: noon)
            var definition = try badged("variants", nil)
            definition.campaign.variants = [
                Campaign.Variant(name: "A", weight: 1, template: "a"),
                Campaign.Variant(name: "B", weight: 1, template: "b"),
            ]
            for (name, number) in [("A", 3), ("B", 8)] {
                definition.variantTemplates[name] = definition.template
                definition.variantTemplates[name]?.badge = .number(number)
            }
            let run = try await store.startRun(definition)
            var request = request(run, increment: 0)
            request.limit = 40
            let lease = try await store.lease(request)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            let expected = lease.deliveries.map { $0.variant == 0 ? 3 : 8 }
            #expect(Set(expected).count == 2)
            #expect(try await shown(store) == expected)
        }
        Promise("a push that shows no badge leaves the count alone, whatever its template says") { store in
            _ = try await store.importDevices([try record(1) { $0.badge = 4 }], now: noon)
            var silent = try badged("silent", .number(9))
            silent.campaign.pushType = .background
            for definition in [silent, try badged("plain", nil)] {
                let run = try await store.startRun(definition)
                let lease = try await store.lease(request(run, increment: 0))
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            #expect(try await shown(store) == [4])
        }
        Promise("the app says what its icon shows, and the count goes on from there") { store in
            _ = try await store.importDevices([try record(1) { $0.badge = 8 }], now: noon)
            var counts = try await store.importDevices([try record(1)], now: noon)
            #expect(counts.unchanged == 1)
            counts = try await store.importDevices([try record(1) { $0.badge = 0 }], now: noon)
            #expect(counts.updated == 1)
            let registered = try await store.registerDevices([try record(1) { $0.badge = 2 }], reading: true, now: noon)
            #expect(registered.map(\.device?.badge) == [2])
            let run = try await store.startRun(try badged("next", .increment(1)))
            #expect(try await store.lease(request(run, increment: 1)).deliveries.map(\.badge) == [3])
        }
    }

    private static func badged(_ name: String, _ badge: Template.Badge?) throws -> RunDefinition {
        var definition = try definition(name)
        definition.template.badge = badge
        return definition
    }

    private static func request(_ run: Int64, increment: Int) -> LeaseRequest {
        LeaseRequest(
            run: run, environment: .production, limit: 10, now: noon, owner: "a", badgeIncrement: increment)
    }

    /// In order of device.
    private static func shown(_ store: any AllRoles) async throws -> [Int] {
        let found = Collected<StoredDevice>()
        _ = try await store.exportDevices(topic: wendercast, matching: .everyone, now: noon) { found.add($0) }
        return found.all.map(\.badge)
    }
}
