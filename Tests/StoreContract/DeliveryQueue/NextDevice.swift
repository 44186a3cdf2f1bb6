import Model
import Store
import Testing

/// Runs with `dedupe: user` whose chosen devices turn out to be gone.
extension DeliveryQueueContract {
    @PromiseList static var nextDevice: [Promise] {
        Promise("a user whose device is gone by APNs' answer gets the copy on the next device, until one takes it") {
            store in
            // The first, the third and the second were seen in this order.
            let run = try await store.onceEach([("ray", [9, 5, 7]), ("eve", [1])])
            let first = try await store.lease(run)
            #expect(first.deliveries.map(\.device) == [2, 4])
            let counts = try await store.settle(
                run: run, first.settled([2: .gone]), now: noon + .seconds(1))
            #expect(counts.pending == 1 && counts.rejected == 1 && counts.accepted == 1 && counts.suppressed == 1)
            try await store.expectSumsClose(run)
            let second = try await store.lease(run, after: first.cursor, now: noon + .seconds(1))
            #expect(second.deliveries.map(\.device) == [3] && second.deliveries.map(\.attempt) == [1])
            _ = try await store.settle(run: run, second.settled([3: .gone]), now: noon + .seconds(2))
            try await store.expectSumsClose(run)
            let third = try await store.lease(run, after: second.cursor, now: noon + .seconds(2))
            #expect(third.deliveries.map(\.device) == [1])
            let end = try await store.settle(run: run, third.settled([:]), now: noon + .seconds(3))
            #expect(
                end.pending == 0 && end.leased == 0 && end.accepted == 2 && end.rejected == 2 && end.suppressed == 0)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon + .seconds(4))
            try await store.expectSumsClose(run)
            let report = try await store.report(run)
            #expect(report.suppressed.isEmpty && report.counts.accepted == 2)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("a user whose device is gone when it is to be leased gets the copy on the next device at once") {
            store in
            let run = try await store.onceEach([("ray", [9, 5, 7]), ("eve", [1])])
            try await store.markGone(devices: [2, 3])
            let lease = try await store.lease(run)
            // The third is gone as well, and was never chosen.
            #expect(lease.deliveries.map(\.device) == [4] && lease.suppressions == [.tokenGone: 1])
            try await store.expectSumsClose(run)
            #expect(lease.nextDue == noon && lease.moved == 1)
            let next = try await store.lease(run, after: lease.cursor)
            #expect(next.deliveries.map(\.device) == [1])
            _ = try await store.settle(run: run, lease.settled([:]) + next.settled([:]), now: noon)
            let counts = try await store.summary(run: run)
            #expect(counts.accepted == 2 && counts.suppressed == 2 && counts.pending == 0)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("a user whose device is gone before the other devices are written gets the copy on one of them") {
            store in
            // The first users have a device in the first batch, and another one in the last, which is not written.
            let users = 63_000
            let all = users + 3
            try await store.importInBatches(
                try (1...all).map { number in try record(number) { $0.userID = "user-\(number % users)" } })
            let run = try await store.createRun(
                try definition("once") { $0.dedupe = .user }, occurrence: "x", now: noon, by: "test"
            ).run.id
            #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
            try await store.beginFreeze(run)
            #expect(try await store.run(run)?.isFrozen == false)
            let first = try await store.lease(run, limit: 2)
            #expect(first.deliveries.map(\.device) == [1, 2])
            _ = try await store.settle(run: run, first.settled([1: .gone]), now: noon)
            try await store.markGone(devices: [3], .comparison(.installationID, .equal, .text("install-3")))
            let second = try await store.lease(run, after: first.cursor, limit: 2)
            #expect(second.suppressions == [.tokenGone: 1])
            _ = try await store.settle(run: run, second.settled([:]), now: noon)
            let counts = try await store.freeze(run, by: "a", now: noon) { _ in }
            #expect(counts.audience == all && counts.rejected == 1)
            #expect(counts.pending + counts.accepted == users)
            try await store.expectSumsClose(run)
            var devices: [Int64] = []
            var cursor = second.cursor
            while devices.count < users {
                let lease = try await store.lease(run, after: cursor, now: noon)
                guard !lease.deliveries.isEmpty else { break }
                cursor = lease.cursor
                devices += lease.deliveries.map(\.device)
                _ = try await store.settle(run: run, lease.settled([:]), now: noon)
            }
            let last = Int64(users)
            #expect(devices.filter { $0 > last }.sorted() == [last + 1, last + 3])
            #expect(try await store.summary(run: run).accepted == users)
        }
        Promise("a user has no second copy: not for another refusal, and not from a user who has one") { store in
            let run = try await store.onceEach([("ray", [9, 5]), ("eve", [9, 5]), ("sam", [9, 5])])
            let lease = try await store.lease(run)
            #expect(lease.deliveries.map(\.device) == [2, 4, 6])
            // Eve got her copy, and has ray's device since.
            try await store.importDevices([("ray", 1, 9), ("eve", 2, 5)])
            _ = try await store.settle(run: run, lease.settled([2: .gone, 6: .refused]), now: noon)
            let counts = try await store.summary(run: run)
            #expect(counts.pending == 0 && counts.suppressed == 3 && counts.rejected == 2)
            try await store.expectSumsClose(run)
        }
        Promise("a run that is cancelled sends no copy to a next device, and campaigns without dedupe have none") {
            store in
            let run = try await store.onceEach([("ray", [9, 5])])
            let lease = try await store.lease(run)
            try await store.change(run, to: .cancelled, reason: nil, now: noon, by: "ray")
            _ = try await store.settle(run: run, lease.settled([2: .gone]), now: noon)
            #expect(try await store.summary(run: run).pending == 0)
            try await store.expectSumsClose(run)
            let plain = try await store.startRun(try definition("all"))
            let all = try await store.lease(plain)
            _ = try await store.settle(run: plain, all.settled([2: .gone]), now: noon)
            #expect(try await store.summary(run: plain).pending == 0)
        }
        Promise("the next device belongs to the last stage") { store in
            try await store.importDevices([("ray", 1, 9), ("ray", 2, 5), ("eve", 3, 1)])
            let seed = AudienceExpression.comparison(.installationID, .equal, .text("install-2"))
            let run = try await store.startRun(
                try definition("once") { campaign in
                    campaign.dedupe = .user
                    campaign.stages = [Stage(.seeds(seed)), Stage(.rest)]
                })
            let stage = try await store.leaseStaged(run)
            #expect(stage.deliveries.map(\.device) == [2] && stage.deliveries.map(\.stage) == [0])
            _ = try await store.settle(run: run, stage.settled([2: .gone]), now: noon)
            try await store.expectSumsClose(run)
            #expect(try await store.summary(run: run).pending == 2)
            if try await store.leaseStaged(run).isPaused {
                try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            }
            var sent: [Int64] = []
            for _ in 0..<4 {
                let lease = try await store.leaseStaged(run)
                sent += lease.deliveries.map(\.device)
                _ = try await store.settle(run: run, lease.settled([:]), now: noon)
            }
            #expect(sent.sorted() == [1, 3])
            try await store.expectSumsClose(run)
        }
        Promise("a user with very many devices has no next device, however many of them are in the run") { store in
            let many = (0...UserFallback.devicesMax).map { ("ray", $0 + 1, Int64($0 + 1)) }
            try await store.importDevices(many)
            let run = try await store.startRun(try definition("once") { $0.dedupe = .user })
            let lease = try await store.lease(run)
            _ = try await store.settle(run: run, lease.settled([1: .gone]), now: noon)
            let counts = try await store.summary(run: run)
            #expect(counts.pending == 0 && counts.suppressed == UserFallback.devicesMax)
        }
    }
}

private enum Answer {
    case gone
    case refused
}

extension Lease {
    /// Settlements of all its deliveries: accepted, but for the devices named.
    fileprivate func settled(_ answers: [Int64: Answer]) -> [Settlement] {
        let (accepted, refused) = (settlements(.accepted), settlements(.rejected, status: 400, reason: "BadTopic"))
        let gone = settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon))
        return deliveries.indices.map { index in
            switch answers[deliveries[index].device] {
            case nil: accepted[index]
            case .gone?: gone[index]
            case .refused?: refused[index]
            }
        }
    }
}

extension DeliveryQueue where Self: RunLog & RunOwnership & DeviceRegistry {
    /// Devices by user, number and the seconds since each was seen.
    fileprivate func importDevices(_ devices: [(user: String, number: Int, seconds: Int64)]) async throws {
        let records = try devices.map { device in
            try record(device.number) {
                $0.userID = device.user
                $0.lastSeenAt = noon - .seconds(device.seconds)
                $0.registeredAt = noon - .seconds(1_000)
            }
        }
        _ = try await importDevices(records, now: noon)
    }

    /// A run with one copy for each user.
    fileprivate func onceEach(_ users: [(user: String, seconds: [Int64])]) async throws -> Int64 {
        var devices: [(user: String, number: Int, seconds: Int64)] = []
        for (user, all) in users { for seconds in all { devices.append((user, devices.count + 1, seconds)) } }
        try await importDevices(devices)
        return try await startRun(try definition("once") { $0.dedupe = .user })
    }

    /// As APNs' answers to another run leave them.
    fileprivate func markGone(devices: Set<Int64>, _ audience: AudienceExpression = .everyone) async throws {
        let run = try await startRun(try definition("before", audience: audience))
        let lease = try await lease(run)
        let answers = Dictionary(uniqueKeysWithValues: devices.map { ($0, Answer.gone) })
        _ = try await settleAndMark(run: run, lease.settled(answers), now: noon)
    }
}
