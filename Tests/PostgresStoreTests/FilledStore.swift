import Campaigns
import Model
import Store
import StoreContract
import Testing

/// A store with something in every table, of random devices and runs in every state.
struct FilledStore {
    private static let budget = Configuration.SilentBudget(limit: 2, window: .seconds(3600))
    private static let oddTexts = [
        "", " ", "Zoë 👩‍👩‍👧", "e\u{301}", "'; DROP TABLE run; --", "\"quoted\"", "back\\slash \\u0000", "a\nb\tc", "\u{7F}",
        "日本語", "%_", "\u{FEFF}x", "ß",
    ]

    private let store: any AllRoles
    private let devices: Int
    private var random: SeededGenerator

    static func fill(_ store: any AllRoles, devices: Int, seed: UInt64) async throws {
        var filled = FilledStore(store: store, devices: devices, random: SeededGenerator(seed: seed))
        try await filled.fill()
    }

    private mutating func fill() async throws {
        try await fillDevices()
        try await fillSegments()
        try await fillBesides()
        let change = PendingChange(
            kind: "campaign", name: "spring", text: "campaign: spring\n", hash: "0", base: nil, author: "anna",
            askedAt: noon)
        _ = try await store.holdChanges([TextToHold(change: change, known: nil, detail: "campaign spring")], most: 9)
        _ = try await store.savePlan(
            SavedPlan(
                file: "spring", occurrence: "the-reef", isScheduled: false, token: nil, digest: "d",
                definition: try definition("spring"), shown: "{}", madeAt: noon, madeBy: "anna",
                maker: "token:anna"))
        let values = OccurrenceValues(
            campaign: "spring", occurrence: "2026-12-04T18:00", startsAt: noon + .seconds(3600),
            variables: ["title": "The Reef"], givenAt: noon, givenBy: "anna", giver: "token:anna")
        _ = try await store.giveValues(values, by: "anna")
        for name in ["finished", "paused", "running"] { try await send(name) }
        try await endOtherRuns()
        for number in 0..<2 { try await sendSilently("silent-\(number)") }
        try await sendInStages()
        try await report()
        for number in 0..<2 { try await sendCapped("capped-\(number)") }
        try await sendApproved()
        _ = try await store.createTestRun(
            try definition("test"), occurrence: "t", device: 1, variant: nil, now: noon, by: "tester")
        _ = try await store.pruneOutcomes(finishedBefore: noon + .seconds(5), dryRun: false, now: noon + .seconds(90))
        // The highest number of all is given away to nobody else.
        _ = try await store.removeDevice(Int64(devices), now: noon + .seconds(100), by: "remover")
    }

    /// Reports of apps about pushes and people.
    private func report() async throws {
        let runs = try await store.runs(limit: 10).map(\.id)
        var events = runs.flatMap { run in
            (1...5).map { device in
                FeedbackEvent(
                    source: .push(run: run, device: device), kind: .opened, id: (high: 0, low: 0),
                    at: noon + .seconds(60 * device), receivedAt: noon + .seconds(60 * device))
            }
        }
        events += (1...9).map { number in
            FeedbackEvent(
                source: .push(run: runs.last ?? 1, device: number), kind: .action, name: "speichern “ж”",
                id: (high: .min, low: number), valueMicros: -number, at: noon, receivedAt: noon + .seconds(number))
        }
        #expect(try await store.recordFeedback(events).contains(.recorded))
        #expect(try await store.removeFeedback(receivedBefore: noon + .seconds(2), now: noon + .seconds(99)) == 1)
        var secrets = 0
        for device in 1...9 {
            let hash = [UInt8](repeating: UInt8(device), count: 32)
            if try await store.setInstallationSecret(hash: hash, of: Int64(device), now: noon) { secrets += 1 }
        }
        #expect(secrets > 0)
    }

    private mutating func odd() -> String? {
        Int.random(in: 0..<3, using: &random) == 0 ? nil : Self.oddTexts.randomElement(using: &random)
    }

    private mutating func fillDevices() async throws {
        var records: [DeviceRecord] = []
        for number in 1...devices {
            var record = try record(number, installation: "install-\(number)\(odd() ?? "")")
            record.environment = number % 5 == 0 ? .sandbox : .production
            record.topic = number % 11 == 0 ? "com.example.other" : wendercast
            record.userID = odd()
            record.locale = ["en", "de-AT", "zh-Hant-HK", nil].randomElement(using: &random) ?? nil
            record.timeZone = ["Europe/Berlin", "America/Sao_Paulo", nil].randomElement(using: &random) ?? nil
            record.country = odd()
            record.appVersion = ["4.2", "4.10.1", "odd", nil].randomElement(using: &random) ?? nil
            record.osVersion = ["17.1", nil].randomElement(using: &random) ?? nil
            record.model = odd()
            record.alertsAllowed = [true, false, nil].randomElement(using: &random) ?? nil
            record.registeredAt = number % 3 == 0 ? nil : noon - .seconds(Int64(number) * 1000)
            record.lastSeenAt = number % 4 == 0 ? nil : noon - .seconds(Int64(number))
            record.tags = number % 2 == 0 ? ["beta", "tag-\(number % 7)"] : nil
            record.attributes = number % 3 == 0 ? ["plan": odd() ?? "pro", "ключ \"x\"": "\(number)", "aa": "b"] : nil
            records.append(record)
        }
        _ = try await store.importDevices(records, now: noon)
        // New tokens for some, and one that goes from one device to another.
        let renewed = try (1...max(2, devices / 10)).map { number in
            try record(devices + number, installation: records[number - 1].installationID)
        }
        _ = try await store.importDevices(renewed, now: noon + .seconds(1))
    }

    private func fillSegments() async throws {
        let fans = try await store.importSegment("fans ❤️", mode: .replace)
        try await fans.append((1...devices).filter { $0 % 3 == 1 }.map { .token(try token($0)) })
        _ = try await fans.commit(now: noon)
        try await store.defineSegment("beta", source: "tag(\"beta\")", expression: .tag("beta"), now: noon)
    }

    private func fillBesides() async throws {
        try await store.setScheduleMarks([ScheduleMark(campaign: "finished", scheduleHash: -5, since: noon)])
        let feed = FeedState(
            url: "https://example.com/feed", etag: "\"1\"", polledAt: noon, isRead: false, problem: "late")
        _ = try await store.recordFeedPoll(campaign: "fed", feed, seen: ["b", "a"], after: nil)
        try await store.setWebhooks([
            Configuration.Webhook(
                url: "https://example.com/hook", secretPath: "/etc/secret", events: Configuration.Webhook.Event.allCases
            )
        ])
        let key = ProviderKey(teamID: "DEF123GHIJ", keyID: "ABC123DEFG", fingerprint: "00ff")
        _ = try await store.replaceProviderToken(
            nil,
            with: StoredProviderToken(
                token: "bearer x", signedAt: noon, heldUntil: noon + .seconds(1200), bootID: "b",
                sinceBoot: .seconds(9)), of: key)
        let token = try await store.createAccessToken(
            AccessToken(
                id: 0, name: "anna", role: .sender, topic: nil, createdAt: noon, createdBy: "amy", expiresAt: nil,
                revokedAt: nil, lastUsedAt: nil), secretHash: String(repeating: "0", count: 64), by: "amy")
        _ = try await store.createSession(
            WebSession(
                name: "anna", role: .sender, topic: nil, token: token.id, createdAt: noon,
                expiresAt: noon + .seconds(60), endsAt: noon + .seconds(100)),
            secretHash: String(repeating: "1", count: 64), by: "amy")
        for (time, set) in [(0, 0), (60, 7200)] as [(Int64, Int64)] {
            let reading = ClockReading(
                wall: noon + .seconds(time + set), uptime: .seconds(1000 + time), boot: "b")
            _ = try await store.noteClocks(reading, by: "clock")
        }
        try await store.recordEvent(
            kind: .filesRead, run: nil, actor: Actor("odd 'actor'"), detail: "it's \"odd\" — ünï\nline",
            files: ["/a": "00"],
            now: noon)
    }

    /// A run of which much has been settled: to its end, or given up in another state.
    private mutating func send(_ name: String) async throws {
        let run = try await store.startRun(try definition(name), occurrence: name)
        for environment in PushEnvironment.allCases {
            var cursor: Int64 = 0
            while true {
                let lease = try await store.lease(run, after: cursor, limit: 40, environment: environment)
                guard !lease.deliveries.isEmpty else { break }
                cursor = lease.cursor
                _ = try await store.settle(
                    run: run, outcomes(of: lease, isLast: name == "finished"), now: noon + .seconds(1))
                if name != "finished" { break }
            }
        }
        switch name {
        case "finished": try await store.release(run, by: "a", state: .finished, reason: nil, now: noon + .seconds(10))
        case "paused":
            try await store.release(
                run, by: "a", state: .paused, reason: "unreachable", halt: .unreachable, now: noon + .seconds(10))
        default: try await store.release(run, by: "a", state: .running, reason: nil, now: noon + .seconds(10))
        }
    }

    private mutating func outcomes(of lease: Lease, isLast: Bool) -> [Settlement] {
        lease.settlements(.accepted).map { accepted in
            var settlement = accepted
            settlement.localeIndex = Bool.random(using: &random) ? 1 : nil
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                settlement.verdict = .rejected
                settlement.status = 410
                settlement.reason = "Unregistered"
                settlement.effect = .gone(since: noon)
            case 1:
                settlement.verdict = .unknown
                settlement.status = 0
                settlement.reason = "deadline"
            case 2 where !isLast:
                settlement.verdict = .retry(notBefore: noon + .seconds(60))
                settlement.status = 503
                settlement.reason = "Shutdown"
            default: break
            }
            return settlement
        }
    }

    private func endOtherRuns() async throws {
        _ = try await store.createRun(try definition("scheduled"), occurrence: "s", now: noon, by: "a")
        let cancelled = try await store.startRun(try definition("cancelled"), occurrence: "c")
        _ = try await store.change(cancelled, to: .cancelled, reason: "wrong", now: noon, by: "ben")
        try await store.release(cancelled, by: "a", state: .cancelled, reason: nil, now: noon + .seconds(2))
        for (state, name) in [(.missed, "missed"), (.failed, "failed")] as [(RunState, String)] {
            _ = try await store.createEndedRun(
                try definition(name), occurrence: name, state: state, reason: "too late", now: noon, by: "a")
        }
    }

    /// A run whose first stage is under way.
    private mutating func sendInStages() async throws {
        let stages = [Stage(.share(50), hold: .seconds(60)), Stage(.rest, needsApproval: true)]
        let run = try await store.startRun(try definition("staged") { $0.stages = stages })
        var request = LeaseRequest(run: run, environment: .production, limit: 6, now: noon, owner: "a")
        request.stages = 2
        let lease = try await store.lease(request)
        _ = try await store.settle(run: run, outcomes(of: lease, isLast: false), now: noon + .seconds(1))
        try await store.release(run, by: "a", state: .running, reason: nil, now: noon + .seconds(10))
    }

    /// A plan that was signed and sent, one that waits, and one that was withdrawn.
    private func sendApproved() async throws {
        for name in ["approved", "waiting", "withdrawn"] {
            let request = ApprovalRequest(
                definition: try definition(name), occurrence: "", plan: "p1-\(name)", digest: name, reach: devices,
                needs: 1, authors: ["os:carl"], askedBy: "os:carl", askedAt: noon + .seconds(70),
                note: "for \(name) \u{1F58B}")
            let asked = try await store.requestApproval(request, isAnew: false, by: "carl").request
            let signature = ApprovalSignature(
                identity: "os:anna", name: "anna \u{1F58B}", signedAt: noon + .seconds(71), reach: devices,
                reason: Self.oddTexts[1])
            _ = try await store.sign(asked.id, signature, by: "anna")
            if name == "withdrawn" {
                _ = try await store.withdrawApproval(asked.id, by: "carl", now: noon + .seconds(72))
            }
            guard name == "approved" else { continue }
            let policy = ApprovalPolicy(rule: .init(above: 0, needs: 1), reach: devices, authors: [])
            let demand = ApprovalDemand(policy: policy, people: People(), request: asked)
            _ = try await store.createApprovedRun(
                asked.definition, occurrence: name, now: noon + .seconds(72), by: "carl", notes: [], files: [:],
                demand: demand)
        }
    }

    /// The second finds some without a slot.
    private func sendCapped(_ name: String) async throws {
        let run = try await store.startRun(try definition(name))
        var request = LeaseRequest(run: run, environment: .production, limit: 100, now: noon, owner: "a")
        let caps = [FrequencyCap(limit: 1, window: .seconds(3600), per: .user)]
        request.caps = CapRequest(
            rule: CapRule(topic: wendercast, pushClass: FrequencyCap.usualClass, caps: caps),
            latest: Expiry(plannedAt: noon, after: .seconds(86_400)))
        let lease = try await store.lease(request)
        _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon + .seconds(1))
        try await store.release(run, by: "a", state: .running, reason: nil, now: noon + .seconds(10))
    }

    private func sendSilently(_ name: String) async throws {
        let run = try await store.startRun(try definition(name, pushType: .background))
        let lease = try await store.lease(
            LeaseRequest(
                run: run, environment: .production, limit: 100, now: noon, owner: "a", silentBudget: Self.budget))
        _ = try await store.settle(run: run, lease.settlements(.accepted), now: noon + .seconds(1))
        try await store.release(run, by: "a", state: .running, reason: nil, now: noon + .seconds(10))
    }
}

/// All that a person can ask a store, as text: equal stores say the same.
struct StoreFacts {
    static func of(_ store: any AllRoles) async throws -> [String] {
        var facts: [String] = []
        for run in try await store.runs(limit: 1000, includingTests: true) {
            facts.append("\(run)")
            facts.append(try ResultJSON.text(ReportResult(try await store.report(run.id), nobodyReached: nil)))
            facts.append("\(try await store.check(run.id)) \(try await store.timeline(run.id))")
            facts.append("\(try await store.stages(of: run.id))")
            facts.append("\(try await store.waves(run.id)) \(try await store.waits(of: run.id, now: noon).groups)")
            let rows = Collected<OutcomeRow>()
            do { _ = try await store.outcomes(run: run.id) { rows.add($0) } } catch let error as StoreError {
                facts.append("\(error)")
            }
            facts += rows.all.map { "\($0)" }
        }
        let devices = Collected<StoredDevice>()
        for topic in try await store.topics().sorted() {
            _ = try await store.exportDevices(topic: topic, matching: .everyone, now: noon) { devices.add($0) }
        }
        let explain = ExplainDevice(store: store, app: { _ in nil })
        for device in devices.all {
            facts.append(try ResultJSON.text(try await explain.explain(device.id, now: noon).result))
        }
        facts += try await store.events(run: nil, since: nil, limit: 10_000)
            .map { try ResultJSON.text(EventResult($0)) }
        facts.append("\(try await store.segments(now: noon)) \(try await store.accessTokens())")
        facts.append(
            "\(try await store.scheduleMarks()) \(String(describing: try await store.feedState(campaign: "fed")))")
        facts.append("\(try await store.clockSteps(since: noon - .seconds(90_000)))")
        facts.append("\(try await store.verifyLedger(Configuration.SilentBudget(limit: 2, window: .seconds(3600))))")
        facts.append("\(store.namespace)")
        return facts
    }

    /// What `verify` finds wrong.
    static func faults(of store: any AllRoles) async throws -> [String] {
        try await store.verify(budgets: [:]).checks.filter { $0.faultCount > 0 }.map { "\($0)" }
    }
}
