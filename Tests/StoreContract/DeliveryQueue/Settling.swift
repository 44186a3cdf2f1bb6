import Model
import Store
import Testing

extension DeliveryQueueContract {
    /// The devices whose token is proven, as the lease of a new run finds them.
    private static func proven(_ store: any AllRoles, _ name: String) async throws -> Set<Int64> {
        let run = try await store.startRun(try definition(name))
        let lease = try await store.lease(run)
        return Set(lease.deliveries.filter(\.isProven).map(\.device))
    }

    /// The same, as the registry shows each device.
    private static func isProven(_ devices: ClosedRange<Int64>, in store: any AllRoles) async throws -> [Bool?] {
        var found: [Bool?] = []
        for id in devices { found.append(try await store.device(id)?.isProven) }
        return found
    }

    @PromiseList static var settling: [Promise] {
        Promise.each(
            [
                Settlement.Verdict.accepted, .rejected, .unknown, .suppressed(.payloadTooLarge),
                .retry(notBefore: noon + .seconds(60)),
            ], { "an outcome counts once: \($0)" }
        ) { store, verdict in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run, limit: 2)
            let settlements = lease.settlements(verdict)
            let once = try await store.settle(run: run, settlements + settlements, now: noon)
            #expect(once.leased == 0 && once.audience == 3)
            #expect(try await store.settle(run: run, settlements, now: noon) == once)
            #expect(try await store.settle(run: run, lease.settlements(.accepted), now: noon) == once)
            try await store.expectSumsClose(run)
        }
        Promise("a lease may be settled in parts") { store in
            _ = try await store.importDevices(try (1...10).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            for settlement in lease.settlements(.accepted).reversed() {
                _ = try await store.settle(run: run, [settlement], now: noon)
                try await store.expectSumsClose(run)
            }
            #expect(try await store.summary(run: run).accepted == 10)
        }
        Promise("an outcome of nothing leased is not counted") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let other = try await store.startRun(try definition("other"))
            let lease = try await store.lease(run, limit: 1)
            var stray = lease.settlements(.accepted)
            stray[0].lease = 99
            _ = try await store.settle(run: run, stray, now: noon)
            _ = try await store.settle(run: other, lease.settlements(.accepted), now: noon)
            #expect(try await store.summary(run: run).leased == 1)
            #expect(try await store.summary(run: other).pending == 2)
            try await store.expectSumsClose(run)
            try await store.expectSumsClose(other)
        }
        Promise.each(
            [(-1, DeviceStatus.active), (0, .gone), (1, .gone)],
            { "a 410 older than the registration keeps the device: \($0)" }
        ) { store, row in
            let (millisecondsAfter, expected) = row
            _ = try await store.importDevices([try record(1) { $0.registeredAt = noon }], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            let since = noon + .milliseconds(millisecondsAfter)
            _ = try await store.settleAndMark(
                run: run,
                lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: since)),
                now: noon + .seconds(5))
            let device = try #require(try await store.device(1))
            #expect(device.status == expected)
            #expect(try await store.report(run).devicesGone == (expected == .gone ? 1 : 0))
            #expect(device.statusReason == (expected == .gone ? "Unregistered" : nil))
        }
        Promise("a second 410 counts the device for nobody, and its first word stands") { store in
            _ = try await store.importDevices([try record(1)], now: noon - .seconds(60))
            let runs = [try await store.startRun(try definition()), try await store.startRun(try definition("other"))]
            let leases = [try await store.lease(runs[0]), try await store.lease(runs[1])]
            for (index, reason) in ["Unregistered", "ExpiredToken"].enumerated() {
                let gone = leases[index].settlements(
                    .rejected, status: 410, reason: reason, effect: .gone(since: noon + .seconds(index)))
                _ = try await store.settleAndMark(run: runs[index], gone, now: noon + .seconds(5))
                #expect(try await store.report(runs[index]).devicesGone == 1 - index)
                #expect(try await store.summary(run: runs[index]).rejected == 1)
                #expect(try await store.device(1)?.statusReason == "Unregistered")
            }
        }
        Promise("nothing happens to a device found gone before its run is said to be healthy") { store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon - .seconds(60))
            let run = try await store.startRun(try definition())
            var settlements = try await store.lease(run).settlements(.accepted)
            for index in 0..<2 {
                settlements[index].verdict = .rejected
                settlements[index].status = 410
                settlements[index].reason = "ExpiredToken"
                settlements[index].effect = .gone(since: noon)
            }
            _ = try await store.settle(run: run, settlements, now: noon + .seconds(5))
            #expect(try await store.deviceCounts().map(\.status) == [.active])
            #expect(try await store.report(run).devicesGone == 0)
            #expect(
                try await store.mismatchCounts(run: run)
                    == [MismatchCount(environment: .production, all: 3, wrong: 0, gone: 2)])
            // The app registers one of them again meanwhile.
            _ = try await store.importDevices([try record(2) { $0.registeredAt = noon + .seconds(1) }], now: noon)
            #expect(try await store.markGone(run: run, now: noon + .seconds(60)) == 1)
            #expect(try await store.markGone(run: run, now: noon + .seconds(60)) == 0)
            let device = try #require(try await store.device(1))
            #expect(device.status == .gone && device.statusReason == "ExpiredToken")
            #expect(try await store.device(2)?.status == .active)
            #expect(try await store.report(run).devicesGone == 1)
        }
        Promise("a run's share of gone devices is compared with those of its campaign's last runs") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            for (index, gone) in [1, 0, 2].enumerated() {
                let run = try await store.startRun(try definition(), occurrence: "o\(index)")
                #expect(try await store.goneBefore(run: run).count == index)
                var settlements = try await store.lease(run).settlements(.accepted)
                for place in 0..<gone {
                    settlements[place].verdict = .rejected
                    settlements[place].status = 410
                    settlements[place].reason = "Unregistered"
                }
                _ = try await store.settle(run: run, settlements, now: noon)
                try await store.summarizeOutcomes(run: run)
                try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
            }
            let last = try await store.startRun(try definition(), occurrence: "last")
            let before = try await store.goneBefore(run: last)
            #expect(before.map(\.gone).sorted() == [0, 1, 2] && before.allSatisfy { $0.answered == 4 })
        }
        Promise("a 410 for a token replaced meanwhile keeps the device") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            _ = try await store.importDevices([try record(2, installation: "install-1")], now: noon)
            _ = try await store.settleAndMark(
                run: run, lease.settlements(.rejected, status: 410, reason: "Unregistered", effect: .gone(since: noon)),
                now: noon)
            #expect(try await store.device(1)?.status == .active)
        }
        Promise("a token once accepted is proven until it is replaced") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            var settlements = lease.settlements(.accepted)
            settlements[1].verdict = .rejected
            _ = try await store.settle(run: run, settlements, now: noon)
            let second = try await store.startRun(try definition("second"))
            #expect(try await store.lease(second).deliveries.map(\.isProven) == [true, false])
            _ = try await store.importDevices([try record(3, installation: "install-1")], now: noon)
            let third = try await store.startRun(try definition("third"))
            #expect(try await store.lease(third).deliveries.map(\.isProven) == [false, false])
        }
        Promise("each device has a proof of its own, beside those of its neighbours") { store in
            let devices = 1...200
            _ = try await store.importDevices(try devices.map { try record($0) }, now: noon)
            let first = try await store.startRun(try definition())
            let lease = try await store.lease(first)
            // Both ends of blocks, whatever their size, in no order, and in several transactions.
            let accepted: Set<Int64> = [1, 2, 63, 64, 65, 66, 126, 127, 128, 129, 191, 192, 200]
            let settlements = lease.settlements(.accepted).shuffled().map { settlement in
                var settlement = settlement
                if !accepted.contains(settlement.device) { (settlement.verdict, settlement.status) = (.rejected, 400) }
                return settlement
            }
            for start in stride(from: 0, to: settlements.count, by: 50) {
                _ = try await store.settle(run: first, Array(settlements[start..<start + 50]), now: noon)
            }
            #expect(try await proven(store, "second") == accepted)
            // A later token is proven by itself, and then so is one of a device that no push has reached before.
            let renewed = try [64, 65, 67].map { try record(1000 + $0, installation: "install-\($0)") }
            _ = try await store.importDevices(renewed, now: noon)
            #expect(try await proven(store, "third") == accepted.subtracting([64, 65]))
            #expect(try await isProven(64...67, in: store) == [false, false, true, false])
            let fourth = try await store.startRun(try definition("fourth"))
            let again = try await store.lease(fourth).settlements(.accepted).filter { [64, 67].contains($0.device) }
            _ = try await store.settle(run: fourth, again, now: noon)
            #expect(try await proven(store, "fifth") == accepted.subtracting([65]).union([67]))
            #expect(try await isProven(64...67, in: store) == [true, false, true, true])
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("an old token's late acceptance does not prove the new token") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let first = try await store.startRun(try definition())
            let lease = try await store.lease(first)
            _ = try await store.importDevices([try record(2, installation: "install-1")], now: noon)
            _ = try await store.settle(run: first, lease.settlements(.accepted), now: noon)
            #expect(try await proven(store, "second") == [])
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("a device that comes after a removed one has no proof of it") { store in
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            let first = try await store.startRun(try definition())
            _ = try await store.settle(run: first, try await store.lease(first).settlements(.accepted), now: noon)
            for id in 1...2 { #expect(try await store.removeDevice(Int64(id), now: noon, by: "amy") == .deleted) }
            _ = try await store.importDevices([try record(1), try record(2)], now: noon)
            #expect(try await proven(store, "second") == [])
            #expect(try await store.verify(budgets: [:]).isSound)
        }
        Promise("suspensions touch only bad tokens that are still in use") { store in
            _ = try await store.importDevices(try (1...5).map { try record($0) { $0.registeredAt = noon } }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            var settlements = lease.settlements(.rejected, status: 400, reason: "BadDeviceToken")
            settlements[1].reason = "DeviceTokenNotForTopic"
            settlements[4].reason = "PayloadTooLarge"
            _ = try await store.settle(run: run, settlements, now: noon)
            // Nothing happens to devices until the run is said to be healthy.
            #expect(try await store.deviceCounts().map(\.status) == [.active])
            _ = try await store.importDevices(
                [
                    try record(9, installation: "install-3"),
                    try record(4) { $0.registeredAt = noon + .milliseconds(1) },
                ], now: noon)
            #expect(try await store.suspendMismatched(run: run, .production, now: noon) == 2)
            #expect(try await store.suspendMismatched(run: run, .production, now: noon) == 0)
            var statuses: [DeviceStatus] = []
            for id in 1...5 { statuses.append(try #require(try await store.device(Int64(id))).status) }
            #expect(statuses == [.suspended, .suspended, .active, .active, .active])
            #expect(try await store.device(2)?.statusReason == "DeviceTokenNotForTopic")
            #expect(try await store.report(run).devicesSuspended == 2)
            _ = try await store.importDevices([try record(1) { $0.registeredAt = noon + .seconds(1) }], now: noon)
            #expect(try await store.device(1)?.status == .active)
        }
    }
}
