import Model
import Store
import Testing

extension DaemonLogContract {
    @PromiseList static var schedules: [Promise] {
        Promise("webhooks that ask for it hear that a plan waits, and once that it has its signatures") { store in
            try await store.setWebhooks([
                .init(url: "https://all.example", secretPath: ""),
                .init(url: "https://runs.example", secretPath: "", events: [.finished]),
                .init(url: "https://yes.example", secretPath: "", events: [.approved]),
            ])
            let request = ApprovalRequest(
                definition: try definition(), occurrence: "", plan: "p1", digest: "d", reach: 100, needs: 2,
                authors: [], askedBy: "os:carl", askedAt: noon)
            let asked = try await store.requestApproval(request, isAnew: false, by: "carl")
            _ = try await store.requestApproval(request, isAnew: false, by: "carl")
            for name in ["anna", "ben", "ben", "dora"] {
                let signature = ApprovalSignature(identity: "os:\(name)", name: name, signedAt: noon, reach: 100)
                _ = try await store.sign(asked.request.id, signature, by: "x", now: noon) { $0.signatures.count >= 2 }
            }
            let taken = try await store.takeWebhookMessages(
                now: noon + .seconds(1), limit: 9, until: noon + .seconds(60))
            let heard = taken.map { "\($0.url) \($0.kind.rawValue)" }
            #expect(
                heard.sorted() == [
                    "https://all.example approval_wanted", "https://all.example approved",
                    "https://yes.example approved",
                ])
            #expect(taken.allSatisfy { $0.approval == asked.request.id && $0.run == 0 })
        }
        Promise("a schedule is answered for from the earliest time anybody said, unless it is another schedule") {
            store in
            let mark = ScheduleMark(campaign: "c", scheduleHash: 1, since: noon)
            try await store.setScheduleMarks([mark, ScheduleMark(campaign: "d", scheduleHash: 7, since: noon)])
            try await store.setScheduleMarks([ScheduleMark(campaign: "c", scheduleHash: 1, since: noon + .seconds(9))])
            #expect(try await store.scheduleMarks()["c"] == mark)
            let other = ScheduleMark(campaign: "c", scheduleHash: 2, since: noon + .seconds(9))
            try await store.setScheduleMarks([other])
            #expect(try await store.scheduleMarks()["c"] == other)
            #expect(try await store.scheduleMarks().count == 2)
        }
        Promise("a mark goes forward only, and is forgotten with its file") { store in
            try await store.setScheduleMarks([ScheduleMark(campaign: "c", scheduleHash: 1, since: noon)])
            try await store.advanceScheduleMarks(of: ["c", "nobody"], to: noon + .seconds(5))
            try await store.advanceScheduleMarks(of: ["c"], to: noon)
            #expect(try await store.scheduleMarks().mapValues(\.since) == ["c": noon + .seconds(5)])
            try await store.removeScheduleMarks(of: ["c"])
            #expect(try await store.scheduleMarks().isEmpty)
        }
        Promise("occurrences with a run are known, and runs that nobody has in hand wait for a sender") { store in
            let first = try await store.createRun(try definition(), occurrence: "1", now: noon, by: "a").run.id
            let second = try await store.startRun(try definition(), occurrence: "2", owner: "b")
            _ = try await store.createRun(try definition(), occurrence: "t", isTest: true, now: noon, by: "a")
            #expect(try await store.knownOccurrences(of: "new-podcast", among: ["1", "2", "3"]) == ["1", "2"])
            func open(_ owner: String, inHand: Set<Int64> = []) async throws -> [Int64] {
                try await store.openRuns(for: owner, inHand: inHand).map(\.id)
            }
            #expect(try await open("c") == [first])
            #expect(try await open("b", inHand: [second]) == [first])
            // An error made its owner let go of it without a word to the store.
            #expect(try await open("b") == [first, second])
            try await store.release(second, by: "b", state: .running, reason: nil, now: noon)
            #expect(try await open("c") == [first, second])
            // A test is left to the creator of it, unless it was handed over.
            let tested = try await store.createRun(
                try definition(), occurrence: TestOccurrence.handedOverPrefix + "1", isTest: true, now: noon, by: "a")
            #expect(try await open("c") == [first, second, tested.run.id])
        }
    }

    @PromiseList static var feeds: [Promise] {
        Promise("a poll is put on record once, with the items it saw") { store in
            let unknown = try await store.feedState(campaign: "c")
            #expect(unknown == nil)
            let state = FeedState(url: "https://example.com/feed", etag: "\"1\"", polledAt: noon, problem: "late")
            #expect(try await store.recordFeedPoll(campaign: "c", state, seen: ["b", "a"], after: nil))
            #expect(try await store.feedState(campaign: "c") == state)
            #expect(try await store.seenFeedItems(campaign: "c", among: ["a", "b", "c"]) == ["a", "b"])
            #expect(try await store.seenFeedItems(campaign: "d", among: ["a"]).isEmpty)
            // Another process has polled since.
            #expect(try await store.recordFeedPoll(campaign: "c", state, seen: ["c"], after: nil) == false)
            #expect(try await store.seenFeedItems(campaign: "c", among: ["c"]).isEmpty)
            #expect(try await store.recordFeedPoll(campaign: "c", state, seen: ["c"], after: state))
            #expect(try await store.seenFeedItems(campaign: "c", among: ["a", "c"]) == ["a", "c"])
        }
        Promise("a feed's run that paused itself is open, unless it waits for a person") { store in
            let item = try await store.createRun(try definition(), occurrence: "item-1", now: noon, by: "a").run.id
            for halt in [RunHalt.unreachable, .credential, .breaker, .late] {
                try await store.change(item, to: .running, reason: nil, now: noon, by: "ray")
                _ = try await store.claim(item, by: "a", now: noon)
                try await store.release(item, by: "a", state: .paused, reason: "r", halt: halt, now: noon)
                let open = try await store.openFeedRuns(campaign: "new-podcast").map(\.id)
                #expect(open == (halt.waitsForPerson ? [] : [item]), "\(halt)")
            }
        }
        Promise("a feed's runs are open until they are over") { store in
            let item = try await store.createRun(try definition(), occurrence: "item-1", now: noon, by: "a").run.id
            _ = try await store.createRun(try definition(), occurrence: "2027-01-15", now: noon, by: "a")
            #expect(try await store.openFeedRuns(campaign: "new-podcast").map(\.id) == [item])
            try await store.change(item, to: .cancelled, reason: nil, now: noon, by: "ray")
            #expect(try await store.openFeedRuns(campaign: "new-podcast").isEmpty)
        }
    }

    @PromiseList static var webhooks: [Promise] {
        Promise("a change of state owes each webhook one message, until it is delivered") { store in
            let run = try await owing(store)
            #expect(try await store.nextWebhookMessage() == noon + .seconds(1))
            let until = noon + .seconds(60)
            let taken = try await store.takeWebhookMessages(now: noon + .seconds(1), limit: 9, until: until)
            #expect(taken.map(\.url) == ["https://a.example", "https://b.example"])
            #expect(taken.allSatisfy { $0.run == run && $0.kind == .paused && $0.reason == "breaker" })
            #expect(Set(taken.map(\.event)).count == 1 && taken.map(\.attempts) == [1, 1])
            #expect(try await store.takeWebhookMessages(now: noon + .seconds(2), limit: 9, until: until).isEmpty)
            try await store.removeWebhookMessage(taken[0].id)
            try await store.postponeWebhookMessage(taken[1].id, until: noon + .seconds(300), problem: "503")
            #expect(try await store.nextWebhookMessage() == noon + .seconds(300))
            let again = try await store.takeWebhookMessages(
                now: noon + .seconds(300), limit: 9, until: noon + .seconds(400))
            #expect(again.map(\.id) == [taken[1].id] && again.map(\.attempts) == [2])
        }
        Promise("a late run is told as late to who asked for that, as paused to who asked for pauses, once to each") {
            store in
            let hooks: [(String, [Configuration.Webhook.Event])] = [
                ("https://all.example", Configuration.Webhook.Event.allCases), ("https://late.example", [.late]),
                ("https://none.example", [.finished]), ("https://paused.example", [.paused, .missed]),
            ]
            try await store.setWebhooks(
                hooks.map { Configuration.Webhook(url: $0.0, secretPath: "/s", events: $0.1) })
            let run = try await store.createRun(try definition(), occurrence: "x", now: noon, by: "test").run.id
            let late = noon + .seconds(3601)
            for _ in 0..<2 { _ = try await store.claim(run, by: "a", now: late) }
            let taken = try await store.takeWebhookMessages(now: late, limit: 9, until: late + .seconds(60))
            #expect(
                taken.map { "\($0.url) \($0.kind)" }.sorted() == [
                    "https://all.example late", "https://late.example late", "https://paused.example paused",
                ])
            #expect(
                taken.allSatisfy { $0.kind.state == .paused && $0.reason?.hasPrefix("the run was due from") == true })
        }
        Promise("a finished run that is no success is told as such to who asked for that, else as finished") { store in
            let hooks: [(String, [Configuration.Webhook.Event])] = [
                ("https://all.example", Configuration.Webhook.Event.allCases),
                ("https://bad.example", [.unsuccessful, .paused]), ("https://finished.example", [.finished]),
                ("https://none.example", [.paused]),
            ]
            try await store.setWebhooks(
                hooks.map { Configuration.Webhook(url: $0.0, secretPath: "/s", events: $0.1) })
            let run = try await store.startRun(try definition(), occurrence: "empty")
            let reason = "no device was reached: the audience selected none"
            try await store.release(run, by: "a", state: .finished, reason: reason, halt: .unsuccessful, now: noon)
            let ended = try #require(try await store.run(run))
            #expect(ended.state == .finished && ended.halt == .unsuccessful && ended.stateReason == reason)
            #expect(try await store.haltedRuns().isEmpty)
            #expect(try await store.openRuns(for: "b", inHand: []).isEmpty)
            let taken = try await store.takeWebhookMessages(now: noon, limit: 9, until: noon + .seconds(60))
            #expect(
                taken.map { "\($0.url) \($0.kind)" }.sorted() == [
                    "https://all.example unsuccessful", "https://bad.example unsuccessful",
                    "https://finished.example finished",
                ])
            #expect(taken.allSatisfy { $0.kind.state == .finished && $0.reason == reason })
        }
        Promise("a person's pause, a test and a webhook that is no longer wanted owe nothing") { store in
            _ = try await owing(store)
            try await store.setWebhooks([Configuration.Webhook(url: "https://b.example", secretPath: "/s")])
            let left = try await store.takeWebhookMessages(
                now: noon + .seconds(1), limit: 9, until: noon + .seconds(60))
            #expect(left.map(\.url) == ["https://b.example"])
            try await store.removeWebhookMessage(left[0].id)
            let paused = try await store.startRun(try definition(), occurrence: "paused")
            try await store.change(paused, to: .paused, reason: "wait", now: noon, by: "ray")
            let test = try await store.createRun(
                try definition(), occurrence: "test", isTest: true, now: noon, by: "ray"
            ).run.id
            try await store.change(test, to: .failed, reason: "no", now: noon, by: "ray")
            #expect(try await store.nextWebhookMessage() == nil)
        }
    }

    /// A run that paused itself a second after noon, and two webhooks that want to know.
    private static func owing(_ store: any AllRoles) async throws -> Int64 {
        try await store.setWebhooks(
            ["https://a.example", "https://b.example"].map { Configuration.Webhook(url: $0, secretPath: "/s") })
        let run = try await store.startRun(try definition())
        try await store.release(run, by: "a", state: .paused, reason: "breaker", now: noon + .seconds(1))
        return run
    }

    @PromiseList static var heartbeats: [Promise] {
        Promise(
            "there is one daemon at a time, for as long as it lives, however long it is silent",
            opening: { stores in
                let owners = Mortals()
                let store = try await stores.open(owners.isAlive)
                #expect(try await store.daemon() == nil)
                #expect(try await store.becomeDaemon(owner: "a", now: noon) == nil)
                var status = DaemonStatus()
                status.campaigns = 3
                #expect(try await store.daemonHeartbeat(owner: "a", status, now: noon + .seconds(5)))
                let alive = try #require(try await store.daemon())
                #expect(alive.owner == "a" && alive.startedAt == noon && alive.status == status)
                for moment in [noon + .seconds(20), noon + .seconds(86_400), noon - .seconds(86_400)] {
                    #expect(try await store.becomeDaemon(owner: "b", now: moment)?.owner == "a")
                }
                owners.end("a")
                #expect(try await store.daemon() == nil)
                #expect(try await store.becomeDaemon(owner: "b", now: noon + .seconds(5)) == nil)
                #expect(try await store.daemonHeartbeat(owner: "a", status, now: noon + .seconds(5)) == false)
                try await store.resignDaemon(owner: "a")
                #expect(try await store.daemon()?.owner == "b")
                try await store.resignDaemon(owner: "b")
                #expect(try await store.daemon() == nil)
            })
    }
}
