import Model
import Store
import Testing

extension OutcomeReaderContract {
    @PromiseList static var timelines: [Promise] {
        Promise("what became of a run is told by ten seconds, with how long its answers took") { store in
            let records = try (1...12).map { number in try record(number) { $0.alertsAllowed = number != 12 } }
            _ = try await store.importDevices(records, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 6)
            var settlements = lease.settlements(.accepted)
            for index in settlements.indices { settlements[index].latencyMicroseconds = Int64(index + 1) * 10_000 }
            settlements[4].verdict = .rejected
            settlements[5].verdict = .retry(notBefore: noon + .seconds(11))
            settlements[5].latencyMicroseconds = 0
            _ = try await store.settle(run: run, Array(settlements[..<3]), now: noon + .seconds(9))
            _ = try await store.settle(run: run, Array(settlements[3...]), now: noon + .seconds(10))
            // A second outcome of a lease is none, and has no place here.
            _ = try await store.settle(run: run, Array(settlements[..<1]), now: noon + .seconds(30))
            let timeline = try await store.timeline(run)
            #expect(timeline.isWhole)
            #expect(timeline.slots.map(\.startsAt) == [noon, noon + .seconds(10)])
            #expect(timeline.slots.map(\.accepted) == [3, 1] && timeline.slots.map(\.rejected) == [0, 1])
            #expect(timeline.slots.map(\.suppressed) == [1, 0] && timeline.slots.map(\.retried) == [0, 1])
            #expect(timeline.slots.map(\.latencies.total) == [3, 2])
            let median = try #require(timeline.slots[0].latencies.milliseconds(atShare: 0.5))
            #expect((16...25).contains(median))
            try await store.expectSumsClose(run)
        }
        Promise("two settlements within one slot are one row, and the latencies of both are in it") { store in
            _ = try await store.importDevices(try (1...40).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            for _ in 0..<4 {
                let lease = try await store.lease(run, limit: 10)
                var settlements = lease.settlements(.accepted)
                for index in settlements.indices { settlements[index].latencyMicroseconds = 1 << (10 + Int64(index)) }
                _ = try await store.settle(run: run, settlements, now: noon + .seconds(3))
            }
            let slots = try await store.timeline(run).slots
            #expect(slots.count == 1 && slots[0].accepted == 40)
            #expect(slots[0].latencies.counts.filter { $0 > 0 }.allSatisfy { $0 % 4 == 0 })
            #expect(slots[0].latencies.total == 40)
        }
        Promise("what is suppressed while sending, given back, recovered and cancelled is told as it is") { store in
            _ = try await store.importDevices(try (1...6).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 2)
            // Not started: no attempt, and nothing to tell.
            var back = lease.settlements(.retry(notBefore: noon))
            for index in back.indices {
                back[index].attempt -= 1
                back[index].isRequest = false
            }
            _ = try await store.settle(run: run, back, now: noon)
            #expect(try await store.timeline(run).slots.isEmpty)
            _ = try await store.lease(run, limit: 3, now: noon + .seconds(10))
            _ = try await store.recover(run, now: noon + .seconds(20))
            var expired = LeaseRequest(
                run: run, environment: .production, limit: 1, now: noon + .seconds(30), owner: "a")
            expired.expiry = .until(noon + .seconds(25))
            let late = try await store.lease(expired)
            #expect(late.deliveries.isEmpty && late.suppressed > 0)
            try await store.release(run, by: "a", state: .cancelled, reason: nil, now: noon + .seconds(40))
            let timeline = try await store.timeline(run)
            let total = timeline.total
            let counts = try await store.summary(run: run)
            #expect(total.suppressed == counts.suppressed && total.unknown == counts.unknown && counts.closes)
            #expect(total.retried == 3 && counts.suppressed == 6)
            #expect(timeline.slots.map(\.latencies.total).reduce(0, +) == 0)
            try await store.expectSumsClose(run)
        }
        Promise("rejections that are taken back leave the timeline and the account of one mind") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.settle(
                run: run, lease.settlements(.rejected, status: 400, reason: "BadDeviceToken"), now: noon)
            #expect(try await store.reopenMismatched(run: run, .production, owner: "a", now: noon + .seconds(60)) == 3)
            let slots = try await store.timeline(run).slots
            #expect(slots.map(\.rejected) == [3, 0] && slots.map(\.reopened) == [0, 3])
            try await store.expectSumsClose(run)
        }
        Promise("a copy that goes to the next device of a user is no longer counted where it was left out") { store in
            let records = try (1...4).map { number in
                try record(number) {
                    $0.userID = number < 4 ? "ray" : "eve"
                    $0.lastSeenAt = noon - .seconds(Int64(number))
                }
            }
            _ = try await store.importDevices(records, now: noon)
            let run = try await store.startRun(try definition("once") { $0.dedupe = .user })
            #expect(try await store.timeline(run).slots.map(\.suppressed) == [2])
            let lease = try await store.lease(run)
            #expect(lease.deliveries.map(\.device) == [1, 4])
            var settlements = lease.settlements(.accepted)
            settlements[0].verdict = .rejected
            settlements[0].status = 410
            settlements[0].effect = .gone(since: noon)
            _ = try await store.settle(run: run, settlements, now: noon + .seconds(130))
            let slots = try await store.timeline(run).slots
            #expect(slots.map(\.startsAt) == [noon, noon + .seconds(130)])
            #expect(slots.map(\.suppressed) == [1, 0] && slots.map(\.rejected) == [0, 1])
            let next = try await store.lease(run, after: lease.cursor, now: noon + .seconds(130))
            #expect(next.deliveries.map(\.device) == [2])
            try await store.expectSumsClose(run)
        }
        Promise("the timeline of a run stays when its outcomes are pruned") { store in
            let run = try await StoreUpkeepContract.finishedRun(in: store)
            let before = try await store.timeline(run)
            #expect(!before.slots.isEmpty)
            _ = try await store.pruneOutcomes(
                finishedBefore: noon + .seconds(600), dryRun: false, now: noon + .seconds(700))
            #expect(try await store.timeline(run) == before)
            try await store.expectSumsClose(run)
        }
        Promise("the waves of a run are those it was frozen with, by time and by zone") { store in
            var schedule = Schedule(trigger: .at("2027-01-16T12:00"))
            schedule.zone = .recipient
            schedule.unknownZone = .named("Europe/Paris")
            let zones = ["America/New_York", "Europe/Berlin", nil, "Europe/Berlin", "Asia/Tokyo"]
            let records = try zones.enumerated().map { number, zone in try record(number) { $0.timeZone = zone } }
            _ = try await store.importDevices(records, now: noon)
            let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-16T12:00"))
            let run = try await store.startRun(try definition { $0.schedule = schedule }.planned(for: occurrence))
            let waves = try await store.waves(run)
            #expect(waves.map(\.zone) == ["Asia/Tokyo", "Europe/Berlin", nil, "America/New_York"])
            #expect(waves.map(\.deliveries) == [1, 2, 1, 1])
            #expect(
                waves.map { $0.startsAt.iso8601.dropFirst(11).prefix(5) } == ["03:00", "11:00", "11:00", "17:00"])
            let plain = try await store.startRun(try definition(), occurrence: "plain")
            #expect(try await store.waves(plain).isEmpty)
        }
        Promise("there is no timeline of a run that is not there") { store in
            await #expect(throws: StoreError.noSuchRun(7)) { try await store.timeline(7) }
        }
    }
}
