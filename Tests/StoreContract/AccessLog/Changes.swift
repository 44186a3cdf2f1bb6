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
        guard case .held(let change) = result else { throw StoreError.audienceTooLarge }
        return change
    }

    @PromiseList static var changes: [Promise] {
        Promise("a change that waits is found again with its author and its text, and is on record") { store in
            let held = try held(
                try await store.holdChange(change(), insteadOf: nil, most: 2, detail: "campaign spring"))
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
            let first = try held(try await store.holdChange(change(), insteadOf: nil, most: 9, detail: "x"))
            #expect(try await store.holdChange(change(), insteadOf: nil, most: 9, detail: "x") == .changedMeanwhile)
            #expect(
                try await store.holdChange(change(), insteadOf: first.id + 1, most: 9, detail: "x")
                    == .changedMeanwhile)
            let second = try held(
                try await store.holdChange(
                    change(text: "other", base: nil), insteadOf: first.id, most: 9, detail: "x"))
            #expect(second.id > first.id && second.base == nil)
            #expect(try await store.pendingChange(first.id) == nil)
            #expect(try await store.pendingChanges().map(\.id) == [second.id])
        }
        Promise("only so many changes wait, and one in place of another is none more") { store in
            let first = try held(try await store.holdChange(change("a"), insteadOf: nil, most: 2, detail: "x"))
            _ = try held(try await store.holdChange(change("b"), insteadOf: nil, most: 2, detail: "x"))
            #expect(try await store.holdChange(change("c"), insteadOf: nil, most: 2, detail: "x") == .tooMany)
            _ = try held(try await store.holdChange(change("a"), insteadOf: first.id, most: 2, detail: "x"))
            #expect(try await store.pendingChanges().map(\.name).sorted() == ["a", "b"])
        }
        Promise("a change ends once, and its number is not used again") { store in
            let first = try held(try await store.holdChange(change(), insteadOf: nil, most: 2, detail: "x"))
            #expect(try await store.endChange(first.id, .changeReleased, by: "ben", detail: "y", now: noon))
            #expect(try await store.endChange(first.id, .changeRejected, by: "ben", detail: "z", now: noon) == false)
            let kinds = try await store.events(run: nil, since: nil, limit: 9).map(\.kind)
            #expect(kinds.suffix(2) == ["change_held", "change_released"])
            let second = try held(try await store.holdChange(change(), insteadOf: nil, most: 2, detail: "x"))
            #expect(second.id > first.id)
        }
    }
}
