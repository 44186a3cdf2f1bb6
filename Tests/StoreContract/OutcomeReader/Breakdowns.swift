import Model
import Store
import Testing

/// Tables that add up to the audience, and what a delivery was when it was frozen.
extension OutcomeReaderContract {
    @PromiseList static var breakdowns: [Promise] {
        Promise("every table of a report adds up to the audience, running, ended and pruned") { store in
            let run = try await Self.brokenDown(store)
            func expectClosed(_ tables: [[Report.Slice]], _ report: Report) {
                for table in tables {
                    #expect(table.reduce(DeliveryCounts()) { $0 + $1.counts } == report.counts, "\(table)")
                }
            }
            func tables(_ report: Report) -> [[Report.Slice]] {
                [
                    report.byEnvironment, report.byLocale, report.byAppVersion, report.byZone, report.byCountry,
                    report.byWave, report.byStage,
                ]
            }
            let waiting = try await store.report(run)
            expectClosed(tables(waiting), waiting)
            #expect(waiting.byLocale.map(\.name) == ["not rendered"])
            try await store.sendAll(run)
            let report = try await store.report(run)
            expectClosed(tables(report), report)
            #expect(report.counts.accepted > 100 && report.counts.suppressed == 20)
            #expect(report.byLocale.map(\.name) == ["en", "de", "not rendered"])
            #expect(report.byAppVersion.map(\.name) == ["4.2", "4.1", "not known"])
            #expect(report.byCountry.map(\.name) == ["DE", "not known"])
            #expect(Set(report.byZone.map(\.name)) == ["Etc/UTC", "Etc/GMT+1"])
            #expect(report.byWave.map(\.name) == [noon, noon + .seconds(3600)].map(\.iso8601) + ["no wave"])
            #expect(report.byStage.map(\.name) == ["1", "2", "no stage"])
            #expect(report.byStage.last?.counts.suppressed == 20)
            try await store.summarizeOutcomes(run: run)
            #expect(try await store.report(run) == report)
            try await store.release(run, by: "a", state: .finished, reason: nil, now: noon + .seconds(7_200))
            _ = try await store.pruneOutcomes(
                finishedBefore: noon + .seconds(9_000), dryRun: false, now: noon + .seconds(9_000))
            let pruned = try await store.report(run)
            #expect(tables(pruned) == tables(report))
            try await store.expectSumsClose(run)
        }
        Promise("a later import changes neither the tables nor the deliveries of a run") { store in
            _ = try await store.importDevices(
                try (1...4).map { number in
                    try record(number) {
                        $0.locale = "en-US"
                        $0.appVersion = "4.1"
                        $0.country = "US"
                    }
                }, now: noon)
            let run = try await store.startRun(try definition())
            let lease = try await store.lease(run)
            var settlements = lease.settlements(.accepted)
            for index in settlements.indices { settlements[index].localeIndex = 0 }
            _ = try await store.settle(run: run, settlements, now: noon)
            func rows() async throws -> [OutcomeRow] {
                let found = Collected<OutcomeRow>()
                _ = try await store.outcomes(run: run) { found.add($0) }
                return found.all
            }
            let (before, report) = (try await rows(), try await store.report(run))
            #expect(before.allSatisfy { $0.locale == "en-US" && $0.appVersion == "4.1" && $0.localeIndex == 0 })
            _ = try await store.importDevices(
                try (1...4).map { number in
                    try record(number) {
                        $0.locale = "sv-SE"
                        $0.appVersion = "5.0"
                        $0.country = "SE"
                    }
                }, now: noon + .seconds(60))
            #expect(try await rows() == before)
            #expect(try await store.report(run) == report)
            let page = try await store.deliveries(of: run, DeliveryFilter(), after: 0, limit: 10)
            #expect(page.entries.map(\.outcome) == before)
            #expect(try await store.history(ofDevice: 1, limit: 1).map(\.outcome.appVersion) == ["4.1"])
        }
        Promise("a holdout and its variants keep their members when devices are gone") { store in
            try await DeliveryQueueContract.populate(store)
            func members() async throws -> [Int64: Int?] {
                let run = try await store.startRun(
                    try DeliveryQueueContract.split(), occurrence: "\(try await store.runs(limit: 9).count)")
                let found = Collected<OutcomeRow>()
                _ = try await store.outcomes(run: run) { found.add($0) }
                #expect(found.all.allSatisfy { ($0.reason == "holdout") == ($0.variant == nil) })
                return Dictionary(uniqueKeysWithValues: found.all.map { ($0.device, $0.variant) })
            }
            let before = try await members()
            let held = CampaignSplit(try DeliveryQueueContract.split().campaign)
            #expect(before.allSatisfy { held.isHeldOut($0.key) == ($0.value == nil) })
            // Every fifth device is found gone by a run of another campaign.
            let other = try await store.startRun(try definition("other"), occurrence: "gone")
            let lease = try await store.lease(other, limit: 5000)
            let settlements = lease.settlements(.accepted).map { settled in
                var settled = settled
                if settled.device % 5 == 0 {
                    settled.verdict = .rejected
                    settled.status = 410
                    settled.reason = "Unregistered"
                    settled.effect = .gone(since: noon)
                }
                return settled
            }
            _ = try await store.settleAndMark(run: other, settlements, now: noon)
            #expect(try await members() == before)
        }
    }

    /// Two stages, two waves, three versions; 20 of 240 devices show no alerts.
    private static func brokenDown(_ store: any AllRoles) async throws -> Int64 {
        let stages = [Stage(.share(50), toleratePercent: 20), Stage(.rest)]
        return try await store.staged(240, stages) { record, number in
            record.environment = number % 4 == 0 ? .sandbox : .production
            record.timeZone = number % 2 == 0 ? "Etc/UTC" : "Etc/GMT+1"
            record.appVersion = number % 12 == 0 ? nil : number % 3 == 0 ? "4.1" : "4.2"
            record.country = number % 5 == 0 ? nil : "DE"
            record.alertsAllowed = number % 12 != 5
        } run: { definition in
            var schedule = Schedule(trigger: .at("2027-01-15T08:00"))
            schedule.zone = .recipient
            schedule.unknownZone = .drop
            definition.campaign.schedule = schedule
            definition.wall = WallTime(seconds: noon.seconds)
        }
    }
}

extension DeliveryQueue where Self: RunLog & RunOwnership & DeviceRegistry {
    /// Accepts all that is due now and an hour later, in both environments.
    fileprivate func sendAll(_ run: Int64) async throws {
        for now in [noon, noon + .seconds(3_600), noon + .seconds(3_700)] {
            var isDone = false
            while !isDone {
                isDone = true
                for environment in PushEnvironment.allCases {
                    let lease = try await leaseStaged(run, now: now) { $0.environment = environment }
                    guard !lease.deliveries.isEmpty else { continue }
                    isDone = false
                    var settlements = lease.settlements(.accepted)
                    for index in settlements.indices { settlements[index].localeIndex = index % 2 }
                    _ = try await settle(run: run, settlements, now: now)
                }
            }
        }
    }
}
