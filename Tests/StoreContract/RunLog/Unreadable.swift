import Model
import Store
import Testing

/// Rows that this version cannot read, since they are damaged or a newer version wrote them.
extension RunLogContract {
    private static let campaign = "podcast"

    private enum Damage: String, CaseIterable {
        case noJSON = "no JSON"
        case keyMissing = "a key that is missing"
        case newerWord = "a word of a newer version"

        var sql: String {
            switch self {
            case .noJSON: "'{'"
            case .keyMissing: "'{}'"
            case .newerWord: #"replace(definition, '"alert"', '"hologram"')"#
            }
        }
    }

    /// Three runs of one campaign.
    private static func three(
        _ store: any AllRoles, each change: (Int64) async throws -> Void = { _ in }
    ) async throws -> [Int64] {
        _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
        var ids: [Int64] = []
        for number in 1...3 {
            let made = try await store.createRun(
                try definition(campaign), occurrence: "item-\(number)", now: noon, by: "test")
            try await change(made.run.id)
            ids.append(made.run.id)
        }
        return ids
    }

    private static func spoil(_ run: Int64, in stores: StoreUnderTest, _ damage: Damage = .noJSON) async throws {
        try await stores.damage("UPDATE run SET definition = \(damage.sql) WHERE id = \(run)")
    }

    private static func finish(_ run: Int64, _ store: any AllRoles) async throws {
        #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
        _ = try await store.freeze(run, by: "a", now: noon) { _ in }
        _ = try await store.settle(run: run, try await store.lease(run).settlements(.accepted), now: noon)
        try await store.release(run, by: "a", state: .finished, reason: nil, now: noon)
    }

    @PromiseList static var unreadable: [Promise] {
        Promise.each(Damage.allCases, { "lists leave out a run with \($0.rawValue), and it alone" }, opening: readings)
        Promise(
            "what is halted or left behind is found beside a run that cannot be read",
            opening: { stores in
                let store = try await stores.open()
                let halted = try await three(store) { run in
                    #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
                    try await store.release(run, by: "a", state: .paused, reason: "odd", halt: .breaker, now: noon)
                }
                try await spoil(halted[0], in: stores)
                #expect(try await store.haltedRuns().map(\.id) == [halted[1], halted[2]])
                for run in halted.dropFirst() {
                    try await store.change(run, to: .cancelled, reason: nil, now: noon, by: "amy")
                }
                let late = try await stores.open { _ in false }
                #expect(try await late.abandonedRuns().isEmpty)
                let left = try await store.createRun(try definition("other"), occurrence: "1", now: noon, by: "amy").run
                    .id
                let odd = try await store.createRun(try definition("other"), occurrence: "2", now: noon, by: "amy").run
                    .id
                for run in [left, odd] { #expect(try await store.claim(run, by: "a", now: noon) == .claimed) }
                try await spoil(odd, in: stores)
                #expect(try await late.abandonedRuns().map(\.id) == [left])
                #expect(try await late.openRuns(for: "b", inHand: []).map(\.id) == [left])
            })
        Promise(
            "outcomes are pruned, told and verified beside a run that cannot be read",
            opening: { stores in
                let store = try await stores.open()
                let runs = try await three(store) { try await finish($0, store) }
                try await spoil(runs[2], in: stores)
                #expect(try await store.latestRun(campaign: campaign, state: .finished)?.id == runs[1])
                #expect(try await store.history(ofDevice: 1)?.entries.map(\.run.id) == [runs[0], runs[1]])
                let faults = try await store.verify(budgets: [:]).checks.flatMap(\.faults)
                #expect(!faults.isEmpty)
                let counts = try await store.pruneOutcomes(
                    finishedBefore: noon + .seconds(60), dryRun: false, now: noon + .seconds(120))
                #expect(counts.runs == 3 && counts.kept == 0)
                #expect(try await store.history(ofDevice: 1)?.entries.map(\.run.id) == [runs[0], runs[1]])
            })
        Promise(
            "a damaged segment concerns only the campaigns that name it",
            opening: { stores in
                let store = try await stores.open()
                _ = try await store.importDevices(try (1...2).map { try record($0) }, now: noon)
                for name in ["good", "odd"] {
                    try await store.defineSegment(
                        name, source: name, expression: .comparison(.country, .equal, .text("DE")), now: noon)
                }
                try await stores.damage("UPDATE segment SET expression = '{' WHERE name = 'odd'")
                #expect(try await store.segments(now: noon).map(\.name) == ["good", "odd"])
                let good = try definition(audience: .segment("good")).campaign
                #expect(try await store.segmentContents(of: good).expressions == ["good": "good"])
                let odd = try definition(audience: .segment("odd")).campaign
                await #expect(throws: StoreError.self) { _ = try await store.segmentContents(of: odd) }
            })
        Promise(
            "a damaged token, plan, event or status hides no other",
            opening: { stores in
                let store = try await stores.open()
                try await refuseOnlyTheDamaged(stores, store)
            })
    }

    private static func readings(_ stores: StoreUnderTest, _ damage: Damage) async throws {
        let store = try await stores.open()
        let ids = try await three(store)
        for bad in ids {
            try await stores.damage("CREATE TABLE kept AS SELECT definition FROM run WHERE id = \(bad)")
            try await spoil(bad, in: stores, damage)
            let others = ids.filter { $0 != bad }
            #expect(try await store.openRuns(for: "b", inHand: []).map(\.id) == others)
            #expect(try await store.openFeedRuns(campaign: campaign).map(\.id) == others)
            #expect(try await store.runs(limit: 2).map(\.id) == others.reversed())
            let all = try await store.runs(RunFilter(), before: nil, limit: 2)
            #expect(all.map(\.id) == others.reversed())
            #expect(try await store.runs(RunFilter(), before: others[1], limit: 1).map(\.id) == [others[0]])
            let listed = try await store.listedRuns(RunFilter(), before: nil, limit: 3)
            #expect(listed.map(\.id) == ids.reversed() && listed.unreadable.map(\.run) == [bad])
            #expect(try await store.listedRuns(RunFilter(), before: ids[1], limit: 3).map(\.id) == [ids[0]])
            #expect(try await store.latestRun(campaign: campaign)?.id == others[1])
            let unfinished = try await store.unfinishedRuns(campaign: campaign, occurrencePrefix: "item-")
            #expect(unfinished.map(\.id) == others)
            let found = try await store.unreadableRuns()
            #expect(found.map(\.run) == [bad] && found[0].campaign == campaign && found[0].state == "scheduled")
            #expect(!found[0].reason.isEmpty)
            #expect(try await store.observation(now: noon).unreadableRuns == 1)
            await #expect(throws: found[0].error) { _ = try await store.run(bad) }
            #expect(try await store.openRuns(for: "b", inHand: Set(others)).isEmpty)
            try await stores.damage("UPDATE run SET definition = (SELECT definition FROM kept) WHERE id = \(bad)")
            try await stores.damage("DROP TABLE kept")
            #expect(try await store.unreadableRuns().isEmpty)
        }
    }

    private static func refuseOnlyTheDamaged(_ stores: StoreUnderTest, _ store: any AllRoles) async throws {
        func hash(_ number: Int) -> String { String(repeating: "0", count: 63) + "\(number)" }
        for (index, name) in ["odd", "good"].enumerated() {
            _ = try await store.createAccessToken(
                AccessToken(
                    id: 0, name: name, role: .viewer, topic: nil, createdAt: noon, createdBy: "amy", expiresAt: nil,
                    revokedAt: nil, lastUsedAt: nil), secretHash: hash(index), by: "amy")
            _ = try await store.requestApproval(
                ApprovalRequest(
                    definition: try definition(), occurrence: "", plan: name, digest: name, reach: 100, needs: 2,
                    authors: ["os:carl"], askedBy: "os:carl", askedAt: noon), isAnew: false, by: "carl")
        }
        try await stores.damage("UPDATE access_token SET role = 'emperor' WHERE name = 'odd'")
        #expect(try await store.accessTokens().map(\.name) == ["good"])
        await #expect(throws: StoreError.self) { _ = try await store.accessToken(secretHash: hash(0)) }
        try await stores.damage("UPDATE approval SET definition = '{' WHERE plan = 'odd'")
        #expect(try await store.approvals(in: nil, limit: 9).map(\.request.plan) == ["good"])
        #expect(try await store.openApprovals(startingWith: "", limit: 9).map(\.request.plan) == ["good"])
        try await store.recordEvent(
            kind: .runCreated, run: nil, actor: "amy", detail: "odd", files: ["a": "b"], now: noon)
        try await stores.damage("UPDATE event SET files = '{' WHERE detail = 'odd'")
        let events = try await store.events(run: nil, since: nil, limit: 99)
        #expect(events.last?.detail == "odd" && events.last?.files == [:])
        #expect(try await store.becomeDaemon(owner: "a", now: noon) == nil)
        try await stores.damage("UPDATE daemon SET status = '{' WHERE owner = 'a'")
        #expect(try await store.daemon()?.owner == "a")
    }
}
