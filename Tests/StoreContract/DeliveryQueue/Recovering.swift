import Model
import Store
import Testing

extension DeliveryQueueContract {
    @PromiseList static var recovering: [Promise] {
        Promise("a delivery in doubt goes out again until its attempts are used up") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition { $0.maxAttempts = 3 })
            for attempt in 1...3 {
                #expect(try await store.lease(run).deliveries.map(\.attempt) == [attempt])
                let counts = try await store.recover(run, now: noon)
                #expect(counts.resent == (attempt < 3 ? 1 : 0))
            }
            #expect(try await store.summary(run: run).unknown == 1)
            let report = try await store.report(run)
            #expect(report.unknown.map(\.reason) == ["Interrupted"])
            #expect(report.attempts == 3)
            try await store.expectSumsClose(run)
        }
        Promise("a retry in flight at the crash is taken up again") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let first = try await store.lease(run)
            _ = try await store.settle(run: run, first.settlements(.retry(notBefore: noon)), now: noon)
            _ = try await store.lease(run, limit: 1)
            _ = try await store.recover(run, now: noon)
            try await store.expectSumsClose(run)
            let again = try await store.lease(run)
            #expect(again.deliveries.map(\.device) == [1, 2])
            #expect(again.deliveries.map(\.attempt) == [3, 2])
        }
        Promise("recovering with nothing in flight changes nothing") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let before = try await store.summary(run: run)
            #expect(try await store.recover(run, now: noon) == Recovered())
            #expect(try await store.summary(run: run) == before)
        }
        Promise.each(
            Campaign.OnUnknown.allCases, { "after a crash exactly the deliveries in flight are doubtful: \($0)" },
            opening: { stores, policy in
                let store = try await stores.open()
                _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
                let run = try await store.startRun(try definition { $0.onUnknown = policy })
                let lease = try await store.lease(run, limit: 6)
                _ = try await store.settle(run: run, Array(lease.settlements(.accepted).prefix(2)), now: noon)
                let found = try await stores.openAfterCrash { $0 != "a" }
                try store.close()
                try await found.expectSumsClose(run)
                #expect(try await found.summary(run: run).leased == 4)
                let later = noon + .seconds(120)
                #expect(try await found.claim(run, by: "b", now: later) == .claimed)
                let counts = try await found.recover(run, now: later)
                #expect(counts.leases == 1)
                #expect(counts.resent == (policy == .resend ? 4 : 0))
                #expect(counts.unknown == (policy == .skip ? 4 : 0))
                try await found.expectSumsClose(run)
                let rest = try await found.lease(run, now: later, owner: "b")
                let expected: [(Int64, Int)] =
                    policy == .resend
                    ? [(3, 2), (4, 2), (5, 2), (6, 2), (7, 1), (8, 1), (9, 1), (10, 1)]
                    : [(7, 1), (8, 1), (9, 1), (10, 1)]
                #expect(rest.deliveries.map(\.device) == expected.map(\.0))
                #expect(rest.deliveries.map(\.attempt) == expected.map(\.1))
                // What the dead owner's lanes would still say comes too late.
                let before = try await found.summary(run: run)
                #expect(try await found.settle(run: run, lease.settlements(.accepted), now: later) == before)
                _ = try await found.settle(run: run, rest.settlements(.accepted), now: later)
                try await found.release(run, by: "b", state: .finished, reason: nil, now: later)
                try await found.expectSumsClose(run)
                try found.close()
            })
        Promise(
            "a claim need not wait for a process that is gone",
            opening: { stores in
                let store = try await stores.open { $0 != "dead" }
                let run = try await store.startRun(try definition(), owner: "dead")
                #expect(try await store.claim(run, by: "b", now: noon) == .claimed)
                let held = RunClaim.held(by: "b", heartbeat: noon)
                #expect(try await store.claim(run, by: "c", now: noon) == held)
                try store.close()
            })
        Promise("what is not said of a left lease was never sent: pending again, and no attempt") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            let left = try await store.abandonedLeases(run)
            #expect(left.map(\.id) == [lease.id] && left.map(\.owner) == ["a"] && left.map(\.leasedAt) == [noon])
            #expect(left.flatMap(\.deliveries).map(\.device) == [1, 2, 3])
            let known = Array(lease.settlements(.accepted).prefix(1))
            let counts = try await store.recover(run, heldBy: "a", left, known, now: noon)
            #expect(counts.accepted == 1 && counts.pending == 2 && counts.leased == 0)
            #expect(try await store.abandonedLeases(run).isEmpty)
            let again = try await store.lease(run)
            #expect(again.deliveries.map(\.attempt) == [1, 1] && again.deliveries.map(\.leaseNumber) == [2, 2])
            // Said by a lane of the one who is gone: too late.
            #expect(try await store.settle(run: run, lease.settlements(.accepted), now: noon).accepted == 1)
            try await store.expectSumsClose(run)
        }
        Promise("a lease recovered once is not recovered again, nor by somebody else") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            let left = try await store.abandonedLeases(run)
            await #expect(throws: StoreError.lostClaim(run: run, holder: "a")) {
                try await store.recover(run, heldBy: "b", left, lease.settlements(.accepted), now: noon)
            }
            let once = try await store.recover(run, heldBy: "a", left, lease.settlements(.accepted), now: noon)
            let twice = try await store.recover(run, heldBy: "a", left, lease.settlements(.unknown), now: noon)
            #expect(once == twice && once.accepted == 3)
            try await store.expectSumsClose(run)
        }
        Promise(
            "the runs of ended processes are found and given up, the living are left alone",
            opening: { stores in
                let store = try await stores.open { $0 != "dead" }
                _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
                let left = try await store.startRun(try definition(), occurrence: "left", owner: "dead")
                let living = try await store.startRun(try definition(), occurrence: "living", owner: "b")
                _ = try await store.lease(left, limit: 4, owner: "dead")
                _ = try await store.lease(living, limit: 4, owner: "b")
                #expect(try await store.ownersOnRecord() == ["dead", "b"])
                #expect(try await store.abandonedRuns().map(\.id) == [left])
                #expect(try await store.runs(of: "dead").map(\.id) == [left])
                #expect(try await store.runs(of: "b").map(\.id) == [living])
                _ = try await store.recover(left, now: noon)
                #expect(try await store.abandon(left, of: "dead", now: noon))
                #expect(try await !store.abandon(left, of: "dead", now: noon))
                #expect(try await !store.abandon(living, of: "dead", now: noon))
                #expect(try await store.abandonedRuns().isEmpty)
                let counts = try await store.summary(run: left)
                #expect(counts.leased == 0 && counts.pending == 10)
                #expect(try await store.run(left)?.owner == nil)
                #expect(try await store.ownersOnRecord() == ["b"])
                #expect(try await store.runs(of: "dead").isEmpty)
                #expect(try await store.summary(run: living).leased == 4)
                for run in [left, living] { try await store.expectSumsClose(run) }
                try store.close()
            })
        Promise(
            "a cancelled run is ended for a process that ended before it could",
            opening: { stores in
                let store = try await stores.open()
                _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
                let run = try await store.startRun(try definition())
                _ = try await store.lease(run, limit: 4)
                try await store.change(run, to: .cancelled, reason: nil, now: noon, by: "ray")
                let later = try await stores.open { $0 != "a" }
                #expect(try await later.abandonedRuns().map(\.id) == [run])
                #expect(try await later.abandon(run, of: "a", now: noon))
                // Nobody said what became of what was in flight.
                let counts = try await later.summary(run: run)
                #expect(counts.unknown == 4 && counts.suppressed == 6)
                try await later.expectSumsClose(run)
                try later.close()
                try store.close()
            })
        Promise("only the owner of a run freezes it") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            let run = try await store.createRun(try definition(), occurrence: "once", now: noon, by: "test").run.id
            await #expect(throws: StoreError.lostClaim(run: run, holder: nil)) {
                try await store.freeze(run, by: "a", now: noon) { _ in }
            }
            #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
            await #expect(throws: StoreError.lostClaim(run: run, holder: "a")) {
                try await store.freeze(run, by: "b", now: noon) { _ in }
            }
            #expect(try await store.freeze(run, by: "a", now: noon) { _ in }.audience == 3)
        }
    }

}
