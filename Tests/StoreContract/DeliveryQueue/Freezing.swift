import Dispatch
import Model
import Store
import Testing

extension DeliveryQueueContract {
    @PromiseList static var freezing: [Promise] {
        Promise("everyone asked for is in the run, those not to be sent to with a reason") { store in
            let records = [
                try record(1),
                try record(2) { $0.alertsAllowed = false },
                try record(3) { $0.country = "DE" },
                try record(4, topic: "other"),
                try record(5, environment: .sandbox),
            ]
            _ = try await store.importDevices(records, now: noon)
            let audience = AudienceExpression.not(.comparison(.country, .equal, .text("DE")))
            let run = try await store.startRun(try definition(audience: audience))
            let counts = try await store.summary(run: run)
            #expect(counts.audience == 3 && counts.pending == 2 && counts.suppressed == 1)
            #expect(try await store.report(run).suppressed.map(\.reason) == ["alerts_not_allowed"])
            try await store.expectSumsClose(run)
            let silent = try await store.startRun(try definition("refresh", pushType: .background))
            #expect(try await store.summary(run: silent).pending == 4)
        }
        Promise("batches are told as they are committed and devices that come later stay out") { store in
            try await store.importInBatches(try (0..<25_000).map { try record($0) })
            let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            let batches = Collected<Int>()
            let arrivals = Collected<Task<ImportCounts, any Error>>()
            let newcomer = try record(99_999)
            let counts = try await store.freeze(run, now: noon) { rows in
                batches.add([rows.audience])
                // The snapshot is open: this is not seen by it.
                arrivals.add([Task { try await store.importDevices([newcomer], now: noon) }])
            }
            for arrival in arrivals.all { _ = try await arrival.value }
            #expect(batches.all == [2_000, 20_000, 3_000])
            #expect(counts.audience == 25_000)
            #expect(try await store.run(run)?.isFrozen == true)
            try await store.expectSumsClose(run)
            // Once frozen, freezing again changes nothing.
            #expect(try await store.freeze(run, now: noon) { _ in } == counts)
        }
        Promise("batches say how many were suppressed, by reason") { store in
            var deaf = try record(2)
            deaf.alertsAllowed = false
            _ = try await store.importDevices([try record(1), deaf, try record(3)], now: noon)
            let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            let batches = Collected<FrozenBatch>()
            let counts = try await store.freeze(run, now: noon) { batches.add([$0]) }
            #expect(batches.all.map(\.audience) == [3] && counts.suppressed == 1)
            #expect(batches.all.map(\.suppressed) == [[.alertsNotAllowed: 1]])
        }
        Promise("sending goes on while the audience is still being written down") { store in
            try await store.importInBatches(try (0..<23_000).map { try record($0) })
            let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            _ = try await store.claim(run, by: "a", now: noon)
            let (batches, told) = AsyncStream.makeStream(of: Int.self)
            async let frozen = {
                defer { told.finish() }
                return try await store.freeze(run, now: noon) { told.yield($0.audience) }
            }()
            var cursor: Int64 = 0
            var sent: Set<Int64> = []
            for await _ in batches {
                let lease = try await store.lease(run, after: cursor, limit: 500)
                cursor = lease.cursor
                sent.formUnion(lease.deliveries.map(\.device))
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
                if sent.count >= 1_000 { break }
            }
            _ = try await frozen
            while true {
                let lease = try await store.lease(run, after: cursor)
                guard !lease.deliveries.isEmpty else { break }
                cursor = lease.cursor
                sent.formUnion(lease.deliveries.map(\.device))
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            #expect(sent.count == 23_000)
            try await store.expectSumsClose(run)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
        }
        Promise("runs that are slow to write down hold no other run") { store in
            _ = try await store.importDevices(try (0..<3).map { try record($0) }, now: noon)
            let slow = 6
            let (begun, begins) = AsyncStream.makeStream(of: Int64.self)
            let ended = Collected<Int64>()
            let gate = DispatchSemaphore(value: 0)
            var runs: [Int64] = []
            for number in 0...slow {
                runs.append(
                    try await store.createRun(try definition(), occurrence: "\(number)", now: noon, by: "test").run.id)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for run in runs.dropLast() {
                    group.addTask {
                        // A freeze that fails must not be waited for.
                        defer { begins.yield(run) }
                        _ = try await store.freeze(run, now: noon) { _ in
                            begins.yield(run)
                            // Held in the middle, but not for ever where the others never begin.
                            _ = gate.wait(timeout: .now() + 240)
                        }
                        ended.add([run])
                    }
                }
                var held: Set<Int64> = []
                for await run in begun {
                    held.insert(run)
                    if held.count == slow { break }
                }
                let last = try #require(runs.last)
                _ = try await store.freeze(last, now: noon) { _ in }
                #expect(ended.all.isEmpty, "a freeze began only once another one had ended")
                for _ in 0..<slow { gate.signal() }
                try await group.waitForAll()
            }
        }
        Promise("a freeze cut short goes on where it stopped") { store in
            try await store.importInBatches(try (0..<43_000).map { try record($0) })
            let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            let (batches, told) = AsyncStream.makeStream(of: Int.self)
            let gate = DispatchSemaphore(value: 0)
            let work = Task {
                defer { told.finish() }
                return try await store.freeze(run, now: noon) { rows in
                    told.yield(rows.audience)
                    // Held here until the cancellation below is in force.
                    _ = gate.wait(timeout: .now() + 240)
                }
            }
            for await _ in batches { break }
            work.cancel()
            for _ in 0..<10 { gate.signal() }
            await #expect(throws: CancellationError.self) { try await work.value }
            let part = try #require(try await store.run(run))
            #expect(!part.isFrozen && part.counts.audience > 0 && part.counts.audience < 43_000)
            try await store.expectSumsClose(run)
            #expect(try await store.freeze(run, now: noon) { _ in }.audience == 43_000)
            try await store.expectSumsClose(run)
        }
        Promise("runs that are frozen at the same time leave room for whoever asks") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let (batches, told) = AsyncStream.makeStream(of: Int.self)
            let gate = DispatchSemaphore(value: 0)
            let overlooked = Collected<Int>()
            var freezes: [Task<DeliveryCounts, any Error>] = []
            for number in 1...4 {
                let run = try await store.createRun(
                    try definition(), occurrence: "\(number)", now: noon, by: "test"
                ).run.id
                _ = try await store.claim(run, by: "a", now: noon)
                let freeze = Task {
                    defer { told.yield(0) }
                    return try await store.freeze(run, by: "a", now: noon) { rows in
                        told.yield(rows.audience)
                        // Long enough for an answer, and the test fails instead of standing still.
                        if gate.wait(timeout: .now() + 240) == .timedOut { overlooked.add([rows.audience]) }
                    }
                }
                freezes.append(freeze)
            }
            var inside = 0
            for await _ in batches {
                inside += 1
                if inside == freezes.count { break }
            }
            #expect(try await store.deviceCounts().map(\.count) == [1])
            #expect(try await store.run(1)?.counts.audience == 1)
            for _ in freezes { gate.signal() }
            for freeze in freezes { #expect(try await freeze.value.audience == 1) }
            #expect(overlooked.all == [])
        }
        Promise("an audience of nobody is frozen at once") { store in
            let run = try await store.startRun(try definition())
            #expect(try await store.run(run)?.isFrozen == true)
            let lease = try await store.lease(run)
            #expect(lease.id == 0 && lease.deliveries.isEmpty && lease.nextDue == nil)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
        }
        Promise("an unknown segment stops the freeze before anything is written") { store in
            let run = try await store.createRun(
                try definition(audience: .segment("fans")), occurrence: "x", now: noon, by: "test"
            ).run.id
            await #expect(throws: StoreError.noSuchSegment("fans", suggestion: nil)) {
                try await store.freeze(run, now: noon) { _ in }
            }
            #expect(try await store.run(run)?.isFrozen == false)
        }
    }
}
