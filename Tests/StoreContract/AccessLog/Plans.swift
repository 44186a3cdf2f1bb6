import Model
import Store
import Testing

extension AccessLogContract {
    private static func plan(_ file: String, digest: String = "d", at moment: Timestamp = noon) throws -> SavedPlan {
        SavedPlan(
            file: file, occurrence: "the-reef", isScheduled: false, token: "p2-x", digest: digest,
            definition: try definition("spring"), shown: "{\"reach\": 4}", madeAt: moment, madeBy: "anna",
            maker: "token:anna")
    }

    @PromiseList static var plans: [Promise] {
        Promise("a plan that was saved is found by its number and its digest, with all that was shown") { store in
            var saved = try plan("spring")
            saved.id = try await store.savePlan(saved)
            #expect(try await store.savedPlan(saved.id) == saved)
            #expect(try await store.savedPlan(digest: "d") == saved)
            #expect(try await store.savedPlan(saved.id + 1) == nil)
            #expect(try await store.savedPlan(digest: "e") == nil)
            let contributors = { (digest: String) in
                try await store.contributors(campaign: "spring", occurrence: "", digest: digest)
            }
            // An approver who plans the same.
            var again = try plan("spring")
            again.maker = "token:ben"
            _ = try await store.savePlan(again)
            #expect(try await contributors("d") == ["token:anna"])
            #expect(try await contributors("e") == [])
            var incomplete = try plan("spring", digest: "e")
            incomplete.token = nil
            incomplete.isScheduled = true
            incomplete.id = try await store.savePlan(incomplete)
            #expect(try await store.savedPlan(incomplete.id) == incomplete)
        }
        Promise("the plans of a campaign are listed page by page, the newest first") { store in
            var numbers: [Int64] = []
            for file in ["spring", "autumn", "spring", "spring"] {
                numbers.append(try await store.savePlan(try plan(file)))
            }
            let all = try await store.savedPlans(file: nil, before: nil, limit: 9)
            #expect(all.map(\.id) == numbers.reversed())
            let first = try await store.savedPlans(file: "spring", before: nil, limit: 2)
            #expect(first.map(\.id) == [numbers[3], numbers[2]])
            let second = try await store.savedPlans(file: "spring", before: first.last?.id, limit: 2)
            #expect(second.map(\.id) == [numbers[0]])
        }
        Promise("a send's new name is kept with its plan, and with no other") { store in
            let first = try await store.savePlan(try plan("spring"))
            let second = try await store.savePlan(try plan("spring"))
            try await store.renamePlan(first, to: "summer")
            #expect(try await store.savedPlan(first)?.occurrence == "summer")
            #expect(try await store.savedPlan(second)?.occurrence == "the-reef")
        }
        Promise("a plan is deleted with the first one that is saved after its time") { store in
            let old = try await store.savePlan(try plan("spring"))
            let kept = try await store.savePlan(try plan("spring", at: noon + .seconds(1)))
            let last = try await store.savePlan(try plan("spring", at: noon + SavedPlans.kept + .seconds(1)))
            #expect(try await store.savedPlans(file: nil, before: nil, limit: 9).map(\.id) == [last, kept])
            #expect(try await store.savedPlan(old) == nil)
        }
    }
}
