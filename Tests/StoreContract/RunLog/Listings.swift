import Model
import Store
import Testing

extension RunLogContract {
    @PromiseList static var listings: [Promise] {
        Promise("runs are listed newest first, by campaign, state and time, page by page") { store in
            for number in 0..<12 {
                let run = try await store.createRun(
                    try definition(number % 3 == 0 ? "sale" : "new-podcast"), occurrence: "\(number)",
                    isTest: number == 11, now: noon + .seconds(number), by: "test"
                ).run.id
                if number % 2 == 0 {
                    try await store.change(run, to: .cancelled, reason: nil, now: noon + .seconds(number), by: "test")
                }
            }
            func ids(_ filter: RunFilter, limit: Int = 5) async throws -> [Int64] {
                var found: [Int64] = []
                while true {
                    let page = try await store.runs(filter, before: found.last, limit: limit)
                    #expect(page.count <= limit)
                    found += page.map(\.id)
                    if page.count < limit { return found }
                }
            }
            #expect(try await ids(RunFilter()) == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
            #expect(try await ids(RunFilter(includesTests: true), limit: 1).count == 12)
            #expect(try await ids(RunFilter(campaign: "sale")) == [10, 7, 4, 1])
            #expect(try await ids(RunFilter(states: [.cancelled])) == [11, 9, 7, 5, 3, 1])
            #expect(try await ids(RunFilter(campaign: "sale", states: [.cancelled])) == [7, 1])
            #expect(try await ids(RunFilter(states: [.cancelled, .scheduled]), limit: 3).count == 11)
            let between = RunFilter(createdFrom: noon + .seconds(3), createdBefore: noon + .seconds(6))
            #expect(try await ids(between) == [6, 5, 4])
            #expect(try await ids(RunFilter(campaign: "nothing")) == [])
        }
        Promise("the audit is listed newest first, by run, actor and kind, page by page") { store in
            for number in 1...3 {
                let run = try await store.createRun(
                    try definition(), occurrence: "\(number)", now: noon + .seconds(number), by: "amy"
                ).run.id
                try await store.change(run, to: .cancelled, reason: "no", now: noon + .seconds(number), by: "ben")
            }
            func found(_ filter: EventFilter, limit: Int) async throws -> [String] {
                var found: [String] = []
                var cursor: Int64?
                repeat {
                    let page = try await store.events(filter, before: cursor, limit: limit)
                    #expect(page.events.count <= limit)
                    found += page.events.map { "\($0.run ?? 0) \($0.kind) \($0.actor.name)" }
                    cursor = page.next
                } while cursor != nil
                return found
            }
            let all = (1...3).reversed().flatMap { ["\($0) run_cancelled ben", "\($0) run_created amy"] }
            for limit in [1, 2, 4, 100] { #expect(try await found(EventFilter(), limit: limit) == all) }
            #expect(try await found(EventFilter(run: 2), limit: 1) == Array(all[2...3]))
            #expect(try await found(EventFilter(actor: "amy"), limit: 2) == [all[1], all[3], all[5]])
            #expect(try await found(EventFilter(kind: "run_cancelled"), limit: 2) == [all[0], all[2], all[4]])
            #expect(try await found(EventFilter(run: 1, actor: "ben", kind: "run_cancelled"), limit: 9) == [all[4]])
            #expect(try await found(EventFilter(since: noon + .seconds(3)), limit: 9) == Array(all[..<2]))
            #expect(try await found(EventFilter(run: 1, kind: "run_failed"), limit: 9) == [])
        }
    }
}
