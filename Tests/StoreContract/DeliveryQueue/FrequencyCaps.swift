import Model
import Store
import TestSupport
import Testing

extension DeliveryQueueContract {
    @PromiseList static var frequencyCaps: [Promise] {
        Promise("a push over the cap waits until the first has left the window, to the millisecond") { store in
            let run = try await store.full(three)
            let free = noon + .seconds(3600)
            let held = try await store.capped(run, three, now: noon + .seconds(10))
            #expect(held.deliveries.isEmpty && held.suppressed == 0 && held.nextDue == free)
            #expect(try await store.capped(run, three, now: free - .milliseconds(1)).deliveries.isEmpty)
            #expect(try await store.capped(run, three, now: free).deliveries.count == 1)
            try await store.expectCapsKept(pushes: 4)
        }
        Promise("a push that would expire before its slot is left out, and so is one that would be late") { store in
            let run = try await store.full(three)
            let expiresAt = noon + .seconds(3600)
            let held = try await store.capped(run, three, now: noon + .seconds(10), expiresAt: expiresAt)
            #expect(held.suppressions == [.frequencyCap: 1] && held.nextDue == nil)
            #expect(try await store.report(run).suppressed.map(\.reason) == ["frequency_cap"])
            try await store.expectSumsClose(run)
            let late = try await store.startRun(try definition("late"))
            let left = try await store.capped(late, three, now: noon + .seconds(10), latest: .seconds(3600))
            #expect(left.suppressions == [.frequencyCap: 1])
            let patient = try await store.startRun(try definition("patient"))
            let waits = try await store.capped(patient, three, now: noon + .seconds(10), latest: .seconds(3601))
            #expect(waits.suppressed == 0 && waits.nextDue == expiresAt)
            #expect(try await store.waits(of: patient, now: noon + .seconds(10)).groups.map(\.cause) == [.frequencyCap])
        }
        Promise("a push that never reached APNs gives its slot back") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition("refused"))
            for _ in 0..<10 {
                let lease = try await store.capped(run, three)
                #expect(lease.deliveries.count == 1)
                var settlements = lease.settlements(.retry(notBefore: noon), status: 0)
                settlements[0].mayHaveReachedAPNs = false
                _ = try await store.settle(run: run, settlements, now: noon)
            }
            try await store.expectCapsKept(pushes: 0)
        }
        Promise("copies of one run for one device are one push, which goes by the last of them") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition("retried"))
            for second in 0..<4 {
                let copy = try await store.capped(run, one, now: noon + .seconds(second))
                #expect(copy.deliveries.count == 1)
                let verdict = second < 3 ? Settlement.Verdict.retry(notBefore: noon) : .accepted
                _ = try await store.settle(run: run, copy.settlements(verdict), now: noon + .seconds(second))
            }
            let next = try await store.startRun(try definition("next"))
            #expect(try await store.capped(next, one, now: noon + .seconds(10)).nextDue == noon + .seconds(3603))
            #expect(try await store.capped(next, two, now: noon + .seconds(3603)).deliveries.count == 1)
            let device = try #require(try await store.devices(matching: "install-1").first)
            #expect(try await store.history(ofDevice: device.id)?.cappedPushes.count == 2)
            try await store.expectCapsKept(pushes: 5)
        }
        Promise("a doubtful push keeps its slot after a takeover, and lets its own copy go") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition("doubtful"))
            #expect(try await store.capped(run, one).deliveries.count == 1)
            #expect(try await store.recover(run, now: noon + .seconds(5)).resent == 1)
            let other = try await store.startRun(try definition("other"))
            #expect(try await store.capped(other, one, now: noon + .seconds(6)).nextDue == noon + .seconds(3605))
            #expect(try await store.capped(run, one, now: noon + .seconds(7)).deliveries.count == 1)
            try await store.expectCapsKept(pushes: 2)
        }
        Promise("a retry waits for what others sent meanwhile, as any push does") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition("retried"))
            let first = try await store.capped(run, one)
            let again = noon + .seconds(3601)
            _ = try await store.settle(run: run, first.settlements(.retry(notBefore: again)), now: noon)
            let other = try await store.startRun(try definition("other"))
            let sent = try await store.capped(other, one, now: noon + .seconds(3600))
            _ = try await store.settle(run: other, sent.settlements(.accepted), now: noon + .seconds(3600))
            #expect(try await store.capped(run, one, now: again).nextDue == noon + .seconds(7200))
            try await store.expectCapsKept(pushes: 2)
        }
        Promise("without a collapse id each copy stays on the screen, and counts") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition("copies", { $0.collapse = .none }))
            for second in 0..<2 {
                let copy = try await store.capped(run, two, now: noon + .seconds(second), hasCollapseID: false)
                #expect(copy.deliveries.count == 1)
                let retry = copy.settlements(.retry(notBefore: noon), status: 503)
                _ = try await store.settle(run: run, retry, now: noon + .seconds(second))
            }
            let third = try await store.capped(run, two, now: noon + .seconds(6), hasCollapseID: false)
            #expect(third.deliveries.isEmpty && third.nextDue == noon + .seconds(3600))
            let next = try await store.startRun(try definition("next"))
            #expect(try await store.capped(next, two, now: noon + .seconds(7)).deliveries.isEmpty)
            try await store.expectCapsKept(pushes: 2)
        }
        Promise("the copy for one device of a user counts for the user's other devices, and not for its own") { store in
            let caps = [FrequencyCap(limit: 1, window: .seconds(3600), per: .user)]
            let both = try [1, 2].map { number in try record(number) { $0.userID = "u" } }
            _ = try await store.importDevices(both, now: noon)
            let run = try await store.startRun(try definition("retried"))
            let first = try await store.capped(run, caps)
            #expect(first.deliveries.count == 1)
            _ = try await store.settle(run: run, first.settlements(.retry(notBefore: noon)), now: noon)
            let again = try await store.capped(run, caps, now: noon + .seconds(30))
            #expect(again.deliveries.map(\.device) == first.deliveries.map(\.device))
            #expect(again.nextDue == noon + .seconds(3600))
            try await store.expectCapsKept(pushes: 4)
        }
        Promise("a push in flight makes another wait: it is left out when its own end has come, not before") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition("in-flight"))
            let lease = try await store.capped(run, one)
            let next = try await store.startRun(try definition("next"))
            func ask(_ seconds: Int) async throws -> Lease {
                try await store.capped(next, one, now: noon + .seconds(seconds), latest: .seconds(70))
            }
            #expect(try await ask(10).nextDue == noon + .seconds(15))
            #expect(try await ask(50).nextDue == noon + .seconds(55))
            #expect(try await ask(60).suppressed == 0)
            var settlements = lease.settlements(.rejected, status: 400, reason: "BadTopic")
            settlements[0].mayHaveReachedAPNs = false
            _ = try await store.settle(run: run, settlements, now: noon + .seconds(61))
            let free = try await ask(70)
            #expect(free.deliveries.count == 1)
            let late = try await store.startRun(try definition("late"))
            let left = try await store.capped(late, one, now: noon + .seconds(80), latest: .seconds(80))
            #expect(left.suppressions == [.frequencyCap: 1])
            try await store.expectCapsKept(pushes: 1)
        }
        Promise("what a push in flight cannot change is said at once") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            for name in ["a", "b"] {
                let run = try await store.startRun(try definition(name))
                let lease = try await store.capped(run, two)
                if name == "a" { _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon) }
            }
            let next = try await store.startRun(try definition("next"))
            let now = noon + .seconds(10)
            #expect(try await store.capped(next, one, now: now).nextDue == noon + .seconds(3600))
            let left = try await store.startRun(try definition("left"))
            let leftOut = try await store.capped(left, one, now: now, latest: .seconds(60))
            #expect(leftOut.suppressions == [.frequencyCap: 1])
            let waits = try await store.startRun(try definition("waits"))
            #expect(try await store.capped(waits, two, now: now, latest: .seconds(60)).nextDue == now + .seconds(5))
        }
        Promise("a late answer lengthens what counts, and verify says which push followed too soon") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let run = try await store.startRun(try definition("left", { $0.onUnknown = .skip }))
            let lost = try await store.capped(run, one)
            _ = try await store.recover(run, now: noon)
            let next = try await store.startRun(try definition("next"))
            #expect(try await store.capped(next, one, now: noon + .seconds(3600)).deliveries.count == 1)
            try await store.expectCapsKept(pushes: 2)
            _ = try await store.settle(run: run, lost.settlements(.accepted), now: noon + .seconds(3599))
            let check = try #require(try await store.verify(budgets: [:])[CapScan.name])
            #expect(check.faultCount == 1)
            #expect(check.faults.first?.what.contains("followed 1 others under the cap 1 in 1h per device") == true)
        }
        Promise("a new token frees no slot, nor does a merge, nor a removal") { store in
            _ = try await store.importDevices([try record(2)], now: noon)
            let run = try await store.full(three, devices: [1, 2])
            _ = try await store.importDevices([try record(3, installation: "install-1")], now: noon)
            #expect(try await store.capped(run, three, now: noon + .seconds(60)).deliveries.isEmpty)
            // 9 is fresh and takes over the token of 2, whose slots are used up.
            _ = try await store.importDevices([try record(9)], now: noon)
            let merged = try await store.importDevices([try record(2, installation: "install-9")], now: noon)
            #expect(merged.merged == 1)
            let last = try await store.startRun(try definition("last"))
            #expect(try await store.capped(last, three, now: noon + .seconds(60)).deliveries.isEmpty)
            let device = try #require(try await store.devices(matching: "install-1").first)
            #expect(try await store.removeDevice(device.id, now: noon + .seconds(70), by: "test") == .emptied)
            _ = try await store.importDevices(
                [try record(3, installation: "install-1") { $0.registeredAt = noon + .seconds(80) }], now: noon)
            let again = try await store.startRun(try definition("again"))
            #expect(try await store.capped(again, three, now: noon + .seconds(90)).deliveries.isEmpty)
            try await store.expectCapsKept(pushes: 6)
        }
        Promise("pushes in flight for a device that is merged count for the other for an hour more") { store in
            _ = try await store.importDevices([try record(2)], now: noon)
            for name in ["a", "b", "c"] {
                let run = try await store.startRun(try definition(name))
                #expect(try await store.capped(run, three).deliveries.count == 1)
            }
            _ = try await store.importDevices([try record(9)], now: noon)
            let merge = [try record(2, installation: "install-9")]
            #expect(try await store.importDevices(merge, now: noon + .seconds(60)).merged == 1)
            let run = try await store.startRun(try definition("after"))
            let free = noon + .seconds(60 + 3600 + 3600)
            #expect(try await store.capped(run, three, now: noon + .seconds(61)).nextDue == free)
            #expect(try await store.capped(run, three, now: free).deliveries.count == 1)
        }
        Promise("a push must fit every window: it waits for the slot that comes last") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let caps = [
                FrequencyCap(limit: 1, window: .seconds(600)), FrequencyCap(limit: 2, window: .seconds(86_400)),
            ]
            var moments: [Timestamp?] = []
            for (index, now) in [noon, noon + .seconds(300), noon + .seconds(900)].enumerated() {
                let run = try await store.startRun(try definition("run-\(index)"))
                let lease = try await store.capped(run, caps, now: now)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: now)
                moments.append(lease.nextDue)
            }
            #expect(moments == [nil, noon + .seconds(600), nil])
            let run = try await store.startRun(try definition("last"))
            #expect(try await store.capped(run, caps, now: noon + .seconds(1000)).nextDue == noon + .seconds(86_400))
            try await store.expectCapsKept(pushes: 2)
        }
        Promise("the history of a device has what counts for it: its own pushes, and those of its user's other devices")
        {
            store in
            let devices = try (1...2).map { try record($0) { $0.userID = "anna" } } + [try record(3)]
            _ = try await store.importDevices(devices, now: noon)
            let user = FrequencyCap(limit: 2, window: .seconds(3600), per: .user)
            let own = FrequencyCap(limit: 1, window: .seconds(3600), classes: ["news"])
            let other = FrequencyCap(limit: 1, window: .seconds(3600), classes: ["security"])
            let run = try await store.startRun(try definition("run"))
            let lease = try await store.capped(run, [user, own], as: "news")
            #expect(lease.deliveries.count == 3)
            let device = try #require(try await store.devices(matching: "install-1").first)
            let inFlight = try #require(try await store.history(ofDevice: device.id))
            #expect(inFlight.cappedPushes.map(\.settledAt) == [nil, nil])
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon + .seconds(5))
            let history = try #require(try await store.history(ofDevice: device.id))
            let (now, free) = (noon + .seconds(10), noon + .seconds(3605))
            #expect(history.cappedPushes.map(\.isOwn) == [true, false])
            #expect(history.cappedPushes.allSatisfy { $0.pushClass == "news" && $0.settledAt == noon + .seconds(5) })
            #expect(history.frequencyCap(user, now: now) == (2, free))
            #expect(history.frequencyCap(own, now: now) == (1, free))
            #expect(history.frequencyCap(other, now: now) == (0, now))
        }
        Promise("a cap counts the classes it names, and a push of another class neither waits nor counts") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let caps = [
                FrequencyCap(limit: 1, window: .seconds(3600), classes: ["news", "marketing"]),
                FrequencyCap(limit: 3, window: .seconds(3600)),
            ]
            func isSent(_ name: String, as pushClass: String) async throws -> Bool {
                let run = try await store.startRun(try definition(name))
                let lease = try await store.capped(run, caps, as: pushClass)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
                return !lease.deliveries.isEmpty
            }
            #expect(try await isSent("a", as: "default"))
            #expect(try await isSent("b", as: "news"))
            #expect(try await !isSent("c", as: "marketing"))
            #expect(try await isSent("d", as: "security"))
            #expect(try await !isSent("e", as: "security"))
            try await store.expectCapsKept(pushes: 3)
        }
        Promise("the slots kept for a class are left to it, and it may use the others as well") { store in
            _ = try await store.importDevices([try record(1)], now: noon)
            let caps = [FrequencyCap(limit: 3, window: .seconds(3600), reserve: ["security": 1])]
            var sent: [Bool] = []
            for (index, pushClass) in ["security", "default", "default", "security", "security"].enumerated() {
                let run = try await store.startRun(try definition("run-\(index)"))
                let lease = try await store.capped(run, caps, as: pushClass)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
                sent.append(!lease.deliveries.isEmpty)
            }
            #expect(sent == [true, true, false, true, false])
            let all = [FrequencyCap(limit: 1, window: .seconds(3600), reserve: ["security": 1])]
            let run = try await store.startRun(try definition("none"))
            #expect(try await store.capped(run, all).suppressions == [.frequencyCap: 1])
            try await store.expectCapsKept(pushes: 3)
        }
        Promise("the devices of one user share its slots, in one lease and over several") { store in
            _ = try await store.importDevices(
                [try record(1) { $0.userID = "u" }, try record(2) { $0.userID = "u" }, try record(3), try record(70)],
                now: noon)
            let caps = [FrequencyCap(limit: 1, window: .seconds(3600), per: .user)]
            let run = try await store.startRun(try definition("shared"))
            let lease = try await store.capped(run, caps)
            // A device without a user is a person of its own.
            #expect(lease.deliveries.map(\.device).count == 3 && lease.nextDue != nil)
            let held = try await store.capped(run, caps, now: noon + .seconds(1))
            #expect(held.deliveries.isEmpty)
            _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon + .seconds(2))
            let free = noon + .seconds(3602)
            #expect(try await store.capped(run, caps, now: free - .milliseconds(1)).deliveries.isEmpty)
            #expect(try await store.capped(run, caps, now: free).deliveries.count == 1)
            try await store.expectCapsKept(pushes: 6)
        }
        Promise("a device that changes its user keeps what it got, and so does the user it leaves") { store in
            let both = [try record(1) { $0.userID = "u" }, try record(2) { $0.userID = "v" }]
            _ = try await store.importDevices(both, now: noon)
            let caps = [FrequencyCap(limit: 2, window: .seconds(3600), per: .user)]
            for name in ["a", "b"] {
                let run = try await store.startRun(try definition(name))
                let lease = try await store.capped(run, caps)
                _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon)
            }
            let changed = [try record(1) { $0.userID = "w" }, try record(5) { $0.userID = "u" }]
            _ = try await store.importDevices(changed, now: noon)
            let run = try await store.startRun(try definition("c"))
            let held = try await store.capped(run, caps, now: noon + .seconds(60))
            #expect(held.deliveries.isEmpty && held.nextDue == noon + .seconds(3600))
            try await store.expectCapsKept(pushes: 8)
        }
        Promise("users of one name in two apps are two") { store in
            let other = "com.example.other"
            _ = try await store.importDevices(
                [try record(1) { $0.userID = "u" }, try record(2, topic: other) { $0.userID = "u" }], now: noon)
            let caps = [FrequencyCap(limit: 1, window: .seconds(3600), per: .user)]
            let first = try await store.startRun(try definition("a"))
            #expect(try await store.capped(first, caps).deliveries.count == 1)
            let second = try await store.startRun(try definition("b", { $0.topic = other }))
            #expect(try await store.capped(second, caps, topic: other).deliveries.count == 1)
        }
        Promise("a cap lowered later holds what comes, and proves what went by the rule of then") { store in
            let run = try await store.full(three)
            let lowered = [FrequencyCap(limit: 2, window: .seconds(3600))]
            let free = noon + .seconds(3601)
            #expect(try await store.capped(run, lowered, now: noon + .seconds(10)).nextDue == free)
            #expect(try await store.capped(run, lowered, now: free).deliveries.count == 1)
            try await store.expectCapsKept(pushes: 4)
        }
        Promise("a run without caps counts nothing, and is held by nothing") { store in
            let run = try await store.full(three)
            #expect(try await store.lease(run).deliveries.count == 1)
            let background = try await store.startRun(try definition("b", pushType: .background))
            #expect(try await store.lease(background).deliveries.count == 1)
            try await store.expectCapsKept(pushes: 3)
        }
        Promise.each([3600, -3600] as [Int64], { "a clock set by \($0) s opens no slot before its time" }) {
            store, seconds in
            let run = try await store.full(three, clock: .zero)
            let set = Duration.seconds(seconds)
            // Half of the window has passed, whatever the clock shows.
            let half = try await store.capped(
                run, three, now: noon + .seconds(1800) + set, clock: (.seconds(1800), set))
            #expect(half.deliveries.isEmpty && half.suppressed == 0)
            let after = try await store.capped(
                run, three, now: noon + .seconds(7300) + set, clock: (.seconds(7300), set))
            #expect(after.deliveries.count == 1)
        }
        Promise("upkeep forgets nothing that counts when the clock was set forward") { store in
            let run = try await store.full(three, clock: .zero)
            let set = FrequencyCap.windowMax + FrequencyCap.windowMax + .seconds(3600)
            let shown = ClockReading(wall: noon + .seconds(60) + set, uptime: .seconds(1060), boot: "b")
            #expect(try await store.noteClocks(shown, by: "test") != nil)
            _ = try await store.pruneOutcomes(finishedBefore: noon, dryRun: false, now: shown.wall)
            let held = try await store.capped(
                run, three, now: shown.wall, latest: .seconds(90 * 86_400), clock: (.seconds(60), set))
            #expect(held.deliveries.isEmpty && held.nextDue == noon + .seconds(3600) + set)
        }
        Promise(
            "two senders at once never take the last slot both",
            opening: { stores in
                let first = try await stores.open()
                let second = try await stores.open()
                let numbers = Array(1...200)
                _ = try await first.importDevices(
                    try numbers.map { number in try record(number) { $0.userID = "u\(number / 2)" } }, now: noon)
                let caps = [
                    FrequencyCap(limit: 1, window: .seconds(3600)),
                    FrequencyCap(limit: 1, window: .seconds(3600), per: .user),
                ]
                var runs: [Int64] = []
                for index in 0..<4 { runs.append(try await first.startRun(try definition("run-\(index)"))) }
                let leases = try await withThrowingTaskGroup(of: Lease.self) { group in
                    for (index, run) in runs.enumerated() {
                        group.addTask { try await (index % 2 == 0 ? first : second).capped(run, caps) }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                let devices = leases.flatMap { $0.deliveries.map(\.device) }
                #expect(devices.count == 101 && Set(devices).count == 101)
                try await first.expectCapsKept(pushes: 202)
            })
        Promise("what counts no more is forgotten with old outcomes, what counts is not") { store in
            let run = try await store.full(three)
            func prune(at now: Timestamp) async throws {
                _ = try await store.pruneOutcomes(finishedBefore: noon, dryRun: false, now: now)
            }
            try await prune(at: noon + .seconds(3000))
            #expect(try await store.capped(run, three, now: noon + .seconds(3000)).deliveries.isEmpty)
            try await store.expectCapsKept(pushes: 3)
            try await prune(at: noon + FrequencyCap.windowMax + FrequencyCap.windowMax + .seconds(10))
            try await store.expectCapsKept(pushes: 0)
        }
        Promise.each(
            Nightly.rows([1, 2], atNight: [3, 4]),
            { "no rolling window at APNs ever holds more than the caps allow: \($0)" }
        ) { store, seed in
            var walk = try await CapWalk(store, seed: UInt64(seed))
            for _ in 0..<300 { try await walk.step() }
            #expect(walk.arrivals.count > 60)
            #expect(walk.violations == 0)
            try await store.expectCapsKept()
        }
    }

    private static let one = [FrequencyCap(limit: 1, window: .seconds(3600))]
    private static let two = [FrequencyCap(limit: 2, window: .seconds(3600))]
    private static let three = [FrequencyCap(limit: 3, window: .seconds(3600))]
}
