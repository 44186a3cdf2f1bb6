import Model
import Store
import Testing

/// Stops of everything and of a campaign, as every store keeps and obeys them.
extension RunLogContract {
    private static let all = StopOrder(.all, by: "anna", at: noon, reason: "wrong text")
    private static let campaign = StopOrder(.campaign("new-podcast"), by: "ben", at: noon + .seconds(1))
    private static let other = StopOrder(.campaign("breaking-news"), by: "ben", at: noon + .seconds(2))

    @PromiseList static var stops: [Promise] {
        Promise(
            "a stop is in force until it is lifted, for whoever opens the store",
            opening: { stores in
                let store = try await stores.open()
                #expect(try await store.stops().isEmpty)
                #expect(try await store.recordStop(all, by: "anna", now: noon) == .recorded)
                #expect(try await store.recordStop(campaign, by: "ben", now: noon) == .recorded)
                let found = try await stores.openAfterCrash { _ in true }.stops()
                #expect(found == StopOrders([all, campaign]))
                let lifted = try await store.liftStop(.all, reason: "put right", by: "carl", now: noon)
                #expect(lifted == all)
                #expect(try await store.stops().orders == [campaign])
            })
        Promise("of one scope there is one stop, and the first stays") { store in
            let first = try await store.recordStop(all, by: "anna", now: noon)
            #expect(first == .recorded)
            let again = StopOrder(.all, by: "ben", at: noon + .seconds(9))
            #expect(try await store.recordStop(again, by: "ben", now: noon) == .known)
            #expect(try await store.stops().orders == [all])
            #expect(try await store.liftStop(.campaign("new-podcast"), reason: "r", by: "b", now: noon) == nil)
            #expect(try await store.liftStop(.all, reason: "r", by: "b", now: noon) == all)
            #expect(try await store.liftStop(.all, reason: "r", by: "b", now: noon) == nil)
        }
        Promise("a stop that was lifted is not put on record again, by whatever file still has it") { store in
            _ = try await store.recordStop(all, by: "anna", now: noon)
            _ = try await store.liftStop(.all, reason: "right", by: "carl", now: noon)
            #expect(try await store.recordStop(all, by: "anna", now: noon) == .lifted)
            #expect(try await store.stops().isEmpty)
            // Another one is another one.
            let later = StopOrder(.all, by: "anna", at: noon + .seconds(1), reason: "wrong text")
            #expect(try await store.recordStop(later, by: "anna", now: noon) == .recorded)
            for number in 0..<120 {
                let order = StopOrder(.campaign("c\(number)"), by: "anna", at: noon)
                _ = try await store.recordStop(order, by: "anna", now: noon)
                _ = try await store.liftStop(order.scope, reason: "right", by: "carl", now: noon)
                #expect(try await store.recordStop(order, by: "anna", now: noon) == .lifted)
            }
            #expect(try await store.stops().orders == [later])
        }
        Promise("lifting remembers the stop of the file as well, though another one of its scope was on record") {
            store in
            let inFile = StopOrder(.all, by: "by hand", at: noon + .seconds(7))
            _ = try await store.recordStop(all, by: "anna", now: noon)
            #expect(try await store.recordStop(inFile, by: "b", now: noon) == .known)
            let lifted = try await store.liftStop(.all, inFile: inFile, reason: "right", by: "carl", now: noon)
            #expect(lifted == all)
            // A sender that read the file before it was lifted.
            #expect(try await store.recordStop(inFile, by: "b", now: noon) == .lifted)
            #expect(try await store.stops().isEmpty)
        }
        Promise("a campaign's name may have blanks, in a stop as well") { store in
            let order = StopOrder(.campaign("spring sale"), by: "anna", at: noon)
            _ = try await store.recordStop(order, by: "anna", now: noon)
            #expect(try await store.stops().orders == [order])
            #expect(try await store.liftStop(order.scope, reason: "right", by: "carl", now: noon) == order)
        }
        Promise("a stop of a run alone is the run's pause, and not taken here") { store in
            let alone = StopOrder(.run(1), by: "anna", at: noon)
            let answer = try await store.recordStop(alone, by: "anna", now: noon)
            #expect(answer == .ofRun)
            #expect(try await store.stops().isEmpty)
            #expect(try await store.events(run: nil, since: nil, limit: 10).isEmpty)
        }
        Promise("who stopped and who lifted is in the audit, with the reasons") { store in
            _ = try await store.recordStop(all, by: "anna", now: noon)
            _ = try await store.liftStop(.all, reason: "put right", by: "carl", now: noon)
            let events = try await store.events(run: nil, since: nil, limit: 10)
            #expect(events.map(\.kind) == ["sending_stopped", "stop_lifted"])
            #expect(events.map(\.actor.name) == ["anna", "carl"])
            #expect(events.first?.detail == "all: wrong text")
            #expect(events.last?.detail.hasSuffix("was lifted: put right") == true)
        }
        Promise.each([all, campaign], { "nothing is leased or claimed while \($0.scope.summary) is stopped" }) {
            store, order in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            let run = try await store.startRun(try definition())
            let first = try await store.lease(run, limit: 1)
            _ = try await store.recordStop(order, by: "anna", now: noon)
            let stopped = try await store.lease(run, after: first.cursor)
            #expect(stopped.deliveries.isEmpty && stopped.stop == order && stopped.cursor == first.cursor)
            // What was leased before is settled as ever.
            _ = try await store.settle(run: run, first.settlements(.accepted), now: noon)
            try await store.release(run, by: "a", state: .running, reason: nil, now: noon)
            #expect(try await store.claim(run, by: "b", now: noon) == .stopped(order))
            #expect(try await store.run(run)?.owner == nil)
            try await store.expectSumsClose(run)
            _ = try await store.liftStop(order.scope, reason: "put right", by: "anna", now: noon)
            #expect(try await store.claim(run, by: "b", now: noon) == .claimed)
            #expect(try await store.lease(run, after: first.cursor, owner: "b").deliveries.count == 3)
        }
        Promise("a stop of one campaign leaves the others alone") { store in
            _ = try await store.importDevices(try (1...4).map { try record($0) }, now: noon)
            _ = try await store.recordStop(other, by: "anna", now: noon)
            let run = try await store.startRun(try definition())
            #expect(try await store.lease(run).deliveries.count == 4)
        }
    }
}
