import Model
import Store
import Testing

/// What every store does when somebody sets the wall clock.
extension RunLogContract {
    /// So long after noon by the clock that nobody sets; `set`: by how much the other is off.
    private static func reading(_ time: Duration, set: Duration = .zero, boot: String = "b") -> ClockReading {
        ClockReading(wall: noon + time + set, uptime: .seconds(1000) + time, boot: boot)
    }

    @PromiseList static var clocks: [Promise] {
        Promise.each([3600, -3600] as [Int64], { "a step of \($0) s is told once, and is on record" }) {
            store, seconds in
            let set = Duration.seconds(seconds)
            #expect(try await store.noteClocks(reading(.zero), by: "a") == nil)
            #expect(try await store.noteClocks(reading(.seconds(60)), by: "a") == nil)
            let step = ClockStep(before: noon + .seconds(120), by: set)
            #expect(try await store.noteClocks(reading(.seconds(120), set: set), by: "a") == step)
            // Another process of the machine sees the same.
            #expect(try await store.noteClocks(reading(.seconds(121), set: set), by: "b") == nil)
            #expect(try await store.clockSteps(since: noon - .seconds(7200)) == [step])
            let events = try await store.events(run: nil, since: nil, limit: 10)
            #expect(events.map(\.kind) == ["clock_stepped"] && events[0].detail.contains("by 1h"))
        }
        Promise("a clock that is steered, another start of the machine, and one that names no start are no step") {
            store in
            var told: [ClockStep?] = []
            for second in 0..<600 {
                let steered = reading(.seconds(second), set: .milliseconds(second * 5))
                told.append(try await store.noteClocks(steered, by: "a"))
            }
            told.append(try await store.noteClocks(reading(.zero, set: .seconds(900), boot: "c"), by: "a"))
            told.append(try await store.noteClocks(reading(.zero, set: .seconds(9000), boot: ""), by: "a"))
            told.append(try await store.noteClocks(reading(.zero, boot: ""), by: "a"))
            #expect(told.allSatisfy { $0 == nil })
            #expect(try await store.clockSteps(since: noon - .seconds(7200)).isEmpty)
        }
        Promise(
            "a step between two processes is noticed by the second",
            opening: { stores in
                let first = try await stores.open()
                #expect(try await first.noteClocks(reading(.zero), by: "a") == nil)
                try first.close()
                let second = try await stores.open()
                #expect(try await second.noteClocks(reading(.seconds(5), set: .seconds(3600)), by: "b") != nil)
                try second.close()
            })
        Promise.each(
            [(2, 0, 10, 0), (300, 18_000, 0, 0), (301, 18_000, 0, 10)],
            { "nothing expires by a clock set forward until that is confirmed: \($0)" }
        ) { store, row in
            let (seconds, off, leased, suppressed) = row
            _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
            _ = try await store.noteClocks(reading(.zero), by: "a")
            let run = try await store.startRun(try definition())
            var request = LeaseRequest(run: run, environment: .production, limit: 20, now: noon, owner: "a")
            request.expiry = .until(noon + .seconds(14_400))
            func lease(_ time: Duration, set: Duration) async throws -> Lease {
                let clocks = reading(time, set: set)
                (request.now, request.clocks) = (clocks.wall, clocks)
                return try await store.lease(request)
            }
            let waits = try await lease(.seconds(1), set: .seconds(18_000))
            #expect(waits.deliveries.isEmpty && waits.suppressed == 0 && waits.paceWait == ConfirmedTime.confirmedAfter)
            let then = try await lease(.seconds(seconds), set: .seconds(off))
            #expect(then.deliveries.count == leased && then.suppressed == suppressed)
        }
        Promise.each([3600, -3600] as [Int64], { "retries wait as long as before when the clock is set by \($0) s" }) {
            store, seconds in
            let set = Duration.seconds(seconds)
            _ = try await store.importDevices([try record(1)], now: noon)
            _ = try await store.noteClocks(reading(.zero), by: "a")
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settle(
                run: run, lease.settlements(.retry(notBefore: noon + .seconds(60)), status: 503, reason: "Shutdown"),
                now: noon)
            _ = try await store.noteClocks(reading(.seconds(10), set: set), by: "a")
            let due = noon + .seconds(60) + set
            #expect(try await store.lease(run, now: due - .milliseconds(1)).deliveries.isEmpty)
            #expect(try await store.lease(run, now: due).deliveries.count == 1)
        }
        Promise.each(
            [true, false], { "a run is not late by a clock set forward until that is confirmed; it is set back: \($0)" }
        ) {
            store, isSetBack in
            let ahead = Duration.seconds(7200)
            var schedule = Schedule(trigger: .none)
            schedule.lateByMax = .seconds(600)
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            _ = try await store.noteClocks(reading(.zero), by: "a")
            let run = try await store.startRun(try definition { $0.schedule = schedule })
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            _ = try await store.noteClocks(reading(.seconds(60), set: ahead), by: "a")
            let now = noon + .seconds(60) + ahead
            let confirmed = now + ConfirmedTime.confirmedAfter
            for moment in [now, confirmed - .milliseconds(1)] {
                #expect(try await store.claim(run, by: "b", now: moment) == .unconfirmed(until: confirmed))
            }
            #expect(try await store.run(run)?.state == .running)
            if isSetBack {
                _ = try await store.noteClocks(reading(.seconds(63)), by: "a")
                #expect(try await store.claim(run, by: "b", now: noon + .seconds(63)) == .claimed)
            } else {
                guard case .late = try await store.claim(run, by: "b", now: confirmed) else {
                    Issue.record("not late")
                    return
                }
            }
        }
        Promise("a retry that came due while the clock was ahead is due once it is set back, and no other") { store in
            let ahead = Duration.seconds(7200)
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            _ = try await store.noteClocks(reading(.zero), by: "a")
            let run = try await store.startRun(try definition())
            _ = try await store.noteClocks(reading(.seconds(1), set: ahead), by: "a")
            let lease = try await store.lease(run, now: noon + .seconds(1) + ahead)
            func settle(_ index: Int, at now: Timestamp, after wait: Duration) async throws {
                let retries = lease.settlements(.retry(notBefore: now + wait), status: 503, reason: "Shutdown")
                _ = try await store.settle(run: run, [retries[index]], now: now)
            }
            try await settle(0, at: noon + .seconds(1) + ahead, after: .seconds(2))
            try await settle(1, at: noon + .seconds(1) + ahead, after: .seconds(30))
            // Set back, and not noticed yet.
            try await settle(2, at: noon + .seconds(4), after: .seconds(60))
            _ = try await store.noteClocks(reading(.seconds(5)), by: "a")
            for (seconds, due) in [(5, 1), (30, 0), (31, 1), (63, 0), (64, 1)] as [(Int64, Int)] {
                let found = try await store.lease(run, now: noon + .seconds(seconds)).deliveries
                #expect(found.count == due, "\(seconds)")
            }
        }
        Promise("a clock set forward frees no slot of the silent budget, and neither does one set back") { store in
            let budget = Configuration.SilentBudget(limit: 1, window: .seconds(3600))
            _ = try await store.importDevices([try record(1)], now: noon)
            let runs = [
                try await store.startRun(try definition("first", pushType: .background)),
                try await store.startRun(try definition("second", pushType: .background) { $0.collapse = .none }),
            ]
            func lease(_ run: Int64, _ clocks: ClockReading) async throws -> Lease {
                var request = LeaseRequest(
                    run: run, environment: .production, limit: 10, now: clocks.wall, owner: "a", silentBudget: budget)
                request.clocks = clocks
                return try await store.lease(request)
            }
            let first = try await lease(runs[0], reading(.zero))
            _ = try await store.settle(run: runs[0], first.settlements(.accepted), now: noon)
            let set = Duration.seconds(3 * 3600)
            #expect(try await lease(runs[1], reading(.seconds(60), set: set)).deliveries.isEmpty)
            #expect(try await lease(runs[1], reading(.seconds(3599), set: set)).deliveries.isEmpty)
            #expect(try await lease(runs[1], reading(.seconds(3599), set: .seconds(-3600))).deliveries.isEmpty)
            let events = try await store.events(run: nil, since: nil, limit: 10).filter { $0.kind == "clock_stepped" }
            #expect(events.count == 2)
        }
        Promise("a slot comes back after its true window when the clock was set forward") { store in
            let budget = Configuration.SilentBudget(limit: 1, window: .seconds(3600))
            _ = try await store.importDevices([try record(1)], now: noon)
            var deliveries: [Int] = []
            for (name, clocks) in [
                ("first", reading(.zero)), ("early", reading(.seconds(3599), set: .seconds(3600))),
                ("late", reading(.seconds(3600), set: .seconds(3600))),
            ] {
                let run = try await store.startRun(try definition(name, pushType: .background) { $0.collapse = .none })
                var request = LeaseRequest(
                    run: run, environment: .production, limit: 10, now: clocks.wall, owner: "a", silentBudget: budget)
                request.clocks = clocks
                let lease = try await store.lease(request)
                deliveries.append(lease.deliveries.count)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: clocks.wall)
            }
            #expect(deliveries == [1, 0, 1])
        }
    }

    @PromiseList static var waiting: [Promise] {
        Promise("what deliveries wait for is told by its cause, the nearest first") { store in
            _ = try await store.importDevices(
                try (1...7).map { number in try record(number) { $0.timeZone = "Europe/Berlin" } }, now: noon)
            let run = try await store.startRun(try definition())
            #expect(try await store.waits(of: run, now: noon) == RunWaits())
            let lease = try await store.lease(run)
            var settlements = lease.settlements(.retry(notBefore: noon + .seconds(90)), status: 503, reason: "Shutdown")
            settlements[0].verdict = .retry(notBefore: noon + .seconds(30))
            settlements[1].verdict = .accepted
            _ = try await store.settle(run: run, settlements, now: noon)
            let retry = RunWaits.Group(
                cause: .retry, deliveries: 6, first: noon + .seconds(30), last: noon + .seconds(90))
            #expect(try await store.waits(of: run, now: noon).groups == [retry])
            // What is due waits for nothing, and what is leased again neither.
            _ = try await store.lease(run, now: noon + .seconds(30))
            #expect(try await store.waits(of: run, now: noon + .seconds(30)).groups.map(\.deliveries) == [5])
            #expect(try await store.waits(of: run, now: noon + .seconds(90)).groups.isEmpty)
        }
        Promise("a wave is counted whole, with the zones of its devices, and later ones are only told of") { store in
            var schedule = Schedule(trigger: .at("2027-01-16T12:00"))
            schedule.zone = .recipient
            schedule.unknownZone = .drop
            let records = try (0..<1205).map { number in
                try record(number) { $0.timeZone = number < 1200 ? "Europe/Berlin" : "America/New_York" }
            }
            _ = try await store.importDevices(records, now: noon)
            let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-16T12:00"))
            let run = try await store.startRun(try definition { $0.schedule = schedule }.planned(for: occurrence))
            let waits = try await store.waits(of: run, now: noon)
            let wave = try #require(waits.groups.first)
            #expect(waits.groups.count == 1 && waits.hasLater)
            #expect(wave.cause == .wave && wave.deliveries == 1200 && wave.zones == ["Europe/Berlin"])
            #expect(wave.first.iso8601 == "2027-01-16T11:00:00Z" && wave.last == wave.first)
        }
        Promise("a count of a wave is that of all environments, however many of one wait") { store in
            var schedule = Schedule(trigger: .at("2027-01-16T12:00"))
            schedule.zone = .recipient
            schedule.unknownZone = .drop
            let far = "America/Los_Angeles"
            let zones = ["Europe/Berlin", "Europe/London", "America/New_York", far]
            // 1,100 and 100 in production, 15 of each in the sandbox.
            let production = try (0..<1200).map { number in
                try record(number) { $0.timeZone = number < 1100 ? zones[0] : zones[2] }
            }
            let sandbox = try (1200..<1260).map { number in
                try record(number, environment: .sandbox) { $0.timeZone = zones[number % 4] }
            }
            _ = try await store.importDevices(production + sandbox, now: noon)
            let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-16T12:00"))
            let run = try await store.startRun(try definition { $0.schedule = schedule }.planned(for: occurrence))
            let there = [
                "2027-01-16T11:00:00Z": 1115, "2027-01-16T12:00:00Z": 15, "2027-01-16T17:00:00Z": 115,
                "2027-01-16T20:00:00Z": 15,
            ]
            let waits = try await store.waits(of: run, now: noon)
            #expect(waits.hasLater)
            #expect(waits.groups.first?.first.iso8601 == "2027-01-16T11:00:00Z")
            for group in waits.groups where !group.isMore {
                #expect(there[group.first.iso8601] == group.deliveries, "\(group)")
            }
            // Once the first wave is due the rest is few, and told of whole.
            let later = try await store.waits(of: run, now: noon + .seconds(27 * 3600 + 1800))
            #expect(!later.hasLater)
            #expect(later.groups.map(\.deliveries) == [15, 115, 15])
        }
        Promise("an endpoint that is left alone is told of for as long as its run has a sender") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let hold = EndpointHold(
                environment: .production, endpoint: "api.push.apple.com:443", status: 503, since: noon,
                nextTryAt: noon + .seconds(60))
            try await store.setHolds([hold], run: run, owner: "a")
            #expect(try await store.waits(of: run, now: noon).holds == [hold])
            try await store.setHolds([], run: run, owner: "a")
            #expect(try await store.waits(of: run, now: noon).holds.isEmpty)
            await #expect(throws: StoreError.self) { try await store.setHolds([hold], run: run, owner: "b") }
            try await store.setHolds([hold], run: run, owner: "a")
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            #expect(try await store.waits(of: run, now: noon).holds.isEmpty)
            #expect(try await store.holds(of: run) == [hold])
        }
    }
}
