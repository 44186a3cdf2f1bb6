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
            func after(_ id: Int64, _ filter: RunFilter = RunFilter(), limit: Int = 3) async throws -> [Int64] {
                try await store.runs(filter, after: id, limit: limit).map(\.id)
            }
            #expect(try await after(0) == [1, 2, 3])
            #expect(try await after(9) == [10, 11])
            #expect(try await after(1, RunFilter(campaign: "sale", states: [.cancelled])) == [7])
            #expect(try await after(11) == [])
        }
        Promise("runs are found by what their definitions say, page by page in both directions") { store in
            for number in 1...10 {
                var run = try definition(number % 2 == 0 ? "news" : "sync")
                run.variables["title"] = "Épisode \(number)"
                if number % 2 == 1 { run.campaign.pushType = .background }
                _ = try await store.createRun(
                    run, occurrence: "o\(number)", now: noon + .seconds(number), by: "test")
            }
            func page(_ search: RunSearch, _ position: ListPosition = .newest) async throws -> FoundRuns {
                try await store.search(search, at: position, limit: 2)
            }
            let shown = RunSearch(RunFilter(), hidesSilent: true)
            let first = try await page(shown)
            #expect(first.runs.map(\.id) == [10, 8] && first.newer == nil && first.older == .before(8))
            let second = try await page(shown, .before(8))
            #expect(second.runs.map(\.id) == [6, 4] && second.newer == .after(6) && second.older == .before(4))
            let third = try await page(shown, .before(4))
            #expect(third.runs.map(\.id) == [2] && third.older == nil && third.newer == .after(2))
            #expect(try await page(shown, .after(2)).runs.map(\.id) == [6, 4])
            // The newest page is a whole one.
            #expect(try await page(shown, .after(6)).runs.map(\.id) == [10, 8])
            #expect(try await page(RunSearch(RunFilter(), kind: .background)).runs.map(\.id) == [9, 7])
            #expect(try await page(RunSearch(RunFilter(), topic: "com.example.none")).runs.isEmpty)
            for (words, ids) in [
                ("EPISODE 7", [7]), ("#3", [3]), ("news o8", [8]), ("sync", [9, 7]), ("nothing", []), (" ", [10, 9]),
            ] as [(String, [Int64])] {
                var search = RunSearch(RunFilter())
                _ = search.look(for: words)
                #expect(try await page(search).runs.map(\.id) == ids, "\(words)")
            }
            var long = RunSearch(RunFilter())
            let isLooking = long.look(for: String(repeating: "x", count: RunSearch.termsBytesMax + 1))
            #expect(!isLooking)
        }
        Promise("a search stops after so many runs, says where, and goes on from there") { store in
            for number in 0...RunSearch.readMax {
                _ = try await store.createRun(
                    try definition(), occurrence: number == 0 ? "needle" : "o\(number)", now: noon, by: "test")
            }
            var search = RunSearch(RunFilter())
            _ = search.look(for: "needle")
            let stopped = try await store.search(search, at: .newest, limit: 50)
            #expect(stopped.runs.isEmpty && stopped.stoppedAt?.id == 2 && stopped.older == .before(2))
            let rest = try await store.search(search, at: .before(2), limit: 50)
            #expect(rest.runs.map(\.occurrence) == ["needle"] && rest.older == nil && rest.stoppedAt == nil)
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
