import Campaigns
import Daemon
import Model
import SQLiteStore
import Sending
import SendingScene
import Store
import TestSupport
import Testing

/// What is due becomes runs.
@Suite(.timeLimit(.minutes(10))) struct `Due runs` {
    private static func moment(_ text: String) throws -> Timestamp {
        Timestamp(seconds: try #require(WallTime(text)).seconds)
    }

    /// Nine o'clock in Berlin is eight in UTC then.
    private func campaign(
        _ name: String = "c", _ trigger: Schedule.Trigger = .cron("0 9 * * *"), changedAt: String,
        lateByMax: Duration? = .seconds(7200), change: (inout Campaign) -> Void = { _ in }
    ) throws -> ReadyCampaign {
        var campaign = Campaign(name: name, topic: PipelineScene.topic, pushType: .background, template: "t")
        var schedule = Schedule(trigger: trigger)
        schedule.zone = .named("Europe/Berlin")
        schedule.lateByMax = lateByMax
        campaign.schedule = schedule
        change(&campaign)
        return ReadyCampaign(
            campaign: campaign, template: Template(name: "t"), changedAt: try Self.moment(changedAt))
    }

    @Test func `becomes one run, missed or failed with the reason where it cannot be sent`() async throws {
        let scene = try PipelineScene()
        let due = DueRuns(store: scene.store, actor: "daemon")
        let now = try Self.moment("2026-12-01T09:00")
        let files = try [
            campaign("fine", changedAt: "2026-12-01T07:00"),
            campaign("late", .at("2026-12-01T05:00"), changedAt: "2026-12-01T07:00"),
            campaign("guarded", changedAt: "2026-12-01T07:00") { $0.guards.minReach = 5 },
        ]
        var agenda = Agenda()
        _ = agenda.update(files, marks: [:], now: now)
        let entries = agenda.due(at: now)
        let made = try await due.make(entries, now: now)
        #expect(try await due.make(entries, now: now).isEmpty)
        let runs = try await scene.store.runs(limit: 10)
        #expect(
            Dictionary(uniqueKeysWithValues: runs.map { ($0.campaign, $0.state) }) == [
                "fine": .scheduled, "late": .missed, "guarded": .failed,
            ])
        #expect(runs.first { $0.campaign == "late" }?.stateReason == "found 5h after its time; late_by_max is 2h")
        #expect(runs.first { $0.campaign == "late" }?.finishedAt == now)
        #expect(made.map(\.due.campaign.campaign.name) == ["late", "fine", "guarded"])
        #expect(
            try await scene.store.openRuns(for: "me", inHand: []).map(\.campaign) == ["fine"]
        )
    }

    /// The backup is from before the campaigns were written, so that it holds no marks of their schedules.
    @Test(arguments: [Schedule.Trigger.cron("0 9 * * *"), .at("2026-12-01T09:00")])
    func `is not sent again after a restore of a backup from before its run`(trigger: Schedule.Trigger) async throws {
        let scene = try PipelineScene()
        let now = try Self.moment("2026-12-01T08:00")
        let files = [try campaign("news", trigger, changedAt: "2026-12-01T07:00")]
        var agenda = Agenda()
        let marks = agenda.update(files, marks: [:], now: now)
        let folder = try TemporaryDirectory()
        let copy = folder.file("copy.sqlite")
        _ = try await scene.store.backUp(to: copy, overwriting: false)
        #expect(!marks.isEmpty)
        let sent = try await DueRuns(store: scene.store, actor: "daemon").make(agenda.due(at: now), now: now)
        #expect(sent.count == 1 && sent.first?.made.run?.state == .scheduled)
        let later = now + .seconds(1800)
        let restored = try SQLiteFileStore(path: copy, now: { later })
        var afterwards = Agenda()
        _ = afterwards.update(files, marks: try await restored.scheduleMarks(), now: later)
        let made = try await DueRuns(store: restored, actor: "daemon").make(afterwards.due(at: later), now: later)
        #expect(made.map { $0.made.run?.state } == [.missed])
        let reason = made.first?.made.run?.stateReason ?? ""
        #expect(reason.contains("may have been sent already") && reason.contains("`fanfare run news`"), "\(reason)")
        // Later ones start as always.
        let tomorrow = now + .seconds(86_400)
        let next = try await DueRuns(store: restored, actor: "daemon").make(afterwards.due(at: tomorrow), now: tomorrow)
        #expect(next.allSatisfy { $0.made.run?.state == .scheduled })
        try restored.close()
    }

    @Test func `one of far more than usual is made paused`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<30)
        let now = try Self.moment("2026-12-01T09:00")
        let few = AudienceExpression.oneOf(.installationID, [.text("install-1")])
        for day in 1...3 {
            let definition = try scene.definition { campaign in
                campaign.name = "fine"
                campaign.audience.expression = few
            }
            let run = try await scene.store.createRun(
                definition, occurrence: "\(day)", now: now - .seconds(Int64(day) * 86_400), by: "test"
            ).run.id
            _ = try await scene.store.claim(run, by: "a", now: now)
            _ = try await scene.store.freeze(run, by: "a", now: now) { _ in }
        }
        var agenda = Agenda()
        _ = agenda.update([try campaign("fine", changedAt: "2026-12-01T07:00")], marks: [:], now: now)
        let brake = Configuration.VolumeBrake(times: 10, atLeast: 2)
        let made = try await DueRuns(store: scene.store, actor: "daemon", brake: brake)
            .make(agenda.due(at: now), now: now)
        let run = try #require(made.first?.made.run)
        #expect(run.state == .paused && run.halt == .volume)
        #expect(run.stateReason?.hasPrefix("would send 30; usual for fine a day is 1 (median of the last 3)") == true)
        guard case .halted? = RunEnd(run) else {
            Issue.record("it does not wait for a person")
            return
        }
    }

    /// Nine o'clock in Berlin, found two hours later.
    @Test(arguments: [(-1, RunState.scheduled), (0, .scheduled), (1, .missed)])
    func `an occurrence just as late as allowed is made`(milliseconds: Int, state: RunState) async throws {
        let scene = try PipelineScene()
        var agenda = Agenda()
        let file = try campaign(changedAt: "2026-12-01T07:00")
        _ = agenda.update([file], marks: [:], now: try Self.moment("2026-12-01T07:00"))
        let now = try Self.moment("2026-12-01T10:00") + .milliseconds(milliseconds)
        _ = try await DueRuns(store: scene.store, actor: "daemon").make(agenda.due(at: now), now: now)
        #expect(try await scene.store.runs(limit: 10).map(\.state) == [state])
    }

    /// A daemon's look at what waits for approval, as it is at a moment, with what it makes of it.
    private func look(
        _ scene: PipelineScene, _ file: ReadyCampaign, at now: Timestamp
    ) async throws -> [DueRuns.Made] {
        let rules = ApprovalRules(rules: [.init(above: 0, needs: 1)])
        let due = DueRuns(store: scene.store, actor: "daemon", approvals: rules)
        return try await due.make(due.awaited([file], now: now), now: now).map(\.made)
    }

    private func sign(_ scene: PipelineScene, isRejection: Bool = false, at now: Timestamp) async throws {
        let waiting = try #require(try await scene.store.approvals(in: [.open], limit: 9).first)
        _ = try await scene.store.sign(
            waiting.request.id,
            ApprovalSignature(
                identity: "os:anna", name: "anna", signedAt: now, reach: waiting.request.reach, isRejection: isRejection
            ),
            by: "anna")
    }

    private func waiting(_ file: ReadyCampaign) async throws -> (PipelineScene, Timestamp) {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        var agenda = Agenda()
        _ = agenda.update([file], marks: [:], now: try Self.moment("2026-12-01T07:00"))
        let now = try Self.moment("2026-12-01T08:00")
        let rules = ApprovalRules(rules: [.init(above: 0, needs: 1)])
        let made = try await DueRuns(store: scene.store, actor: "daemon", approvals: rules)
            .make(agenda.due(at: now), now: now)
        guard case .waits? = made.first?.made, made.count == 1 else {
            Issue.record("it does not wait: \(made)")
            return (scene, now)
        }
        #expect(try await scene.store.runs(limit: 9).isEmpty)
        #expect(try await look(scene, file, at: now + .seconds(60)).isEmpty)
        return (scene, now)
    }

    @Test func `an occurrence waits for approval, and goes by itself once it has it`() async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        try await sign(scene, at: now + .seconds(100))
        let made = try await look(scene, file, at: now + .seconds(120))
        guard case .run(let run)? = made.first else {
            Issue.record("nothing was made: \(made)")
            return
        }
        #expect(run.occurrence == "2026-12-01T09:00" && run.state == .scheduled)
        #expect(try await look(scene, file, at: now + .seconds(130)).isEmpty)
    }

    @Test func `an occurrence approved before its time is made when it is due`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let before = try Self.moment("2026-12-01T07:00")
        let occurrence = try #require(file.timetable?.occurrence(named: "2026-12-01T09:00"))
        let rules = ApprovalRules(rules: [.init(above: 0, needs: 1)])
        let plans = ApprovePlans(store: scene.store, rules: rules)
        let asked = try #require(
            try await plans.ask(
                file.definition(for: occurrence), occurrence: occurrence.key, reach: 3, by: "carl", now: before))
        #expect(asked.missing == 1)
        #expect(try await plans.sign(asked.plan, reason: nil, by: "anna", now: before).missing == 0)
        #expect(try await look(scene, file, at: before + .seconds(60)).isEmpty)
        var agenda = Agenda()
        _ = agenda.update([file], marks: [:], now: before)
        let now = try Self.moment("2026-12-01T08:00")
        let made = try await DueRuns(store: scene.store, actor: "daemon", approvals: rules)
            .make(agenda.due(at: now), now: now)
        guard case .run? = made.first?.made else {
            Issue.record("it was not made: \(made)")
            return
        }
    }

    @Test(arguments: [false, true])
    func `an occurrence that nobody approves is missed, and a rejected one refused`(isRejected: Bool) async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        if isRejected { try await sign(scene, isRejection: true, at: now + .seconds(100)) }
        let made = try await look(scene, file, at: now + .seconds(isRejected ? 120 : 7201))
        guard case .ended(let run)? = made.first else {
            Issue.record("it did not end: \(made)")
            return
        }
        #expect(run.state == (isRejected ? .failed : .missed))
        #expect(try await look(scene, file, at: now + .seconds(7300)).isEmpty)
        #expect(try await scene.store.approvals(in: [.open], limit: 9).isEmpty)
    }

    @Test func `a rejected one does not go because it is for fewer by now`() async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        try await sign(scene, isRejection: true, at: now + .seconds(100))
        let rules = ApprovalRules(rules: [.init(above: 1000, needs: 1)])
        let due = DueRuns(store: scene.store, actor: "daemon", approvals: rules)
        let later = now + .seconds(120)
        guard case .ended(let run)? = try await due.make(due.awaited([file], now: later), now: later).first?.made else {
            Issue.record("it did not end")
            return
        }
        #expect(run.state == .failed && run.stateReason?.contains("anna rejected plan") == true)
    }

    @Test(arguments: [nil, ApprovalRules(rules: [.init(above: 1000, needs: 1)])])
    func `one that waits goes when nobody has to sign it any more`(rules: ApprovalRules?) async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        let due = DueRuns(store: scene.store, actor: "daemon", approvals: rules)
        let later = now + .seconds(120)
        guard case .run? = try await due.make(due.awaited([file], now: later), now: later).first?.made else {
            Issue.record("it was not made")
            return
        }
        try await ApprovePlans(store: scene.store, rules: rules).lapse(now: later)
        #expect(try await scene.store.approvals(in: [.open], limit: 9).isEmpty)
    }

    @Test func `one of a time that is no more is forgotten after a month`() async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        let moved = try campaign("c", .cron("0 10 * * *"), changedAt: "2026-12-01T07:00")
        for (days, count) in [(30, 1), (32, 0)] {
            #expect(try await look(scene, moved, at: now + .seconds(Int64(days) * 86_400)).isEmpty)
            #expect(try await scene.store.approvals(in: [.open], limit: 9).count == count)
        }
    }

    @Test func `asked for a day later it is another request, unless a signature still counts`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let noon = try Self.moment("2026-12-01T12:00")
        let occurrence = try #require(file.timetable?.occurrence(named: "2026-12-05T09:00"))
        let definition = file.definition(for: occurrence)
        let plans = ApprovePlans(
            store: scene.store, rules: ApprovalRules(rules: [.init(above: 0, needs: 2, within: .seconds(86_400))]))
        func ask(_ occurrence: String, _ seconds: Int64) async throws -> String {
            let asked = try await plans.ask(
                definition, occurrence: occurrence, reach: 3, by: "carl", now: noon + .seconds(seconds))
            return try #require(asked?.askedAt)
        }
        let first = try await ask(occurrence.key, 0)
        #expect(try await ask(occurrence.key, 86_400) == first)
        let second = try await ask(occurrence.key, 86_401)
        #expect(second != first)
        let plan = try #require(try await plans.list(includingPast: false, now: noon).approvals.first?.plan)
        _ = try await plans.sign(plan, reason: nil, by: "anna", now: noon + .seconds(90_000))
        #expect(try await ask(occurrence.key, 175_000) == second)
        #expect(try await ask(occurrence.key, 180_000) != second)
        // Of a run that somebody starts another one stays as it is.
        let own = try await ask("", 180_000)
        #expect(try await ask("", 180_010) == own)
    }

    @Test func `no plan lapses by a clock that was just set forward`() async throws {
        let scene = try PipelineScene()
        try await scene.addDevices(0..<3)
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let noon = try Self.moment("2026-12-01T12:00")
        let occurrence = try #require(file.timetable?.occurrence(named: "2026-12-05T09:00"))
        let plans = ApprovePlans(store: scene.store, rules: ApprovalRules(rules: [.init(above: 0, needs: 1)]))
        _ = try await plans.ask(
            file.definition(for: occurrence), occurrence: "", reach: 3, by: "carl", now: noon)
        let later = noon + .seconds(3 * 86_400)
        for (wall, uptime) in [(noon, 1000), (later, 1001)] as [(Timestamp, Int64)] {
            _ = try await scene.store.noteClocks(
                ClockReading(wall: wall, uptime: .seconds(uptime), boot: "b"), by: "test")
        }
        for (wait, count) in [(Duration.zero, 1), (ConfirmedTime.confirmedAfter, 0)] {
            try await plans.lapse(now: later + wait)
            #expect(try await scene.store.approvals(in: [.open], limit: 9).count == count)
        }
    }

    @Test func `one whose reach is again what was signed goes`() async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        try await sign(scene, at: now + .seconds(100))
        try await scene.addDevices(3..<9)
        guard case .waits? = try await look(scene, file, at: now + .seconds(120)).first else {
            Issue.record("it does not wait")
            return
        }
        #expect(try await look(scene, file, at: now + .seconds(130)).isEmpty)
        for device in 4...9 { _ = try await scene.store.removeDevice(Int64(device), now: now, by: "x") }
        guard case .run? = try await look(scene, file, at: now + .seconds(140)).first else {
            Issue.record("it was not made")
            return
        }
    }

    @Test func `a file that is edited after the signature waits anew`() async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        try await sign(scene, at: now + .seconds(100))
        let edited = try campaign(changedAt: "2026-12-01T07:00") { $0.priority = .lowest }
        let made = try await look(scene, edited, at: now + .seconds(120))
        guard case .waits? = made.first else {
            Issue.record("it does not wait: \(made)")
            return
        }
        #expect(try await look(scene, edited, at: now + .seconds(130)).isEmpty)
        let states = try await scene.store.approvals(in: nil, limit: 9).map(\.request.state)
        #expect(states == [.open, .replaced])
    }

    @Test func `a reach that has drifted since the signature waits anew`() async throws {
        let file = try campaign(changedAt: "2026-12-01T07:00")
        let (scene, now) = try await waiting(file)
        try await sign(scene, at: now + .seconds(100))
        try await scene.addDevices(3..<9)
        let made = try await look(scene, file, at: now + .seconds(120))
        guard case .waits(let words)? = made.first else {
            Issue.record("it does not wait: \(made)")
            return
        }
        #expect(words.contains("it was signed for 3 devices"))
        #expect(try await look(scene, file, at: now + .seconds(130)).isEmpty)
    }
}
