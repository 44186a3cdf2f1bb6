import Model
import Store
import Testing

extension AccessLogContract {
    private static func change(
        _ name: String = "spring", text: String = "campaign: spring\n", base: String? = "before"
    ) -> PendingChange {
        PendingChange(
            kind: "campaign", name: name, text: text, hash: "hash of \(text)", base: base, author: anna,
            askedAt: noon)
    }

    private static var anna: Actor {
        Actor("anna (token)", uid: nil, user: "token:anna", origin: .api, command: nil)
    }

    private static func held(_ result: HoldResult) throws -> PendingChange {
        guard case .held(let changes) = result, let change = changes.first ?? nil else {
            throw StoreError.audienceTooLarge
        }
        return change
    }

    private static func hold(
        _ change: PendingChange, _ store: any ChangeLog, insteadOf known: Int64? = nil, most: Int = 9
    ) async throws -> HoldResult {
        try await store.holdChanges([TextToHold(change: change, known: known, detail: "campaign spring")], most: most)
    }

    @PromiseList static var changes: [Promise] {
        Promise("a change that waits is found again with its author and its text, and is on record") { store in
            let held = try held(
                try await hold(change(), store, most: 2))
            #expect(try await store.pendingChange(held.id) == held)
            #expect(held.author.signedInAs == "token:anna" && held.base == "before")
            var listed = held
            listed.text = ""
            #expect(try await store.pendingChanges() == [listed])
            let event = try #require(try await store.events(run: nil, since: nil, limit: 9).last)
            #expect(event.kind == "change_held" && event.detail == "campaign spring")
            #expect(event.actor.name == "anna (token)")
        }
        Promise("a file has one change, and it is replaced only by who has seen it") { store in
            let first = try held(try await hold(change(), store, most: 9))
            #expect(try await hold(change(), store, most: 9) == .changedMeanwhile(at: 0))
            #expect(
                try await hold(change(), store, insteadOf: first.id + 1, most: 9)
                    == .changedMeanwhile(at: 0))
            let second = try held(
                try await hold(change(text: "other", base: nil), store, insteadOf: first.id, most: 9))
            #expect(second.id > first.id && second.base == nil)
            #expect(try await store.pendingChange(first.id) == nil)
            #expect(try await store.pendingChanges().map(\.id) == [second.id])
        }
        Promise("only so many changes wait, and one in place of another is none more") { store in
            let first = try held(try await hold(change("a"), store, most: 2))
            _ = try held(try await hold(change("b"), store, most: 2))
            #expect(try await hold(change("c"), store, most: 2) == .tooMany)
            _ = try held(try await hold(change("a"), store, insteadOf: first.id, most: 2))
            #expect(try await store.pendingChanges().map(\.name).sorted() == ["a", "b"])
        }
        Promise("a change ends once, and its number is not used again") { store in
            let first = try held(try await hold(change(), store, most: 2))
            let end = ChangeToEnd(first.id, detail: "y", files: ["/a": "h"])
            #expect(try await store.endChanges([end], .changeReleased, by: "ben", now: noon) {} == nil)
            let gone = try await store.endChanges([end], .changeRejected, by: "ben", now: noon) {
                Issue.record("the change is gone")
            }
            #expect(gone == first.id)
            let events = try await store.events(run: nil, since: nil, limit: 9)
            #expect(events.map(\.kind).suffix(2) == ["change_held", "change_released"])
            #expect(events.last?.files == ["/a": "h"] && events.map(\.id) == events.map(\.id).sorted())
            let second = try held(try await hold(change(), store, most: 2))
            #expect(second.id > first.id)
        }
        Promise("changes end together or not at all, and only if their files could be written") { store in
            let first = try held(try await hold(change("a"), store))
            let second = try held(try await hold(change("b"), store))
            let ends = [second, first].map { ChangeToEnd($0.id, detail: "campaign \($0.name)") }
            let events = try await store.events(run: nil, since: nil, limit: 9).count
            let missing = ChangeToEnd(second.id + 1, detail: "campaign c")
            let gone = try await store.endChanges(ends + [missing], .changeReleased, by: "ben", now: noon) {
                Issue.record("a change is gone")
            }
            #expect(gone == second.id + 1)
            await #expect(throws: CancellationError.self) {
                try await store.endChanges(ends, .changeReleased, by: "ben", now: noon) { throw CancellationError() }
            }
            #expect(try await store.pendingChanges().map(\.id) == [first.id, second.id])
            #expect(try await store.events(run: nil, since: nil, limit: 9).count == events)
            #expect(try await store.endChanges(ends, .changeRejected, by: "ben", now: noon) {} == nil)
            #expect(try await store.pendingChanges().isEmpty)
            let ended = try await store.events(run: nil, since: nil, limit: 9).suffix(2)
            #expect(ended.map(\.detail) == ["campaign b", "campaign a"])
            #expect(ended.allSatisfy { $0.kind == "change_rejected" })
        }
        Promise("a change that is being ended is not replaced before its files are written") { store in
            let first = try held(try await hold(change(), store))
            // A save that comes between waits, and then finds the change gone.
            async let saved = hold(change(text: "later"), store, insteadOf: first.id)
            let ends = [ChangeToEnd(first.id, detail: "y")]
            let gone = try await store.endChanges(ends, .changeReleased, by: "ben", now: noon) {}
            switch try await saved {
            case .held(let later): #expect(gone == first.id && later.count == 1)
            case .changedMeanwhile(let index): #expect(gone == nil && index == 0)
            case .tooMany: Issue.record("there is room")
            }
        }
        Promise("the texts of one save wait together or not at all") { store in
            func texts(_ names: [String], known: [Int64?] = []) -> [TextToHold] {
                names.enumerated().map { index, name in
                    TextToHold(
                        change: change(name), known: index < known.count ? known[index] : nil,
                        detail: "campaign \(name)")
                }
            }
            let first = try held(try await hold(change("a"), store))
            #expect(try await store.holdChanges(texts(["b", "c"]), most: 2) == .tooMany)
            #expect(try await store.holdChanges(texts(["b", "a"]), most: 9) == .changedMeanwhile(at: 1))
            #expect(try await store.pendingChanges().map(\.id) == [first.id])
            let events = try await store.events(run: nil, since: nil, limit: 9).count
            guard
                case .held(let both) = try await store.holdChanges(texts(["b", "a"], known: [nil, first.id]), most: 2)
            else { throw StoreError.audienceTooLarge }
            #expect(both.map { $0?.name } == ["b", "a"])
            #expect(try await store.pendingChanges().map(\.id) == both.compactMap { $0?.id })
            #expect(try await store.events(run: nil, since: nil, limit: 9).count == events + 2)
            var withdrawn = texts(["b", "c"], known: [both[0]?.id])
            withdrawn[0].withdraws = true
            #expect(try await store.holdChanges(withdrawn, most: 2) != .tooMany)
            #expect(try await store.pendingChanges().map(\.name) == ["a", "c"])
            let kinds = try await store.events(run: nil, since: nil, limit: 9).suffix(2).map(\.kind)
            #expect(kinds == ["change_rejected", "change_held"])
        }
    }
}
