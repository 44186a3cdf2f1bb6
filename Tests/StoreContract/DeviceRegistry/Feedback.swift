import Model
import Store
import Testing

extension DeviceRegistryContract {
    static func opened(
        _ run: Int64, _ device: Int64, _ kind: FeedbackKind = .opened, name: String = "", id: Int64 = 1,
        at: Timestamp = noon + .seconds(90)
    ) -> FeedbackEvent {
        FeedbackEvent(
            source: .push(run: run, device: device), kind: kind, name: name, id: (high: 0, low: id), at: at,
            receivedAt: at)
    }

    static func converted(
        _ installation: String, id: Int64, value: Int64? = nil, at: Timestamp = noon + .seconds(600)
    ) -> FeedbackEvent {
        FeedbackEvent(
            source: .installation(installation, topic: wendercast), kind: .converted, name: "played",
            id: (high: .min, low: id), valueMicros: value, at: at, receivedAt: at)
    }

    static func sent(_ store: any AllRoles, devices: Int, change: (inout Campaign) -> Void = { _ in })
        async throws -> Int64
    {
        _ = try await store.importDevices(try (1...devices).map { try record($0) }, now: noon)
        let run = try await store.startRun(try definition("run", change))
        let lease = try await store.lease(
            LeaseRequest(run: run, environment: .production, limit: devices, now: noon, owner: "a"))
        _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon + .seconds(1))
        return run
    }

    /// Registers a device, and returns its number.
    private static func id(of number: Int, _ store: any AllRoles) async throws -> Int64 {
        let registered = try await store.registerDevices([try record(number)], reading: true, now: noon)
        return try #require(registered[0].device).id
    }

    @PromiseList static var feedback: [Promise] {
        Promise("each report about a push counts once, by the minute since the push was accepted") { store in
            let run = try await sent(store, devices: 3)
            let events = [
                opened(run, 1), opened(run, 1, id: 2), opened(run, 1, .action, name: "save"),
                opened(run, 2, at: noon + .seconds(7_300)), opened(run, 99), opened(run + 1, 2),
            ]
            let verdicts = try await store.recordFeedback(events)
            #expect(
                verdicts == [.recorded, .repeated, .recorded, .recorded, .unknownDevice, .unknownPush])
            #expect(try await store.recordFeedback(events).filter { $0 == .recorded }.isEmpty)
            let counts = try await store.feedbackCounts(ofRun: run)
            #expect(counts.map(\.kind) == [.opened, .opened, .action])
            #expect(counts.map(\.name) == ["", "", "save"])
            #expect(counts.map(\.minute) == [1, 120, 1])
            #expect(counts.map(\.events) == [1, 1, 1])
            #expect(try await store.feedbackCounts(ofRun: run + 1) == [])
            #expect(try await store.openTotals(ofRuns: [run, run + 1]) == [run: 2])
            #expect(try await store.openTotals(ofRuns: []) == [:])
            // A person may buy twice after one push.
            let bought = [1, 2, 1].map { id in
                FeedbackEvent(
                    source: .push(run: run, device: 1), kind: .converted, name: "bought", id: (high: 0, low: id),
                    valueMicros: 1_000_000, at: noon + .seconds(60), receivedAt: noon + .seconds(60))
            }
            #expect(try await store.recordFeedback(bought) == [.recorded, .recorded, .repeated])
            let sums = try await store.feedbackCounts(ofRun: run).filter { $0.kind == .converted }
            #expect(sums.map(\.valueMicros) == [2_000_000])
        }
        Promise("reports about pushes that APNs did not accept are counted apart from those about accepted ones") {
            store in
            _ = try await store.importDevices(try (1...6).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition("run"))
            let lease = try await store.lease(
                LeaseRequest(run: run, environment: .production, limit: 6, now: noon, owner: "a"))
            var settled = Array(lease.settlements(.accepted).prefix(2))
            settled.append(lease.settlements(.rejected, status: 400, reason: "PayloadTooLarge")[2])
            settled.append(lease.settlements(.unknown, status: 0, reason: "timeout")[3])
            _ = try await store.settle(run: run, settled, now: noon + .seconds(1))
            let devices = lease.deliveries.map(\.device)
            // The fifth push is still in flight, and no push went to a device that is not in the audience.
            let stranger = try await id(of: 7, store)
            let reporters = Array(devices.prefix(5)) + [stranger]
            let events = reporters.flatMap { [opened(run, $0), opened(run, $0, .action, name: "save")] }
            #expect(try await store.recordFeedback(events).allSatisfy { $0 == .recorded })
            #expect(try await store.openTotals(ofRuns: [run]) == [run: 3])
            let counts = try await store.feedbackCounts(ofRun: run)
            for kind in [FeedbackKind.opened, .action] {
                let cells = counts.filter { $0.kind == kind }
                #expect(cells.filter { $0.minute == nil }.map(\.events).reduce(0, +) == 3, "\(kind)")
                #expect(cells.filter { $0.minute == 1 }.map(\.events).reduce(0, +) == 2, "\(kind)")
                #expect(cells.filter { $0.minute == 0 }.map(\.events).reduce(0, +) == 1, "\(kind)")
            }
        }
        Promise("a report of an installation counts once for each id, and stays with its device") { store in
            _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
            let events = [
                converted("install-1", id: 1, value: 4_990_000), converted("install-1", id: 1),
                converted("install-1", id: 2),
                converted("install-2", id: 1), converted("install-9", id: 1), converted("Bjørn \"ß\" \u{1F3A7}", id: 1),
            ]
            #expect(
                try await store.recordFeedback(events)
                    == [.recorded, .repeated, .recorded, .recorded, .unknownDevice, .unknownDevice])
            let found = Collected<StoredFeedback>()
            let day = noon..<noon + .seconds(86_400)
            try await store.feedback(receivedIn: day) { found.add($0) }
            #expect(found.all.map(\.device).sorted() == [1, 1, 2])
            #expect(found.all.compactMap(\.valueMicros) == [4_990_000])
            #expect(found.all.allSatisfy { $0.run == nil && $0.name == "played" && $0.kind == .converted })
            // Nothing of a removed device is left.
            _ = try await store.removeDevice(1, now: noon, by: "test")
            let left = Collected<StoredFeedback>()
            try await store.feedback(receivedIn: day) { left.add($0) }
            #expect(left.all.map(\.device) == [2])
            #expect(try await store.removeFeedback(receivedBefore: noon, now: noon + .seconds(900)) == 0)
            #expect(try await store.feedbackRemoval() == nil)
            let (before, now) = (noon + .seconds(601), noon + .seconds(901))
            #expect(try await store.removeFeedback(receivedBefore: before, now: now) == 1)
            let removal = FeedbackRemoval(receivedUntil: noon + .seconds(600), receivedBefore: before, removedAt: now)
            #expect(try await store.feedbackRemoval() == removal)
            #expect(removal.mayLack(eventsSince: noon + .seconds(600)))
            #expect(!removal.mayLack(eventsSince: noon + .seconds(601)))
            // A deletion that finds nothing is no deletion.
            #expect(try await store.removeFeedback(receivedBefore: now, now: now + .seconds(9)) == 0)
            #expect(try await store.feedbackRemoval() == removal)
        }
        Promise("reports that are set aside count once they are recorded, like any others") { store in
            let run = try await sent(store, devices: 3)
            let first = [
                opened(run, 1), opened(run, 1, id: 2), opened(run, 2, .action, name: "save"), opened(run, 99),
                opened(run + 1, 2), converted("install-3", id: 7, value: 4_990_000), converted("install-9", id: 1),
            ]
            #expect(try await store.waitingFeedback() == nil)
            #expect(
                try await store.setFeedbackAside(first) == [
                    .waiting, .repeated, .waiting, .unknownDevice, .unknownPush, .waiting, .unknownDevice,
                ])
            #expect(try await store.setFeedbackAside([opened(run, 99)]) == [.unknownDevice])
            // A report that waits already, and one that is recorded meanwhile.
            #expect(try await store.setFeedbackAside([opened(run, 1, at: noon + .seconds(200))]) == [.waiting])
            #expect(try await store.recordFeedback([opened(run, 2, .action, name: "save")]) == [.recorded])
            #expect(
                try await store.waitingFeedback() == WaitingFeedback(events: 4, since: noon + .seconds(90)))
            #expect(try await store.feedbackCounts(ofRun: run).map(\.events) == [1])
            // The store cannot know a device any more that was removed meanwhile.
            #expect(try await store.setFeedbackAside([opened(run, 3)]) == [.waiting])
            _ = try await store.removeDevice(3, now: noon, by: "test")
            let tally = Collected<FeedbackTally>()
            try await store.recordWaitingFeedback { counts in
                for (result, count) in counts { tally.add(Array(repeating: result, count: count)) }
            }
            let results = Dictionary(grouping: tally.all) { $0 }.mapValues(\.count)
            // The open that was sent twice is recorded once.
            #expect(
                results == [
                    FeedbackTally(kind: .opened, result: .recorded): 1,
                    FeedbackTally(kind: .opened, result: .repeated): 1,
                    FeedbackTally(kind: .opened, result: .rejected): 1,
                    FeedbackTally(kind: .action, result: .repeated): 1,
                    FeedbackTally(kind: .converted, result: .rejected): 1,
                ])
            #expect(try await store.waitingFeedback() == nil)
            let counts = try await store.feedbackCounts(ofRun: run)
            #expect(counts.map(\.kind) == [.opened, .action] && counts.map(\.events) == [1, 1])
            #expect(counts.map(\.minute) == [1, 1])
            let found = Collected<StoredFeedback>()
            try await store.feedback(receivedIn: noon..<noon + .seconds(86_400)) { found.add($0) }
            #expect(found.all.map(\.device).sorted() == [1, 2])
            try await store.recordWaitingFeedback()
            #expect(try await store.feedbackCounts(ofRun: run) == counts)
        }
        Promise("a device that is merged, or gets another installation, keeps its reports that wait") { store in
            let run = try await sent(store, devices: 4)
            // This device gets no push, because the run is older.
            let other = try await id(of: 5, store)
            let events = [
                opened(run, 1), opened(run, 3), converted("install-1", id: 1), converted("install-4", id: 1),
            ]
            #expect(try await store.setFeedbackAside(events).allSatisfy { $0 == .waiting })
            // The first device's app was installed again: a second row has its new installation, and gets its token.
            let again = try record(1, installation: "install-2")
            _ = try await store.registerDevices([again], reading: true, now: noon + .seconds(600))
            _ = try await store.registerDevices(
                [try record(4, installation: "new-4")], reading: true, now: noon + .seconds(600))
            _ = try await store.registerDevices(
                [try record(3, installation: "install-5")], reading: true, now: noon + .seconds(600))
            let ids = try await store.devices(matching: "install-2").map(\.id)
            #expect(ids.count == 1)
            try await store.recordWaitingFeedback()
            let found = Collected<StoredFeedback>()
            try await store.feedback(receivedIn: noon..<noon + .seconds(86_400)) { found.add($0) }
            #expect(found.all.map(\.device).sorted() == [ids[0], ids[0], 4, other].sorted())
            // They count for the pushes that were opened, also if the other device got none.
            let counts = try await store.feedbackCounts(ofRun: run)
            #expect(counts.map(\.events) == [2] && counts.map(\.minute) == [1])
        }
        Promise("thousands of reports that were set aside are recorded in order, and none twice") { store in
            let run = try await sent(store, devices: 900)
            for kind in [FeedbackKind.opened, .dismissed, .opened] {
                let events = (1...900).shuffled().map { opened(run, Int64($0), kind) }
                #expect(try await store.setFeedbackAside(events).allSatisfy { $0 == .waiting })
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<3 { group.addTask { try await store.recordWaitingFeedback() } }
                try await group.waitForAll()
            }
            let counts = try await store.feedbackCounts(ofRun: run)
            #expect(counts.map(\.kind) == [.opened, .dismissed] && counts.map(\.events) == [900, 900])
            #expect(try await store.waitingFeedback() == nil)
        }
        Promise("a run counts a bounded number of names, however many are made up") { store in
            let run = try await sent(store, devices: 60)
            // One device makes up hundreds of buttons, in several transactions.
            for batch in 0..<3 {
                let events = (0..<100).map { opened(run, 1, .action, name: "made up \(batch) \($0)") }
                _ = try await store.recordFeedback(events)
            }
            var counts = try await store.feedbackCounts(ofRun: run)
            #expect(counts.count == 6 && counts.allSatisfy { $0.events == 1 })
            #expect(counts.contains { $0.name == "other" })
            #expect(try await store.recordFeedback([opened(run, 1, .action, name: "more")]) == [.repeated])
            // All devices make up buttons, and then tap a real one, which has its name already.
            _ = try await store.recordFeedback([opened(run, 2, .action, name: "save")])
            for device in Int64(2)...60 {
                let names = (0..<10).map { "button \(device) \($0)" } + ["save"]
                _ = try await store.recordFeedback(names.map { opened(run, device, .action, name: $0) })
            }
            counts = try await store.feedbackCounts(ofRun: run)
            #expect(Set(counts.map(\.name)).count == 51)
            #expect(counts.first { $0.name == "save" }?.events == 59)
            #expect(counts.filter { $0.name == "other" }.map(\.events) == [60])
        }
        Promise("a conversion keeps its name, because it may be the goal of another run") { store in
            let run = try await sent(store, devices: 1)
            let events = (0..<200).map { opened(run, 1, .converted, name: "event \($0)") }
            #expect(try await store.recordFeedback(events).allSatisfy { $0 == .recorded })
            let counts = try await store.feedbackCounts(ofRun: run)
            #expect(counts.count == 6 && counts.map(\.events).reduce(0, +) == 200)
            let goal = FeedbackGoal(kind: .converted, name: "event 199", within: .seconds(3600))
            #expect(try await store.feedbackArms(ofRun: run, [goal])[goal]?.treated.reached == 1)
        }
        Promise("the reports of one device that wait are forgotten, and all others are kept") { store in
            let run = try await sent(store, devices: 4)
            #expect(try await store.setFeedbackAside([opened(run, 1)]) == [.waiting])
            let mixed = [opened(run, 1, .dismissed), opened(run, 3), converted("install-1", id: 1)]
            #expect(try await store.setFeedbackAside(mixed).allSatisfy { $0 == .waiting })
            #expect(try await store.verify(budgets: [:], faultsMax: 9)["waiting_feedback"]?.compared == 4)
            // The first device's app is installed again, so that its reports are those of another device.
            _ = try await store.registerDevices(
                [try record(1, installation: "install-2")], reading: true, now: noon + .seconds(600))
            let kept = try #require(try await store.devices(matching: "install-2").first).id
            try await store.forgetWaitingFeedback(of: 4)
            #expect(try await store.waitingFeedback()?.events == 4)
            try await store.forgetWaitingFeedback(of: kept)
            #expect(try await store.waitingFeedback()?.events == 1)
            try await store.recordWaitingFeedback()
            let found = Collected<StoredFeedback>()
            try await store.feedback(receivedIn: noon..<noon + .seconds(86_400)) { found.add($0) }
            #expect(found.all.map(\.device) == [3])
            #expect(try await store.verify(budgets: [:], faultsMax: 9)["waiting_feedback"]?.compared == 0)
        }
        Promise("an installation has one secret, which leaves the store with its device") { store in
            _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
            let (first, second) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
            #expect(try await store.setInstallationSecret(hash: first, of: 1, now: noon))
            #expect(try await store.setInstallationSecret(hash: first, of: 99, now: noon) == false)
            let own = ReportingInstallation(device: 1, installationID: "install-1", topic: wendercast)
            #expect(try await store.installation(secretHash: first) == own)
            #expect(try await store.installation(secretHash: second) == nil)
            #expect(try await store.setInstallationSecret(hash: second, of: 1, now: noon))
            #expect(try await store.installation(secretHash: first) == nil)
            #expect(try await store.installation(secretHash: second) == own)
            _ = try await store.removeDevice(1, now: noon, by: "test")
            #expect(try await store.installation(secretHash: second) == nil)
        }
        Promise("values that are too large for a number stop at the largest one") { store in
            let run = try await sent(store, devices: 2)
            let large = Int64.max / 2 + 1
            let push = FeedbackEvent.Source.push(run: run, device: 1)
            var events = (1...4).map { converted("install-1", id: Int64($0), value: large) }
            events.append(
                FeedbackEvent(
                    source: push, kind: .converted, name: "a", id: (high: 0, low: 0), valueMicros: large,
                    at: noon + .seconds(60), receivedAt: noon + .seconds(60)))
            #expect(try await store.recordFeedback(events).allSatisfy { $0 == .recorded })
            for device in [Int64(2), 1] {
                let again = FeedbackEvent(
                    source: .push(run: run, device: device), kind: .converted, name: "a", id: (high: 0, low: 1),
                    valueMicros: large, at: noon + .seconds(60), receivedAt: noon + .seconds(60))
                _ = try await store.recordFeedback([again])
            }
            #expect(try await store.feedbackCounts(ofRun: run).map(\.valueMicros) == [9_000_000_000_000_000_000])
            let goal = FeedbackGoal(kind: .converted, name: "played", within: .seconds(3600))
            let arms = try #require(try await store.feedbackArms(ofRun: run, [goal])[goal])
            #expect(arms.treated.valueMicros == 9_000_000_000_000_000_000 && arms.treated.reached == 1)
            // A removed device counts as not reached, and no later report is about it.
            _ = try await store.removeDevice(1, now: noon + .seconds(90), by: "test")
            let left = try #require(try await store.feedbackArms(ofRun: run, [goal])[goal])
            #expect(left.treated.devices == 2 && left.treated.reached == 0)
            #expect(try await store.recordFeedback([opened(run, 1)]) == [.unknownDevice])
        }
        Promise("devices that are held out are compared as assigned, whatever became of the pushes") { store in
            let run = try await sent(store, devices: 400) {
                $0.holdoutPercent = 50
                $0.variants = [
                    Campaign.Variant(name: "a", weight: 1, template: "t"),
                    Campaign.Variant(name: "b", weight: 1, template: "t"),
                ]
            }
            let campaign = try #require(try await store.run(run)).definition.campaign
            let split = CampaignSplit(campaign)
            let heldOut = (1...400).filter { split.isHeldOut(Int64($0)) }
            let treated = (1...400).filter { !split.isHeldOut(Int64($0)) }
            let goal = FeedbackGoal(kind: .converted, name: "played", within: .seconds(3600))
            var events = heldOut.prefix(5).map { converted("install-\($0)", id: 1) }
            events += treated.prefix(20).map { converted("install-\($0)", id: 1, value: 1_000_000) }
            // Twice, too late, and too early.
            events += treated.prefix(3).map { converted("install-\($0)", id: 2) }
            events.append(converted("install-\(treated[30])", id: 3, at: noon + .seconds(3600)))
            events.append(converted("install-\(treated[31])", id: 3, at: noon - .seconds(1)))
            _ = try await store.recordFeedback(events)
            let other = FeedbackGoal(kind: .converted, name: "other", within: .seconds(3600))
            let both = try await store.feedbackArms(ofRun: run, [goal, other])
            let arms = try #require(both[goal])
            #expect(arms.heldOut.devices == heldOut.count && arms.heldOut.reached == 5)
            #expect(arms.treated.devices == treated.count && arms.treated.reached == 20)
            #expect(arms.treated.valueMicros == 20_000_000 && arms.heldOut.valueMicros == 0)
            #expect(arms.variants.map(\.devices).reduce(0, +) == treated.count)
            #expect(arms.variants.map(\.reached).reduce(0, +) == 20)
            #expect(both[other]?.treated.reached == 0 && both[other]?.treated.devices == treated.count)
            // Only pushes show that devices are gone, so a prune deletes treated ones. The groups stay as they were.
            for device in treated.suffix(50) { _ = try await store.removeDevice(Int64(device), now: noon, by: "test") }
            let pruned = try #require(try await store.feedbackArms(ofRun: run, [goal])[goal])
            #expect(pruned == arms)
        }
        Promise("in a run by the clock of each device, held-out devices count from the wave that they would have had") {
            store in
            _ = try await store.importDevices(
                try (1...40).map { try record($0) { $0.timeZone = "Etc/GMT+1" } }, now: noon)
            var definition = try definition("waves") {
                var schedule = Schedule(trigger: .at("2027-01-15T08:00"))
                schedule.zone = .recipient
                schedule.unknownZone = .drop
                $0.schedule = schedule
                $0.holdoutPercent = 50
                $0.dedupe = .user
            }
            definition.wall = WallTime(seconds: noon.seconds)
            let run = try await store.startRun(definition)
            let goal = FeedbackGoal(kind: .converted, name: "played", within: .seconds(3600))
            for (wait, share) in [(600.0, 0), (4200, 1)] {
                let events = (1...40).map {
                    converted("install-\($0)", id: Int64(wait), at: noon + .seconds(wait))
                }
                _ = try await store.recordFeedback(events)
                let arms = try #require(try await store.feedbackArms(ofRun: run, [goal])[goal])
                #expect(arms.heldOut.devices > 0 && arms.treated.devices == 40 - arms.heldOut.devices)
                #expect(arms.heldOut.reached == share * arms.heldOut.devices)
                #expect(arms.treated.reached == share * arms.treated.devices)
            }
            // Waves are those of devices that the run sends to.
            let waves = try await store.waves(run)
            let arms = try #require(try await store.feedbackArms(ofRun: run, [goal])[goal])
            #expect(waves.map(\.deliveries) == [arms.treated.devices] && waves.first?.startsAt == noon + .seconds(3600))
            // A device stays in its group when its user leaves it.
            _ = try await store.registerDevices(
                try (1...40).map { number in try record(number) { $0.userID = "user-\(number % 3)" } }, reading: true,
                now: noon + .seconds(90))
            let later = try #require(try await store.feedbackArms(ofRun: run, [goal])[goal])
            #expect(later.heldOut.devices == arms.heldOut.devices)
        }
    }
}
