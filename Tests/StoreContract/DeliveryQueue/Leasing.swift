import Model
import Store
import Testing

extension DeliveryQueueContract {
    /// What so many seconds of asking every 10 ms lease, of two runs that different senders have.
    private static func leasedTogether(
        _ store: any AllRoles, rates: [Double], names: [String], seconds: Int
    ) async throws -> [Int] {
        _ = try await store.importDevices(try (1...200).map { try record($0) }, now: noon)
        var runs: [Int64] = []
        for (index, owner) in ["a", "b"].enumerated() {
            let (run, _) = try await store.createRun(
                try definition("c\(index)"), occurrence: "o", isTest: false, now: noon, by: "test")
            _ = try await store.claim(run.id, by: Actor(owner), now: noon)
            _ = try await store.freeze(run.id, by: owner, now: noon) { _ in }
            runs.append(run.id)
        }
        var leased = [0, 0]
        for step in 0..<(seconds * 100) {
            let time = Duration.milliseconds(10 * step)
            for (index, owner) in ["a", "b"].enumerated() {
                var request = LeaseRequest(
                    run: runs[index], environment: .production, limit: 100, now: noon + time, owner: owner)
                request.clocks = ClockReading(wall: noon + time, uptime: .seconds(77) + time, boot: "b")
                request.paces = [SharedPace(name: names[index], pace: .init(pushesPerSecond: rates[index]))]
                let lease = try await store.lease(request)
                #expect(lease.deliveries.isEmpty || lease.paceWait == nil)
                leased[index] += lease.deliveries.count
            }
        }
        return leased
    }

    /// What is leased at one moment, again and again, under paces of these rates.
    private static func firstLeases(_ store: any AllRoles, rates: [Double], count: Int) async throws -> [Lease] {
        _ = try await store.importDevices(try (1...50).map { try record($0) }, now: noon)
        var request = LeaseRequest(
            run: try await store.startRun(try definition()), environment: .production, limit: 50, now: noon, owner: "a")
        request.clocks = ClockReading(wall: noon, uptime: .seconds(77), boot: "b")
        request.paces = rates.enumerated().map { SharedPace(name: "\($0)", pace: .init(pushesPerSecond: $1)) }
        var leases: [Lease] = []
        for _ in 0..<count { leases.append(try await store.lease(request)) }
        return leases
    }

    @PromiseList static var leasing: [Promise] {
        Promise.each(
            [(500, LeaseRound.rowsMax), (1, LeaseRound.transactionsMax), (5000, 2500)],
            { "a call that leases nothing looks at a bounded number of rows, and says that there are more: \($0)" }
        ) { store, row in
            let (limit, most) = row
            _ = try await store.importDevices(try (1...2500).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            var request = LeaseRequest(run: run, environment: .production, limit: limit, now: noon, owner: "a")
            request.expiry = .until(noon)
            let first = try await store.lease(request)
            #expect(first.deliveries.isEmpty && first.suppressed == most && first.isCutShort == (most < 2500))
            request.after = first.cursor
            request.limit = 1000
            var (calls, suppressed) = (1, first.suppressed)
            while suppressed < 2500, calls < 10 {
                let lease = try await store.lease(request)
                request.after = lease.cursor
                suppressed += lease.suppressed
                calls += 1
            }
            #expect(suppressed == 2500 && calls <= 4)
            let last = try await store.lease(request)
            #expect(!last.isCutShort && last.suppressed == 0)
            try await store.expectSumsClose(run)
        }
        Promise("senders that share a pace keep it together, whichever asks") { store in
            let leased = try await leasedTogether(store, rates: [20, 20], names: ["all", "all"], seconds: 5)
            let sum = leased[0] + leased[1]
            // A quarter of a second's worth is there at the start.
            #expect(sum <= 105 && sum >= 95, "\(leased)")
        }
        Promise("paces of other names do not hold each other back") { store in
            let leased = try await leasedTogether(store, rates: [20, 10], names: ["app x", "app y"], seconds: 5)
            #expect((95...105).contains(leased[0]) && (45...53).contains(leased[1]), "\(leased)")
        }
        Promise("a pace that allows nothing yet says for how long, and leases nothing") { store in
            _ = try await store.importDevices(try (1...9).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            var request = LeaseRequest(run: run, environment: .production, limit: 9, now: noon, owner: "a")
            request.clocks = ClockReading(wall: noon, uptime: .seconds(77), boot: "b")
            request.paces = [SharedPace(name: "all", pace: .init(pushesPerSecond: 2))]
            #expect(try await store.lease(request).deliveries.count == 1)
            let second = try await store.lease(request)
            #expect(second.deliveries.isEmpty && second.paceWait == .milliseconds(500))
            // Another start of the machine knows nothing of it.
            request.clocks?.boot = "c"
            #expect(try await store.lease(request).deliveries.count == 1)
        }
        Promise.each(
            [[2.0, 100], [100, 2]], { "of two paces the slower one says how many may leave: \($0)" }
        ) { store, rates in
            let lease = try await firstLeases(store, rates: rates, count: 1)[0]
            #expect(lease.deliveries.count == 1 && lease.paceWait == nil)
        }
        Promise.each([[1.0, 0.5], [0.5, 1]], { "of two paces the slower one says how long to wait: \($0)" }) {
            store, rates in
            let leases = try await firstLeases(store, rates: rates, count: 2)
            #expect(leases.map(\.deliveries.count) == [1, 0] && leases[1].paceWait == .seconds(2))
        }
        Promise("a pace counts what is sent, not what is found not to be sent") { store in
            _ = try await store.importDevices(try (1...6).map { try record($0) }, now: noon)
            let earlier = try await store.startRun(try definition("earlier"))
            let later = try await store.startRun(try definition())
            let lease = try await store.lease(earlier)
            let gone = lease.settlements(.rejected, status: 410, effect: .gone(since: noon))
            let odd = gone.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
            _ = try await store.settleAndMark(run: earlier, odd, now: noon)
            var request = LeaseRequest(run: later, environment: .production, limit: 6, now: noon, owner: "a")
            request.clocks = ClockReading(wall: noon, uptime: .seconds(77), boot: "b")
            // Two of them at once.
            request.paces = [SharedPace(name: "all", pace: .init(pushesPerSecond: 8))]
            let paced = try await store.lease(request)
            #expect(paced.deliveries.count == 2 && paced.suppressions == [.tokenGone: 2])
            #expect(try await store.lease(request).paceWait != nil)
        }
        Promise("a lease hands out what the push needs") { store in
            let device = try record(1) {
                $0.locale = "de_at"
                $0.model = "iPhone16,1"
                $0.attributes = ["name": "Ray"]
            }
            _ = try await store.importDevices([device], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(
                LeaseRequest(
                    run: run, environment: .production, limit: 10, now: noon, owner: "a",
                    fields: [.attribute("name"), .model, .country], badgeIncrement: 2))
            let expected = LeasedDelivery(
                device: 1, generation: 1, leaseNumber: 1, attempt: 1, excused: 0, token: device.token.bytes,
                locale: "de-AT", fields: ["Ray", "iPhone16,1", nil], badge: 2, isProven: false)
            #expect(lease.deliveries == [expected])
            try await store.expectSumsClose(run)
        }
        Promise("a delivery is leased once, in order, and each environment by itself") { store in
            let records = try (1...20).map { try record($0, environment: $0 % 4 == 0 ? .sandbox : .production) }
            _ = try await store.importDevices(records, now: noon)
            let run = try await store.startRun(try definition())
            let first = try await store.lease(run, limit: 10)
            let second = try await store.lease(run, after: first.cursor, limit: 10)
            let third = try await store.lease(run, after: second.cursor, limit: 10)
            #expect(first.deliveries.count == 10 && second.deliveries.count == 5 && third.deliveries.isEmpty)
            let devices = (first.deliveries + second.deliveries).map(\.device)
            #expect(devices == devices.sorted() && Set(devices).count == 15)
            let sandbox = try await store.lease(run, environment: .sandbox)
            #expect(sandbox.deliveries.map(\.device) == [4, 8, 12, 16, 20])
            #expect(try await store.summary(run: run).leased == 20)
            try await store.expectSumsClose(run)
        }
        Promise("a cursor given too low leases nothing twice") { store in
            _ = try await store.importDevices(try (1...20).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let first = try await store.lease(run, limit: 10)
            _ = try await store.settle(run: run, Array(first.settlements(.accepted).suffix(5)), now: noon)
            let second = try await store.lease(run, after: 0)
            #expect(second.deliveries.map(\.device) == Array(11...20))
            #expect(try await store.lease(run, after: 0).deliveries.isEmpty)
            try await store.expectSumsClose(run)
        }
        Promise("a retry comes back when it is due, before fresh ones, and not twice") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let first = try await store.lease(run, limit: 2)
            let due = noon + .seconds(30)
            _ = try await store.settle(
                run: run, first.settlements(.retry(notBefore: due), status: 503, reason: "Shutdown"), now: noon)
            try await store.expectSumsClose(run)
            // From the start: the waiting ones are not fresh.
            let early = try await store.lease(run, after: 0, limit: 1, now: due - .milliseconds(1))
            #expect(early.deliveries.map(\.device) == [3])
            #expect(early.nextDue == due)
            let late = try await store.lease(run, after: 0, limit: 2, now: due)
            #expect(late.deliveries.map(\.device) == [1, 2])
            #expect(late.deliveries.map(\.attempt) == [2, 2])
            #expect(late.nextDue == nil)
            // In flight again: neither due nor fresh.
            let rest = try await store.lease(run, after: 3, now: due + .seconds(600))
            #expect(rest.deliveries.map(\.device) == [4])
            try await store.expectSumsClose(run)
        }
        Promise("devices that changed since the freeze are looked at again") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let other = try await store.startRun(try definition("other"))
            let lease = try await store.lease(other)
            // 1 gone, 2 suspended, 3 merged into 4, which has a new token then.
            var settlements = lease.settlements(.rejected, status: 400, reason: "BadDeviceToken")
            settlements[0].effect = .gone(since: noon)
            settlements[0].reason = "Unregistered"
            _ = try await store.settleAndMark(run: other, Array(settlements.prefix(2)), now: noon)
            #expect(try await store.suspendMismatched(run: other, .production, now: noon) == 1)
            _ = try await store.importDevices([try record(3, installation: "install-4")], now: noon)
            let late = try await store.lease(run)
            #expect(late.suppressed == 3)
            #expect(late.deliveries.map(\.device) == [4])
            #expect(late.deliveries.map(\.generation) == [2])
            #expect(late.deliveries.map(\.token) == [try token(3).bytes])
            let reasons = try await store.report(run).suppressed
            #expect(reasons.map(\.reason) == ["token_gone", "wrong_environment"])
            #expect(reasons.map(\.count) == [2, 1])
            try await store.expectSumsClose(run)
        }
        Promise("a delivery follows its device to the environment of its token") { store in
            _ = try await store.importDevices(try (1...5).map { try record($0, environment: .sandbox) }, now: noon)
            let run = try await store.startRun(try definition())
            // 1 was tried, and waits; 2 and 3 are fresh.
            let first = try await store.lease(run, limit: 1, environment: .sandbox)
            let retry = first.settlements(.retry(notBefore: noon), status: 400, reason: "InternalServerError")
            _ = try await store.settle(run: run, retry, now: noon)
            #expect(try await store.lease(run).deliveries.isEmpty)
            _ = try await store.importDevices(
                try (1...3).map { try record(10 + $0, installation: "install-\($0)") }, now: noon)
            let sandbox = try await store.lease(run, environment: .sandbox)
            #expect(sandbox.deliveries.map(\.device) == [4, 5] && sandbox.moved == 3 && sandbox.suppressed == 0)
            let production = try await store.lease(run)
            #expect(Set(production.deliveries.map(\.device)) == [1, 2, 3] && production.moved == 0)
            #expect(production.deliveries.allSatisfy { $0.generation == 2 })
            let tokens = try (11...13).map { try token($0).bytes }
            #expect(production.deliveries.sorted { $0.device < $1.device }.map(\.token) == tokens)
            _ = try await store.settle(run: run, sandbox.settlements(.accepted), now: noon)
            let counts = try await store.settle(run: run, production.settlements(.accepted), now: noon)
            #expect(counts.accepted == 5 && counts.pending == 0 && counts.leased == 0)
            try await store.expectSumsClose(run)
        }
        Promise("where its sender cannot reach that environment it is suppressed") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let moved = try record(11, installation: "install-1", environment: .sandbox)
            _ = try await store.importDevices([moved], now: noon)
            var request = LeaseRequest(run: run, environment: .production, limit: 9, now: noon, owner: "a")
            request.reachable = [.production]
            let lease = try await store.lease(request)
            #expect(lease.deliveries.map(\.device) == [2] && lease.suppressions == [.wrongEnvironment: 1])
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            #expect(try await store.deviceCounts().allSatisfy { $0.status == .active })
            try await store.expectSumsClose(run)
        }
        Promise("one that the wrong environment refused is sent to the right one") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0, environment: .sandbox) }, now: noon)
            let run = try await store.startRun(try definition())
            let wrong = try await store.lease(run, environment: .sandbox)
            let refused = wrong.settlements(.rejected, status: 400, reason: "BadDeviceToken")
            _ = try await store.settle(run: run, refused, now: noon)
            let later = noon + .seconds(60)
            _ = try await store.importDevices(
                try (1...3).map { try record(10 + $0, installation: "install-\($0)") }, now: later)
            #expect(try await store.suspendMismatched(run: run, .sandbox, now: later) == 0)
            #expect(try await store.reopenMismatched(run: run, .sandbox, owner: "a", now: later) == 3)
            #expect(try await store.lease(run, now: later, environment: .sandbox).moved == 3)
            let right = try await store.lease(run, now: later)
            #expect(Set(right.deliveries.map(\.device)) == [1, 2, 3])
            #expect(try await store.settle(run: run, right.settlements(.accepted), now: later).accepted == 3)
            try await store.expectSumsClose(run)
        }
        Promise("past the expiry nothing is leased and everything is suppressed in one call") { store in
            _ = try await store.importDevices(try (1...50).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let first = try await store.lease(run, limit: 5)
            _ = try await store.settle(run: run, first.settlements(.retry(notBefore: noon + .seconds(1))), now: noon)
            let expiry = noon + .seconds(60)
            var request = LeaseRequest(
                run: run, environment: .production, after: first.cursor, limit: 10, now: expiry - .milliseconds(1),
                owner: "a", expiry: .until(expiry))
            let last = try await store.lease(request)
            #expect(last.deliveries.count == 10 && last.suppressed == 0)
            request.now = expiry
            request.after = last.cursor
            let late = try await store.lease(request)
            #expect(late.deliveries.isEmpty && late.suppressed == 40)
            let counts = try await store.settle(run: run, last.settlements(.accepted), now: expiry)
            #expect(counts.accepted == 10 && counts.suppressed == 40 && counts.pending == 0)
            #expect(try await store.report(run).suppressed.map(\.reason) == ["expired"])
            try await store.expectSumsClose(run)
        }
    }
}
