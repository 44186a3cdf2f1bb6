import Model
import Store
import Testing

extension OutcomeReaderContract {
    @PromiseList static var reports: [Promise] {
        Promise("a report says what became of everyone") { store in
            let run = try await mixedRun(store)
            let report = try await store.report(run)
            #expect(report.counts == report.run.counts)
            #expect(report.counts.closes)
            #expect(report.counts.audience == 8 && report.counts.pending == 3 && report.counts.leased == 1)
            #expect(report.rejected == [Report.Reason(status: 410, reason: "Unregistered", count: 1)])
            #expect(report.unknown == [Report.Reason(status: 0, reason: "deadline", count: 1)])
            #expect(report.suppressed == [Report.Reason(status: 0, reason: "alerts_not_allowed", count: 1)])
            #expect(report.attempts == 4 && report.devicesGone == 1)
            #expect(report.byEnvironment.map(\.name) == ["production", "sandbox"])
            #expect(report.byEnvironment.map(\.counts.audience) == [6, 2])
            #expect(report.byEnvironment.map(\.counts.leased) == [1, 0])
            #expect(report.byLocale.map(\.name) == ["en", "de", "not rendered"])
            #expect(report.byLocale.map(\.counts.audience) == [2, 2, 4])
            #expect(report.byLocale.map(\.counts.pending) == [0, 1, 2])
        }
        Promise("outcomes are exported per device with the end of the token only") { store in
            let run = try await mixedRun(store)
            let found = Collected<OutcomeRow>()
            let count = try await store.outcomes(run: run) { found.add($0) }
            #expect(count == 8 && found.all.map(\.device) == Array(1...8))
            let second = found.all[1]
            #expect(second.installationID == "install-2" && second.state == .rejected && second.status == 410)
            #expect(second.reason == "Unregistered" && second.attempts == 1 && second.generation == 1)
            #expect(second.settledAt == noon + .seconds(1))
            #expect(second.tokenEnd == String(try token(2).hex.suffix(8)))
            #expect(found.all[3].state == .pending && found.all[3].settledAt == nil)
            #expect(found.all[5].reason == "alerts_not_allowed")
        }
        Promise("an error of the caller ends an export") { store in
            let run = try await mixedRun(store)
            await #expect(throws: CancellationError.self) {
                try await store.outcomes(run: run) { _ in throw CancellationError() }
            }
            // The reader is free again.
            #expect(try await store.outcomes(run: run) { _ in } == 8)
        }
        Promise("the history of a device tells each run's outcome") { store in
            let run = try await mixedRun(store)
            let other = try await store.startRun(try definition("other"))
            let history = try await store.history(ofDevice: 4, limit: 10)
            #expect(history.map(\.run) == [other, run])
            #expect(history[1].notBefore == noon + .seconds(60))
            #expect(history[1].outcome.reason == "Shutdown" && !history[1].isLeased)
            #expect(try await store.history(ofDevice: 5, limit: 1).map(\.isLeased) == [false])
            #expect(try await store.history(ofDevice: 5, limit: 2).map(\.isLeased) == [false, true])
        }
        Promise("the history of a device names the conditions of an audience that its data do not meet") { store in
            _ = try await store.importDevices(
                [try record(1) { $0.locale = "en" }, try record(2) { $0.locale = "de" }], now: noon)
            let german = AudienceExpression.oneOf(.locale, [.locale(try #require(LocaleTag("de")))])
            let recent = AudienceExpression.within(.lastSeenAt, .seconds(60))
            _ = try await store.startRun(
                try definition("german") {
                    $0.audience = Audience(source: "", expression: .all([.not(.tag("beta")), german, .not(recent)]))
                })
            let history = try #require(try await store.history(ofDevice: 1))
            #expect(history.entries.map(\.unmet) == [[german]])
            _ = try await store.importDevices([try record(1) { $0.locale = "de" }], now: noon + .seconds(5))
            #expect(try await store.history(ofDevice: 1)?.entries.first?.unmet == [])
            #expect(try await store.history(ofDevice: 2)?.entries.first?.unmet == nil)
        }
    }

    private static func mixedRun(_ store: any AllRoles) async throws -> Int64 {
        let records = try (1...8).map { number in
            try record(number, environment: number > 6 ? .sandbox : .production) {
                $0.locale = number % 2 == 0 ? "de" : "en"
                $0.alertsAllowed = number != 6
            }
        }
        _ = try await store.importDevices(records, now: noon)
        let run = try await store.startRun(try definition())
        let lease = try await store.lease(run, limit: 4)
        var settlements = lease.settlements(.accepted)
        for index in settlements.indices { settlements[index].localeIndex = index % 2 }
        settlements[1].verdict = .rejected
        settlements[1].status = 410
        settlements[1].reason = "Unregistered"
        settlements[1].effect = .gone(since: noon)
        settlements[2].verdict = .unknown
        settlements[2].status = 0
        settlements[2].reason = "deadline"
        settlements[3].verdict = .retry(notBefore: noon + .seconds(60))
        settlements[3].status = 503
        settlements[3].reason = "Shutdown"
        _ = try await store.settleAndMark(run: run, settlements, now: noon + .seconds(1))
        _ = try await store.lease(run, after: lease.cursor, limit: 1)
        return run
    }
}
