import Model
import Store
import Testing

/// What is signed is what is sent, down to the members of a segment and to each signature's own reach.
extension AccessLogContract {
    private static func fill(_ store: any AllRoles) async throws {
        _ = try await store.importDevices(try (1...9).map { try record($0) }, now: noon)
    }

    private static func set(
        _ members: [Int], in segment: String = "vip", mode: SegmentImportMode = .replace, _ store: any AllRoles
    ) async throws {
        let work = try await store.importSegment(segment, mode: mode, topic: nil)
        try await work.append(members.map { .installation("install-\($0)") })
        _ = try await work.commit(now: noon)
    }

    private static func campaign(
        _ name: String = "new-podcast", of segment: String = "vip", sql: String? = nil
    ) throws -> RunDefinition {
        try definition(name, audience: .segment(segment)) { $0.audienceSQL = sql }
    }

    /// A run that two people have signed, with what its segments hold now.
    private static func signed(
        _ store: any AllRoles, _ definition: RunDefinition, reaches: [Int] = [3, 3], now reach: Int = 3,
        drift: Double = 50
    ) async throws -> Int64 {
        let request = ApprovalRequest(
            definition: definition, occurrence: "", plan: "p", digest: definition.campaign.name, reach: reach, needs: 2,
            authors: ["os:carl"], askedBy: "os:carl", askedAt: noon)
        let asked = try await store.requestApproval(request, isAnew: false, by: "carl")
        for (name, reach) in zip(["anna", "ben"], reaches) {
            let signature = ApprovalSignature(
                identity: "os:\(name)", name: name, signedAt: noon, reach: reach, uid: name == "anna" ? 7 : nil)
            let record = try await store.sign(asked.request.id, signature, by: "x")
            #expect(record.signatures.last?.uid == signature.uid)
        }
        let demand = ApprovalDemand(
            policy: ApprovalPolicy(
                rule: .init(above: 1, needs: 2, driftPercent: drift), reach: reach, authors: ["os:carl"]),
            people: People(), request: request, segments: try await store.segmentContents(of: definition.campaign))
        return try await store.createApprovedRun(
            definition, occurrence: "one", now: noon, by: "carl", notes: [], files: [:], demand: demand
        ).run.id
    }

    /// Nil: it was written down.
    private static func refusal(_ store: any AllRoles, _ run: Int64) async throws -> String? {
        #expect(try await store.claim(run, by: "a", now: noon) == .claimed)
        do {
            _ = try await store.freeze(run, by: "a", now: noon) { _ in }
            return nil
        } catch let grown as AudienceGrew {
            #expect(try await store.run(run)?.halt == .grown)
            return grown.reason
        }
    }

    @PromiseList static var signedContents: [Promise] {
        Promise("what a segment holds is told by its members, whoever wrote them and in whichever order") { store in
            try await fill(store)
            let campaign = try campaign().campaign
            func contents() async throws -> SegmentContents { try await store.segmentContents(of: campaign) }
            #expect(try await contents() == SegmentContents())
            try await set([1, 2, 3], store)
            let first = try await contents()
            // sha256sum of the ids 1, 2 and 3, each as 8 bytes.
            #expect(first.members == ["vip": "3 ca73761ddabfffcbe51170be0b07f67bafcdbed202545c60707573d36dc935b4"])
            try await set([3, 2, 1], store)
            #expect(try await contents() == first)
            try await set([1, 2, 4], store)
            #expect(first.changes(to: try await contents()) == ["vip"])
            try await set([4], mode: .remove, store)
            try await set([3], mode: .add, store)
            #expect(try await contents() == first)
            // Other segments are no matter.
            try await set([9], in: "others", store)
            #expect(try await contents() == first)
        }
        Promise("what a segment names in turn is part of what it holds, and a query may name any") { store in
            try await fill(store)
            try await set([1, 2, 3], store)
            try await set([4], in: "other", store)
            let inner = AudienceExpression.segment("vip")
            try await store.defineSegment("outer", source: "segment(\"vip\")", expression: inner, now: noon)
            let held = try await store.segmentContents(of: try campaign(of: "outer").campaign)
            #expect(held.expressions == ["outer": "segment(\"vip\")"] && held.members.keys.sorted() == ["vip"])
            let query = "SELECT device_id FROM segment_view"
            let all = try await store.segmentContents(of: try campaign(sql: query).campaign)
            #expect(all.members.keys.sorted() == ["other", "vip"] && all.expressions.keys.sorted() == ["outer"])
        }
        Promise("a run that was signed for the members of a segment is not sent to others") { store in
            try await fill(store)
            try await set([1, 2, 3], store)
            let same = try await signed(store, try campaign("same"))
            let run = try await signed(store, try campaign())
            #expect(try await refusal(store, same) == nil)
            try await set([4, 5, 6], store)
            #expect(try await refusal(store, run)?.contains("planned before a change to segment vip") == true)
            #expect(try await store.run(run)?.counts.audience == 0)
            await #expect(throws: StoreError.grownBeyondApproval(run: run)) {
                try await store.change(run, to: .running, reason: nil, now: noon, by: "ray")
            }
        }
        Promise("no signature lets more devices go than its own reach and drift") { store in
            try await fill(store)
            try await set([1, 2, 3, 4, 5, 6], store)
            // Signed for 4 and 5 with 50 %: 6 at most, though 5 may have been counted since.
            let run = try await signed(store, try campaign("six"), reaches: [4, 5], now: 5)
            #expect(try await refusal(store, run) == nil)
            try await set([7], mode: .add, store)
            let grown = try await signed(store, try campaign("seven"), reaches: [4, 5], now: 5)
            #expect(try await refusal(store, grown)?.contains("approvals allow at most 6") == true)
        }
        Promise("a change held to the state that was seen leaves any other state as it is") { store in
            try await fill(store)
            let run = try await store.createRun(try definition(), occurrence: "o", now: noon, by: "test").run
            let seen = SeenRun(run)
            try await store.change(run.id, to: .paused, reason: "look", now: noon, by: "ray", seen: seen)
            for state in [RunState.running, .cancelled] {
                await #expect(throws: StoreError.runChanged(run: run.id)) {
                    try await store.change(run.id, to: state, reason: nil, now: noon, by: "ben", seen: seen)
                }
            }
            let paused = try #require(try await store.run(run.id))
            #expect(paused.state == .paused && paused.stateReason == "look")
            try await store.change(run.id, to: .running, reason: nil, now: noon, by: "ben", seen: SeenRun(paused))
        }
    }
}
