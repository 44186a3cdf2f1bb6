import Model
import Store
import Testing

/// Runs with `dedupe: user`.
extension DeliveryQueueContract {
    @PromiseList static var oneForAUser: [Promise] {
        Promise("of a user's devices the one heard of last gets it, whoever has no user gets it on each") { store in
            try await store.importDevices([
                ("ray", [noon - .seconds(9), noon - .seconds(5), noon - .seconds(7)]), ("eve", [nil, nil]),
                (nil, [nil, noon]), ("", [noon, noon]), ("sam", [noon]),
            ])
            let definition = try once()
            let run = try await store.startRun(definition)
            // Equals go by who was there first.
            #expect(try await store.sent(run) == [2, 4, 6, 7, 8, 9, 10])
            let report = try await store.report(run)
            #expect(report.suppressed.map(\.reason) == ["duplicate_of_user"] && report.suppressed[0].count == 3)
            try await store.expectSumsClose(run)
            let reach = try await store.reach(of: definition.campaign, budget: nil, now: noon)
            #expect(reach.total == 7 && reach.suppressed == [.duplicateOfUser: 3])
            #expect(reach.byZone.reduce(0) { $0 + $1.count } == 7)
            #expect(try await store.verify(budgets: [:]).isSound)
            #expect(try await store.sent(try await store.startRun(try plain())) == Array(1...10))
        }
        Promise("a device that would not be sent to takes nothing from the others of its user") { store in
            let records = [
                try record(1) { ($0.userID, $0.lastSeenAt) = ("ray", noon - .seconds(9)) },
                try record(2) { ($0.userID, $0.lastSeenAt, $0.alertsAllowed) = ("ray", noon, false) },
                try record(3, environment: .sandbox) { ($0.userID, $0.lastSeenAt) = ("eve", noon) },
                try record(4) { ($0.userID, $0.lastSeenAt) = ("eve", noon - .seconds(1)) },
                try record(5, topic: "other") { ($0.userID, $0.lastSeenAt) = ("ray", noon) },
                try record(6) { ($0.userID, $0.lastSeenAt, $0.country) = ("ray", noon, "FR") },
            ]
            _ = try await store.importDevices(records, now: noon)
            let german = AudienceExpression.not(.comparison(.country, .equal, .text("FR")))
            let run = try await store.startRun(try once(german))
            #expect(try await store.sent(run) == [1, 3])
        }
        Promise("a zone whose time is over leaves the copy to another device of the user") { store in
            let zones = ["Asia/Tokyo", "America/New_York", "Asia/Tokyo"]
            let records = try zones.enumerated().map { number, zone in
                try record(number + 1) {
                    $0.userID = number == 2 ? "eve" : "ray"
                    $0.timeZone = zone
                    $0.lastSeenAt = noon - .seconds(Int64(number))
                }
            }
            _ = try await store.importDevices(records, now: noon)
            var definition = try once()
            var schedule = Schedule(trigger: .at("2027-01-15T09:00"))
            schedule.zone = .recipient
            schedule.unknownZone = .drop
            schedule.missedZone = .drop
            definition.campaign.schedule = schedule
            definition.wall = WallTime("2027-01-15T09:00")
            let run = try await store.startRun(definition)
            #expect(try await store.sent(run) == [2])
            #expect(try await store.report(run).suppressed.map(\.reason) == ["late"])
        }
        Promise("a seed is the device of its user, whatever was seen since") { store in
            try await store.importDevices([("ray", [noon - .seconds(9), noon]), ("eve", [noon, noon])])
            var definition = try once()
            let seed = AudienceExpression.comparison(.installationID, .equal, .text("install-1"))
            definition.campaign.stages = [Stage(.seeds(seed)), Stage(.rest)]
            let reach = try await store.reach(of: definition.campaign, budget: nil, now: noon)
            #expect(reach.stages.map(\.count) == [1, 1])
            let run = try await store.startRun(definition)
            #expect(try await store.sent(run) == [1, 3])
            #expect(try await store.stages(of: run).map(\.size) == [1, 1])
        }
        Promise("a user is held out on all devices or on none, and has one variant on whichever is the last") { store in
            let users = (0..<400).map { ("user-\($0)", [noon - .seconds(50), noon - .seconds(55)]) }
            try await store.importDevices(users)
            var definition = try split()
            definition.campaign.dedupe = .user
            let reach = try await store.reach(of: definition.campaign, budget: nil, now: noon)
            let run = try await store.startRun(definition)
            let before = try await store.rows(run)
            #expect(before.count { $0.reason == "holdout" } == reach.holdout && reach.holdout % 2 == 0)
            #expect((20...160).contains(reach.holdout))
            #expect(
                before.count { $0.state == .pending } == 400 - reach.holdout / 2
                    && reach.total == 400 - reach.holdout / 2)
            #expect(reach.byVariant.allSatisfy { $0 > 100 })
            // The other device of each was seen since.
            try await store.importDevices((0..<400).map { ("user-\($0)", [noon - .seconds(50), noon]) })
            let again = try await store.rows(try await store.startRun(definition, occurrence: "2"))
            for (first, second) in zip(before, before.dropFirst()) where first.device % 2 == 1 {
                let (one, two) = (again[Int(first.device) - 1], again[Int(second.device) - 1])
                #expect((first.reason == "holdout") == (two.reason == "holdout"))
                #expect((first.reason == "holdout") == (one.reason == "holdout"))
                guard first.state == .pending else { continue }
                #expect(two.state == .pending && one.state == .suppressed && two.variant == first.variant)
            }
        }
        Promise("a freeze that is taken up again gives nobody a second copy, whatever was seen meanwhile") { store in
            // Each of 15,000 has a device in the first half and another one in the second.
            let half = 15_000
            let records = try (0..<2 * half).map { number in
                try record(number) {
                    $0.userID = "user-\(number % half)"
                    $0.lastSeenAt = noon - .seconds(number % 7 == 0 ? 100 : 1)
                    $0.country = "DE"
                }
            }
            try await store.importInBatches(records)
            let german = AudienceExpression.comparison(.country, .equal, .text("DE"))
            let run = try await store.createRun(try once(german), occurrence: "x", now: noon, by: "test").run.id
            try await store.beginFreeze(run)
            let written = try await store.rows(run)
            try #require(written.count >= 2_000 && written.count < 2 * half)
            // Some of what was written leaves the audience, and others were seen since.
            let changed = try (0..<2 * half).map { number in
                try record(number) {
                    $0.lastSeenAt = noon - .milliseconds(number % 3 == 0 ? 1 : 2)
                    $0.country = number % 5 == 0 && number < min(written.count, half) ? "FR" : "DE"
                }
            }
            try await store.importInBatches(changed)
            _ = try await store.freeze(run, now: noon) { _ in }
            let rows = try await store.rows(run)
            #expect(rows.count == 2 * half && Array(rows.prefix(written.count)) == written)
            let copies = Dictionary(grouping: rows.filter { $0.state == .pending }) { ($0.device - 1) % Int64(half) }
            #expect(copies.count == half && copies.values.allSatisfy { $0.count == 1 })
            try await store.expectSumsClose(run)
        }
        Promise.each(1...6, { "everybody who would get something gets exactly one, on the device seen last: \($0)" }) {
            store, seed in
            var random = SeededGenerator(seed: UInt64(seed))
            let records = try (1...1_500).map { try someDevice($0, &random) }
            _ = try await store.importDevices(records, now: noon)
            var (each, single) = (try plain(), try once())
            if seed % 2 == 0 {
                let stages = [
                    Stage(.seeds(.comparison(.country, .equal, .text("DE")))), Stage(.share(10)), Stage(.rest),
                ]
                each.campaign.stages = stages
                single.campaign.stages = stages
            }
            let all = Set(try await store.sent(try await store.startRun(each)))
            let run = try await store.startRun(single)
            let sent = try await store.sent(run)
            let reach = try await store.reach(of: single.campaign, budget: nil, now: noon)
            #expect(reach.total == sent.count && sent.count < all.count)
            var expected: [Int64] = []
            var best: [String: (rank: (Int, Int64, Int64), device: Int64)] = [:]
            for (index, record) in records.enumerated() where all.contains(Int64(index + 1)) {
                let device = Int64(index + 1)
                guard let user = record.userID, !user.isEmpty else {
                    expected.append(device)
                    continue
                }
                // Where nobody said, the import counts as the moment.
                let seen = [record.lastSeenAt, record.registeredAt].compactMap(\.self).max() ?? noon
                let isSeed = seed % 2 == 0 && record.country == "DE"
                let rank = (isSeed ? 0 : 1, -seen.milliseconds, device)
                if let known = best[user], known.rank < rank { continue }
                best[user] = (rank, device)
            }
            expected += best.values.map(\.device)
            #expect(sent == expected.sorted())
            let rows = try await store.rows(run)
            #expect(rows.count { $0.reason == "duplicate_of_user" } == all.count - sent.count)
            try await store.expectSumsClose(run)
        }
    }

    private static func once(_ audience: AudienceExpression = .everyone) throws -> RunDefinition {
        try definition("once", audience: audience) { $0.dedupe = .user }
    }

    private static func plain() throws -> RunDefinition { try definition("all") }

    private static func someDevice(_ number: Int, _ random: inout SeededGenerator) throws -> DeviceRecord {
        let environment: PushEnvironment = Bool.random(using: &random) ? .production : .sandbox
        return try record(number, environment: environment) { record in
            record.userID =
                [nil, "", "user-\(Int.random(in: 0..<400, using: &random))"].randomElement(using: &random) ?? nil
            record.alertsAllowed = [true, true, false, nil].randomElement(using: &random) ?? nil
            record.country = ["DE", "FR", "BR", "US", nil].randomElement(using: &random) ?? nil
            // Few different moments, so that many are equal.
            let moments = (0..<4).map { noon - .seconds($0) }
            record.lastSeenAt = Bool.random(using: &random) ? moments.randomElement(using: &random) : nil
            record.registeredAt = Bool.random(using: &random) ? moments.randomElement(using: &random) : nil
        }
    }
}

extension DeviceRegistry where Self: OutcomeReader {
    /// The devices of each user, by when they were last seen; numbered from 1 in this order.
    fileprivate func importDevices(_ users: [(user: String?, seen: [Timestamp?])]) async throws {
        var records: [DeviceRecord] = []
        for (user, seen) in users {
            for moment in seen {
                records.append(
                    try record(records.count + 1) {
                        $0.userID = user
                        $0.lastSeenAt = moment
                        $0.registeredAt = noon - .seconds(1_000)
                    })
            }
        }
        _ = try await importDevices(records, now: noon)
    }
}

extension OutcomeReader {
    /// In order of device.
    fileprivate func rows(_ run: Int64) async throws -> [OutcomeRow] {
        let rows = Collected<OutcomeRow>()
        _ = try await outcomes(run: run) { rows.add($0) }
        return rows.all.sorted { $0.device < $1.device }
    }

    /// The devices that are to be sent to, in order.
    fileprivate func sent(_ run: Int64) async throws -> [Int64] {
        try await rows(run).filter { $0.state == .pending }.map(\.device)
    }
}
