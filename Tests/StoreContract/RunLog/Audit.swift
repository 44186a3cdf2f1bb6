import Model
import Store
import Testing

extension RunLogContract {
    @PromiseList static var audit: [Promise] {
        Promise("an occurrence that has its run already leaves no second note") { store in
            let note = EventNote(kind: .guardOverridden, detail: "")
            for _ in 0..<2 {
                _ = try await store.createRun(try definition(), occurrence: "once", now: noon, by: "a", notes: [note])
            }
            #expect(try await store.events(run: 1).map(\.kind) == ["run_created", "guard_overridden"])
        }
        Promise("a run cancelled while somebody sends it is on record as cancelled once, in the name of who did it") {
            store in
            _ = try await store.importDevices(try (1...3).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            _ = try await store.lease(run, limit: 1)
            try await store.change(run, to: .cancelled, reason: "wrong link", now: noon, by: "amy")
            try await store.release(run, by: "a", state: .cancelled, reason: nil, now: noon + .seconds(1))
            try await store.change(run, to: .cancelled, reason: nil, now: noon + .seconds(2), by: "bob")
            let cancelled = try await store.events(run: run).filter { $0.kind == "run_cancelled" }
            #expect(cancelled.map(\.actor.name) == ["amy"])
            let ended = try await store.run(run)
            #expect(ended?.state == .cancelled && ended?.stateReason == "wrong link" && ended?.owner == nil)
            #expect(
                ended?.counts.suppressed == 2 && ended?.counts.unknown == 1 && ended?.finishedAt == noon + .seconds(1))
        }
        Promise("who calls a command as another user is on record as the person that signed in") { store in
            var sue = Actor("fanfare (uid 998) for sue", authentication: .account(uid: 998, user: "fanfare"))
            (sue.signedInAs, sue.signedInUID) = ("os:sue", 9)
            try await store.recordEvent(
                kind: .segmentDefined, run: nil, actor: sue, detail: "vip", files: [:], now: noon)
            let recorded = try #require(try await store.events(run: nil, since: nil, limit: 1).first?.actor)
            #expect(recorded.identity == "os:sue" && recorded.identityUID == 9 && recorded.name == sue.name)
        }
        Promise("every event says which process wrote it, and in whose name") { store in
            let ray = Actor(
                "ray", authentication: .account(uid: 7, user: "ray"), origin: .timer, command: "fanfare run new-podcast"
            )
            let amy = Actor(
                "amy", authentication: .account(uid: 8, user: "amy"), origin: .command, command: "fanfare cancel 1")
            let files = ["/etc/fanfare/campaigns/new-podcast.yaml": "00ff"]
            let run = try await store.createRun(
                try definition(), occurrence: "once", now: noon, by: ray,
                notes: [EventNote(kind: .guardOverridden, detail: "max_reach: 5 of 3")], files: files
            ).run.id
            try await store.change(
                run, to: .cancelled, reason: "wrong link", now: noon + .seconds(9), by: amy)
            let events = try await store.events(run: run)
            #expect(events.map(\.kind) == ["run_created", "guard_overridden", "run_cancelled"])
            #expect(events.map(\.actor) == [ray, ray, amy])
            #expect(events.allSatisfy { $0.campaign == "new-podcast" })
            #expect(events[0].files == files && events[1].files.isEmpty)
            #expect(
                try await store.events(run: nil, since: noon + .seconds(1), limit: 9).map(\.detail) == ["wrong link"])
            #expect(
                try await store.events(run: nil, since: nil, limit: 2).map(\.kind) == [
                    "guard_overridden", "run_cancelled",
                ])
        }
    }
}
