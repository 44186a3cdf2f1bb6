import Foundation
import Model
import Store
import Testing

/// Runs with `best_hour`. It is 2027-01-15T08:00 UTC.
extension DeviceRegistryContract {
    private static let zones = ["Europe/Berlin", "Asia/Tokyo", "America/New_York", "Asia/Kolkata"]

    /// Returns a run from 8 to 21 by each device's clock, on the day after tomorrow.
    private static func atBestHours(
        _ name: String = "best", unknown: Schedule.UnknownZone = .drop, _ change: (inout Campaign) -> Void = { _ in }
    ) throws -> RunDefinition {
        var schedule = Schedule(trigger: .at("2027-01-17T08:00"))
        schedule.zone = .recipient
        schedule.unknownZone = unknown
        schedule.bestHour = Schedule.BestHours(untilMinute: 21 * 60)
        let occurrence = try #require(Timetable(schedule)?.occurrence(named: "2027-01-17T08:00"))
        return try definition(name) {
            $0.schedule = schedule
            $0.feedback = CampaignFeedback()
            change(&$0)
        }.planned(for: occurrence)
    }

    private static func opened(
        _ number: Int, _ kind: FeedbackKind = .appStarted, id: Int, at: Timestamp, received: Timestamp? = nil,
        topic: String = wendercast
    ) -> FeedbackEvent {
        FeedbackEvent(
            source: .installation("install-\(number)", topic: topic), kind: kind,
            name: kind == .converted ? "played" : "", id: (high: Int64(number), low: Int64(id)), at: at,
            receivedAt: received ?? at)
    }

    /// Returns opens at one hour by the clock of a zone, one on each of the last days.
    private static func opens(_ number: Int, at hour: Int, in zone: String, days: Int, from id: Int = 0) throws
        -> [FeedbackEvent]
    {
        let zone = try #require(TimeZone(identifier: zone))
        return try (0..<days).map { day in
            let date = try #require(WallTime("2027-01-14")).seconds - Int64(day) * 86_400
            let wall = WallTime(seconds: date + Int64(hour) * 3600 + 1_000)
            return opened(number, id: id + day, at: zone.moment(of: wall))
        }
    }

    /// Returns the local hour of a device's turn.
    private static func hour(_ store: any AllRoles, _ device: Int, zone: String) async throws -> Int? {
        let history = try #require(try await store.history(ofDevice: Int64(device), runsMax: 10))
        guard let wave = history.entries.last?.hour?.wave else { return nil }
        let local = try #require(TimeZone(identifier: zone)).wall(at: wave)
        #expect(local.secondOfDay % 3600 == 0 && local.description.hasPrefix("2027-01-17"))
        return Int(local.secondOfDay / 3600)
    }

    private static func add(
        _ store: any AllRoles, _ numbers: ClosedRange<Int>, _ zone: (Int) -> String? = { zones[$0 % 4] }
    ) async throws {
        let records = try numbers.map { number in try record(number) { $0.timeZone = zone(number) } }
        _ = try await store.importDevices(records, now: noon)
    }

    @PromiseList static var bestHours: [Promise] {
        Promise("half of the devices get the push at the hour of their opens, the others at the app's hour") { store in
            try await add(store, 1...80)
            // Devices 61 to 80 have no opens, and device 60 sets the app's hour.
            for number in 1..<60 {
                _ = try await store.recordFeedback(
                    try opens(number, at: 8 + number % 13, in: zones[number % 4], days: 6))
            }
            _ = try await store.recordFeedback(try opens(60, at: 18, in: zones[0], days: 80))
            let definition = try atBestHours()
            let split = CampaignSplit(definition.campaign)
            let waves = try #require(RecipientWaves(definition, startedAt: noon))
            let reach = try await store.reach(of: definition.campaign, budget: nil, waves: waves, now: noon)
            let found = try #require(reach.bestHour)
            #expect(found.usual == BestHour.Choice(hour: 18, basis: .app))
            #expect(found.ownHours == 60 && found.opens == 59 * 6 + 80 && reach.total == 80)
            let run = try await store.startRun(definition)
            for number in 1...80 {
                let ownHour = number == 60 ? 18 : 8 + number % 13
                let expected = number <= 60 && split.getsOwnHour(Int64(number)) ? ownHour : 18
                #expect(try await hour(store, number, zone: zones[number % 4]) == expected, "\(number)")
            }
            // The plan foretells the waves.
            let planned = found.turns.map { "\($0.startsAt.iso8601) \($0.zone ?? "") \($0.count)" }
            let stored = try await store.waves(run).map { "\($0.startsAt.iso8601) \($0.zone ?? "") \($0.deliveries)" }
            #expect(planned.sorted() == stored.sorted())
            #expect(found.turns.map(\.startsAt) == found.turns.map(\.startsAt).sorted())
        }
        Promise("opens count by the quarter of an hour, of the last 90 days, and of what a person does") { store in
            try await add(store, 1...4) { _ in "Europe/Berlin" }
            _ = try await store.importDevices(
                [
                    try record(5, installation: "install-1", topic: "com.example.other") {
                        $0.timeZone = "Europe/Berlin"
                    }
                ],
                now: noon)
            let (nine, twelve) = (
                try opens(1, at: 9, in: "Europe/Berlin", days: 10), try opens(2, at: 12, in: "Europe/Berlin", days: 4)
            )
            var events = nine + twelve
            // The same quarter of an hour again.
            events += try opens(2, at: 12, in: "Europe/Berlin", days: 4, from: 50)
            let old = noon - BestHour.history
            events += (0..<9).map { opened(2, id: 100 + $0, at: old - .seconds(Int64($0) * 7_200 + 1)) }
            events += (0..<9).map { opened(2, id: 200 + $0, at: noon + .seconds(Int64($0) * 3_600)) }
            events += (0..<9).map { opened(2, .converted, id: 300 + $0, at: noon - .seconds(Int64($0) * 86_400 + 9)) }
            events += (0..<9).map {
                opened(2, id: 400 + $0, at: noon - .seconds(Int64($0) * 86_400 + 9), received: noon + .seconds(9))
            }
            // Another app's opens.
            events += (0..<99).map {
                opened(1, id: 500 + $0, at: noon - .seconds(Int64($0) * 80_000), topic: "com.example.other")
            }
            _ = try await store.recordFeedback(events)
            // Each campaign has its own halves.
            for name in ["a", "b", "c", "d", "e", "f"] {
                let definition = try atBestHours(name)
                _ = try await store.startRun(definition)
                for number in 1...4 { #expect(try await hour(store, number, zone: "Europe/Berlin") == 9, "\(number)") }
                let waves = try #require(RecipientWaves(definition, startedAt: noon))
                let reach = try await store.reach(of: definition.campaign, budget: nil, waves: waves, now: noon)
                #expect(reach.bestHour?.ownHours == 1 && reach.bestHour?.opens == 10 + 4)
            }
        }
        Promise("a device without a zone follows unknown_zone, and an app without opens gets the first hour") { store in
            try await add(store, 1...6) { $0 % 2 == 0 ? nil : "Asia/Tokyo" }
            let dropping = try atBestHours("dropping")
            _ = try await store.startRun(dropping)
            for number in 1...6 {
                let found = try await hour(store, number, zone: "Asia/Tokyo")
                #expect(found == (number % 2 == 0 ? nil : 8))
            }
            // Eight opens at 20:00 in Kolkata.
            _ = try await store.recordFeedback(try opens(2, at: 20, in: "Asia/Kolkata", days: 8))
            let definition = try atBestHours("kolkata", unknown: .named("Asia/Kolkata"))
            let waves = try #require(RecipientWaves(definition, startedAt: noon))
            let reach = try await store.reach(of: definition.campaign, budget: nil, waves: waves, now: noon)
            #expect(reach.bestHour?.usual == BestHour.Choice(hour: 20, basis: .app))
            _ = try await store.startRun(definition)
            for number in 1...6 {
                let zone = number % 2 == 0 ? "Asia/Kolkata" : "Asia/Tokyo"
                #expect(try await hour(store, number, zone: zone) == 20)
            }
        }
        Promise("opens beyond one page are all read, also when a page ends within a device") { store in
            try await add(store, 1...5) { _ in "Europe/Berlin" }
            // Far more opens at 10 than at 17, but those at 17 are on different days.
            for number in 1...3 {
                let start = noon - .seconds(80 * 86_400)
                let events = (0..<9_000).map { opened(number, id: $0, at: start + .milliseconds($0 * 700_000)) }
                _ = try await store.recordFeedback(events)
            }
            for number in 1...5 {
                _ = try await store.recordFeedback(
                    try opens(number, at: 8 + number, in: "Europe/Berlin", days: 40, from: 100_000))
            }
            let definition = try atBestHours()
            let waves = try #require(RecipientWaves(definition, startedAt: noon))
            let reach = try await store.reach(of: definition.campaign, budget: nil, waves: waves, now: noon)
            #expect(reach.bestHour?.ownHours == 5)
            _ = try await store.startRun(definition)
            let split = CampaignSplit(definition.campaign)
            for number in 4...5 where split.getsOwnHour(Int64(number)) {
                #expect(try await hour(store, number, zone: "Europe/Berlin") == 8 + number)
            }
            let history = try #require(try await store.history(ofDevice: 3, runsMax: 1))
            #expect(history.entries.last?.hour?.opens.count ?? 0 > 6_000)
        }
        Promise("the halves of a run are compared by its own opens") { store in
            try await add(store, 1...200) { _ in "Europe/Berlin" }
            let definition = try atBestHours()
            let run = try await store.startRun(definition)
            let split = CampaignSplit(definition.campaign)
            let own = (1...200).filter { split.getsOwnHour(Int64($0)) }
            let usual = (1...200).filter { !split.getsOwnHour(Int64($0)) }
            let turn = Timestamp(seconds: try #require(WallTime("2027-01-17T07:00")).seconds)
            let push = { (number: Int, later: Int64) in
                FeedbackEvent(
                    source: .push(run: run, device: Int64(number)), kind: .opened, id: (high: 9, low: Int64(number)),
                    at: turn + .seconds(later), receivedAt: turn + .seconds(later))
            }
            _ = try await store.recordFeedback(
                own.prefix(9).map { push($0, 60) } + usual.prefix(4).map { push($0, 90) } + [push(own[50], 86_400)])
            let goal = FeedbackGoal(kind: .opened, within: .seconds(86_400))
            let arms = try #require(try await store.feedbackArms(ofRun: run, [goal])[goal])
            #expect(arms.ownHour.devices == own.count && arms.ownHour.reached == 9)
            #expect(arms.usualHour.devices == usual.count && arms.usualHour.reached == 4)
            // Opens of another run do not count.
            let later = try await store.startRun(definition, occurrence: "later")
            let others = try #require(try await store.feedbackArms(ofRun: later, [goal])[goal])
            #expect(others.ownHour.reached == 0 && others.usualHour.devices == usual.count)
        }
    }
}
