import Model
import Store
import Testing

extension OutcomeReaderContract {
    @PromiseList static var deliveryPages: [Promise] {
        Promise("the deliveries of each standing are those its account counts, page by page") { store in
            let run = try await pagedRun(store)
            let counts = try await store.summary(run: run)
            let expected: [(DeliveryStanding, Int, [Int64])] = [
                (.pending, counts.pending, [12, 15, 16, 17, 18, 19, 20]), (.leased, counts.leased, [13, 14]),
                (.accepted, counts.accepted, [1, 2, 3, 4]), (.rejected, counts.rejected, [5, 6, 7, 8]),
                (.unknown, counts.unknown, [9, 11]), (.suppressed, counts.suppressed, [10]),
            ]
            for (standing, count, devices) in expected {
                #expect(count == devices.count, "\(standing)")
                for limit in [1, 2, 3, 100] {
                    let pages = try await pages(store, run, DeliveryFilter(standing: standing), limit: limit)
                    #expect(pages.flatMap { $0.entries.map(\.outcome.device) } == devices, "\(standing) \(limit)")
                    #expect(pages.allSatisfy { $0.entries.count <= limit })
                }
            }
            let all = try await pages(store, run, DeliveryFilter(), limit: 7)
            #expect(all.flatMap { $0.entries.map(\.outcome.device) } == Array(1...20))
        }
        Promise("a reason leads to its deliveries alone, and each says what became of it") { store in
            let run = try await pagedRun(store)
            let filter = DeliveryFilter(standing: .rejected, reason: "BadDeviceToken")
            let found = try await pages(store, run, filter, limit: 1)
            #expect(found.flatMap { $0.entries.map(\.outcome.device) } == [6, 8])
            let entry = try #require(found.first?.entries.first)
            #expect(entry.outcome.status == 400 && entry.outcome.reason == "BadDeviceToken")
            #expect(entry.outcome.installationID == "install-6" && entry.outcome.settledAt == noon + .seconds(1))
            #expect(entry.outcome.tokenEnd == String(try token(6).hex.suffix(8)))
            #expect(entry.outcome.attempts == 1 && !entry.isLeased && entry.notBefore == nil)
            let none = try await store.deliveries(
                of: run, DeliveryFilter(standing: .rejected, reason: "Shutdown"), after: 0, limit: 9)
            #expect(none == DeliveryPage(entries: [], next: nil))
            let waiting = try await store.deliveries(
                of: run, DeliveryFilter(standing: .pending, reason: "Shutdown"), after: 0, limit: 9)
            #expect(waiting.entries.map(\.outcome.device) == [12])
            #expect(waiting.entries[0].notBefore == noon + .seconds(60) && waiting.entries[0].outcome.settledAt == nil)
        }
        Promise("a page of what is rare in a large run ends after some rows, and the next goes on") { store in
            let records = try (1...(DeliveryFilter.rowsMax + 2)).map { try record($0) }
            _ = try await store.importDevices(records, now: noon)
            let run = try await store.startRun(try definition())
            let first = try await store.deliveries(of: run, DeliveryFilter(standing: .accepted), after: 0, limit: 9)
            #expect(first == DeliveryPage(entries: [], next: Int64(DeliveryFilter.rowsMax)))
            let second = try await store.deliveries(
                of: run, DeliveryFilter(standing: .accepted), after: first.next ?? 0, limit: 9)
            #expect(second == DeliveryPage(entries: [], next: nil))
        }
        Promise("a device that is no longer stored stays in the pages, and a pruned run has none") { store in
            let run = try await pagedRun(store)
            #expect(try await store.removeDevice(6, now: noon, by: "amy") == .deleted)
            let page = try await store.deliveries(
                of: run, DeliveryFilter(standing: .rejected), after: 5, limit: 1)
            #expect(page.entries.map(\.outcome.installationID) == [nil] && page.next == 6)
            try await store.release(run, by: "a", state: .cancelled, reason: nil, now: noon + .seconds(2))
            _ = try await store.pruneOutcomes(
                finishedBefore: noon + .seconds(9), dryRun: false, now: noon + .seconds(10))
            await #expect(throws: StoreError.outcomesPruned(run: run, at: noon + .seconds(10))) {
                try await store.deliveries(of: run, DeliveryFilter(), after: 0, limit: 9)
            }
        }
        Promise("there are no deliveries of a run that is not there") { store in
            await #expect(throws: StoreError.noSuchRun(7)) {
                try await store.deliveries(of: 7, DeliveryFilter(), after: 0, limit: 9)
            }
        }
    }

    private static func pages(
        _ store: any AllRoles, _ run: Int64, _ filter: DeliveryFilter, limit: Int
    ) async throws -> [DeliveryPage] {
        var pages: [DeliveryPage] = []
        var cursor: Int64? = 0
        while let after = cursor, pages.count < 50 {
            pages.append(try await store.deliveries(of: run, filter, after: after, limit: limit))
            cursor = pages.last?.next
        }
        return pages
    }

    /// 1 to 4 accepted, 5 to 8 rejected for two reasons, 9 and 11 unknown, 10 suppressed, 12 retried, 13 and 14 leased.
    private static func pagedRun(_ store: any AllRoles) async throws -> Int64 {
        let records = try (1...20).map { number in try record(number) { $0.alertsAllowed = number != 10 } }
        _ = try await store.importDevices(records, now: noon)
        let run = try await store.startRun(try definition())
        let lease = try await store.lease(run, limit: 11)
        #expect(lease.deliveries.last?.device == 12)
        var settlements = lease.settlements(.accepted)
        for index in settlements.indices {
            switch settlements[index].device {
            case 5...8:
                settlements[index].verdict = .rejected
                settlements[index].status = 400
                settlements[index].reason = settlements[index].device % 2 == 0 ? "BadDeviceToken" : "TopicDisallowed"
            case 9, 11:
                settlements[index].verdict = .unknown
                settlements[index].status = 0
                settlements[index].reason = settlements[index].device == 9 ? nil : "deadline"
            case 12:
                settlements[index].verdict = .retry(notBefore: noon + .seconds(60))
                settlements[index].status = 503
                settlements[index].reason = "Shutdown"
            default: break
            }
        }
        _ = try await store.settle(run: run, settlements, now: noon + .seconds(1))
        _ = try await store.lease(run, after: lease.cursor, limit: 2)
        return run
    }
}
