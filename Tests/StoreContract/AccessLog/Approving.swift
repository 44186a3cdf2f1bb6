import Model
import Store
import Testing

extension AccessLogContract {
    private static func request(
        _ digest: String = "d1", occurrence: String = "", reach: Int = 100, askedBy: String = "os:carl"
    ) throws -> ApprovalRequest {
        ApprovalRequest(
            definition: try definition(), occurrence: occurrence, plan: "p1-\(digest)", digest: digest, reach: reach,
            needs: 2, authors: [askedBy], askedBy: askedBy, askedAt: noon)
    }

    private static func signature(_ name: String, at seconds: Int = 0, isRejection: Bool = false) -> ApprovalSignature {
        ApprovalSignature(
            identity: "os:\(name)", name: name, signedAt: noon + .seconds(seconds), reach: 100,
            isRejection: isRejection, reason: isRejection ? "wrong link" : nil)
    }

    private static func demand(
        _ request: ApprovalRequest, reach: Int = 100, emergencyOverride: String? = nil
    ) -> ApprovalDemand {
        ApprovalDemand(
            policy: ApprovalPolicy(rule: .init(above: 10, needs: 2), reach: reach, authors: []), people: People(),
            request: request, emergencyOverride: emergencyOverride)
    }

    private static func start(
        _ store: any AllRoles, _ demand: ApprovalDemand, _ occurrence: String, at seconds: Int = 10
    ) async throws -> Run {
        try await store.createApprovedRun(
            demand.request.definition, occurrence: occurrence, now: noon + .seconds(seconds), by: "amy", notes: [],
            files: [:], demand: demand
        ).run
    }

    @PromiseList static var approvals: [Promise] {
        Promise("a run is made with the signatures of its plan, once") { store in
            let asked = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            #expect(try await store.observation(now: noon).openApprovals == 1)
            let demand = demand(asked.request)
            for name in ["anna", "ben"] {
                await #expect(throws: Unapproved.self) { try await start(store, demand, "one") }
                _ = try await store.sign(asked.request.id, signature(name), by: "x")
            }
            #expect(try await store.runs(limit: 9).isEmpty)
            let run = try await start(store, demand, "one")
            #expect(try await start(store, demand, "one").id == run.id)
            await #expect(throws: Unapproved.self) { try await start(store, demand, "two") }
            let used = try await store.approvals(in: nil, limit: 9)
            #expect(used.map(\.request.state) == [.used] && used[0].request.run == run.id)
            #expect(used[0].signatures.map(\.name) == ["anna", "ben"])
            let kinds = try await store.events(run: nil, since: nil, limit: 9).map { "\($0.kind)" }
            #expect(kinds == ["approval_requested", "plan_signed", "plan_signed", "run_created", "approval_used"])
            #expect(try await store.verify(budgets: [:], faultsMax: 9)[ApprovalCheck.name]?.compared == 1)
            #expect(try await store.verify(budgets: [:], faultsMax: 9)[ApprovalCheck.name]?.faultCount == 0)
            await #expect(throws: StoreError.approvalClosed(.used)) {
                try await store.sign(asked.request.id, signature("dora"), by: "x")
            }
        }
        Promise("signatures are for one plan and one occurrence, and whoever asked cannot give one") { store in
            let asked = try await store.requestApproval(try request(occurrence: "mon"), isAnew: false, by: "carl")
            for name in ["anna", "ben"] { _ = try await store.sign(asked.request.id, signature(name), by: "x") }
            for other in [try request(occurrence: "tue"), try request("d2", occurrence: "mon")] {
                await #expect(throws: Unapproved.self) { try await start(store, demand(other), "r") }
            }
            let own = try await store.requestApproval(
                try request("d3", askedBy: "os:anna"), isAnew: false, by: "anna")
            for name in ["anna", "ben"] { _ = try await store.sign(own.request.id, signature(name), by: "x") }
            await #expect(throws: Unapproved.self) { try await start(store, demand(own.request), "r") }
            _ = try await store.sign(own.request.id, signature("dora"), by: "x")
            #expect(try await start(store, demand(own.request), "r").occurrence == "r")
        }
        Promise("a plan that changes replaces the one of its occurrence, with its signatures") { store in
            let first = try await store.requestApproval(try request(occurrence: "mon"), isAnew: false, by: "carl")
            for name in ["anna", "ben"] { _ = try await store.sign(first.request.id, signature(name), by: "x") }
            let second = try await store.requestApproval(
                try request("d2", occurrence: "mon"), isAnew: false, by: "carl")
            #expect(try await store.approvals(in: [.open], limit: 9) == [second])
            let again = try await store.requestApproval(try request(occurrence: "mon"), isAnew: false, by: "carl")
            #expect(again.request.id != first.request.id && again.signatures.isEmpty)
            await #expect(throws: Unapproved.self) { try await start(store, demand(again.request), "mon") }
        }
        Promise("the same plan asked for again keeps its signatures, and the one who asks is no author") { store in
            let first = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            _ = try await store.sign(first.request.id, signature("anna"), by: "x")
            let again = try await store.requestApproval(
                try request(reach: 103, askedBy: "os:anna"), isAnew: false, by: "anna")
            #expect(again.request.id == first.request.id && again.request.reach == 103)
            #expect(again.signatures.map(\.name) == ["anna"] && again.request.authors == ["os:carl"])
        }
        Promise("a rejection ends a plan until somebody asks anew") { store in
            let asked = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            for name in ["anna", "ben"] { _ = try await store.sign(asked.request.id, signature(name), by: "x") }
            _ = try await store.sign(asked.request.id, signature("dora", isRejection: true), by: "dora")
            let known = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            #expect(known.request.id == asked.request.id && known.request.state == .rejected)
            do {
                _ = try await start(store, demand(asked.request), "one")
                Issue.record("it was made")
            } catch let error as Unapproved {
                #expect(error.cause == .rejected(by: "dora", reason: "wrong link"))
            }
            let anew = try await store.requestApproval(try request(), isAnew: true, by: "carl")
            #expect(anew.request.id != asked.request.id && anew.signatures.isEmpty)
        }
        Promise("a signature that has lapsed is not revived by a clock that is set back") { store in
            let asked = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            for name in ["anna", "ben"] { _ = try await store.sign(asked.request.id, signature(name), by: "x") }
            try await store.recordEvent(
                kind: .filesRead, run: nil, actor: "x", detail: "", files: [:], now: noon + .seconds(86_500))
            await #expect(throws: Unapproved.self) { try await start(store, demand(asked.request), "one") }
            for name in ["anna", "ben"] {
                _ = try await store.sign(asked.request.id, signature(name, at: 20), by: "x")
            }
            #expect(try await start(store, demand(asked.request), "one", at: 30).occurrence == "one")
        }
        Promise("a signature that is brought names signer and bringer, and brought again it keeps its place") { store in
            let asked = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            let key = signature("eve, by a key")
            let first = try await store.sign(asked.request.id, key, by: "ben", now: noon + .seconds(50))
            let events = try await store.events(run: nil, since: nil, limit: 9)
            #expect(events.last?.at == noon + .seconds(50) && events.last?.actor.name == "ben")
            #expect(events.last?.detail.contains("signature of eve, by a key, submitted by ben") == true)
            #expect(first.signatures.map(\.signedAt) == [noon] && first.signatures[0].seenAt == noon + .seconds(50))
            try await store.recordEvent(
                kind: .filesRead, run: nil, actor: "x", detail: "", files: [:], now: noon + .seconds(86_500))
            let again = try await store.sign(asked.request.id, key, by: "ben", now: noon + .seconds(60))
            #expect(again.signatures.map(\.seenAt) == [noon + .seconds(86_500)])
            // Given anew by somebody who is there, it is another one.
            let anew = try await store.sign(asked.request.id, signature("eve, by a key", at: 70), by: "eve")
            #expect(anew.signatures.map(\.seenAt) == [noon + .seconds(70)])
        }
        Promise("a clock that was set back on a store where nothing happened revives no signature") { store in
            func look(_ wall: Int, _ uptime: Int) async throws {
                _ = try await store.noteClocks(
                    ClockReading(wall: noon + .seconds(wall), uptime: .seconds(uptime), boot: "b"), by: "x")
            }
            // What was put right before anybody signed is no matter.
            try await look(900_000, 0)
            try await look(0, 1)
            let demands = [demand(try request()), demand(try request("d2"))]
            for demand in demands {
                let asked = try await store.requestApproval(demand.request, isAnew: false, by: "carl")
                for name in ["anna", "ben"] { _ = try await store.sign(asked.request.id, signature(name), by: "x") }
            }
            #expect(try await start(store, demands[0], "one").occurrence == "one")
            // Two days go by, and then it is the first again.
            try await look(172_800, 172_801)
            try await look(20, 172_802)
            await #expect(throws: Unapproved.self) { try await start(store, demands[1], "two", at: 30) }
        }
        Promise("what nothing waits for is ended, and a daemon looks at what may be sent") { store in
            let old = noon - .seconds(90_000)
            func ask(_ digest: String, _ occurrence: String = "", at moment: Timestamp = old) async throws -> Int64 {
                var asked = try request(digest, occurrence: occurrence)
                asked.askedAt = moment
                return try await store.requestApproval(asked, isAnew: false, by: "carl").request.id
            }
            let idle = try await ask("idle")
            let signed = try await ask("signed")
            _ = try await store.sign(signed, signature("anna"), by: "anna")
            let young = try await ask("young", at: noon)
            let sent = try await ask("sent", "mon")
            _ = try await store.createRun(try definition(), occurrence: "mon", now: noon, by: "x")
            let waits = try await ask("waits", "tue")
            let rejected = try await ask("rejected", "wed")
            _ = try await store.sign(rejected, signature("dora", isRejection: true), by: "dora")
            func awaited(since moment: Timestamp = noon, limit: Int = 9) async throws -> [Int64] {
                try await store.awaitedApprovals(rejectedSince: moment, limit: limit).map(\.request.id)
            }
            #expect(try await awaited() == [rejected, waits])
            #expect(try await awaited(limit: 1) == [rejected])
            #expect(try await awaited(since: noon + .seconds(1)) == [waits])
            let found = try await store.approval(campaign: "new-podcast", occurrence: "wed", digest: "rejected")
            #expect(found?.request.id == rejected && found?.signatures.map(\.name) == ["dora"])
            #expect(try await store.approval(campaign: "new-podcast", occurrence: "", digest: "rejected") == nil)
            func open(_ text: String, limit: Int = 9) async throws -> [Int64] {
                try await store.openApprovals(startingWith: text, limit: limit).map(\.request.id)
            }
            for (text, ids) in [("sign", [signed]), ("p1-sign", []), ("igned", []), ("rejected", [])] {
                #expect(try await open(text) == ids, "\(text)")
            }
            #expect(try await open("", limit: 2) == [waits, sent])
            try await store.lapseApprovals(before: noon - .seconds(86_400))
            #expect(try await store.approvals(in: [.lapsed], limit: 9).map(\.request.id) == [sent, idle])
            #expect(try await store.approvals(in: [.open], limit: 9).map(\.request.id) == [waits, young, signed])
        }
        Promise("the newest finished run that had signatures is known") { store in
            #expect(try await store.latestSignedRun(campaign: "new-podcast") == nil)
            func end(_ run: Run) async throws -> Int64 {
                _ = try await store.claim(run.id, by: "a", now: noon)
                _ = try await store.freeze(run.id, by: "a", now: noon) { _ in }
                try await store.release(run.id, by: "a", state: .finished, reason: nil, now: noon)
                return run.id
            }
            func signed(_ digest: String) async throws -> Run {
                let asked = try await store.requestApproval(try request(digest), isAnew: false, by: "carl")
                for name in ["anna", "ben"] { _ = try await store.sign(asked.request.id, signature(name), by: "x") }
                return try await start(store, demand(asked.request), digest)
            }
            let first = try await end(signed("d1"))
            #expect(try await store.latestSignedRun(campaign: "new-podcast")?.id == first)
            // Neither one that needed none, nor one without them, nor one that is not over.
            _ = try await end(store.createRun(try definition(), occurrence: "few", now: noon, by: "x").run)
            _ = try await end(start(store, demand(try request("d2"), emergencyOverride: "quake"), "glass"))
            let open = try await signed("d3")
            #expect(try await store.latestSignedRun(campaign: "new-podcast")?.id == first)
            #expect(try await store.latestSignedRun(campaign: "other") == nil)
            let last = try await end(open)
            #expect(try await store.latestSignedRun(campaign: "new-podcast")?.id == last)
        }
        Promise("a run under an emergency override says so, and needs no signature") { store in
            let run = try await start(store, demand(try request(), emergencyOverride: "earthquake"), "one")
            let events = try await store.events(run: run.id, since: nil, limit: 9)
            #expect(events.last?.kind == "glass_broken")
            #expect(events.last?.detail.contains("earthquake") == true)
            #expect(try await store.verify(budgets: [:], faultsMax: 9)[ApprovalCheck.name]?.faultCount == 0)
        }
        Promise("a request that was withdrawn takes no signature, and the plan may be asked for again") { store in
            let asked = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            for name in ["anna", "ben"] { _ = try await store.sign(asked.request.id, signature(name), by: "x") }
            let ended = try await store.withdrawApproval(asked.request.id, by: "carl", now: noon + .seconds(5))
            #expect(ended.request.state == .withdrawn && ended.signatures.count == 2)
            await #expect(throws: StoreError.approvalClosed(.withdrawn)) {
                try await store.sign(asked.request.id, signature("dora"), by: "x")
            }
            await #expect(throws: StoreError.approvalClosed(.withdrawn)) {
                try await store.withdrawApproval(asked.request.id, by: "carl", now: noon)
            }
            await #expect(throws: Unapproved.self) { try await start(store, demand(asked.request), "one") }
            let again = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            #expect(again.request.id != asked.request.id && again.signatures.isEmpty)
            let kinds = try await store.events(run: nil, since: nil, limit: 9).map(\.kind)
            #expect(kinds.suffix(2) == ["approval_withdrawn", "approval_requested"])
        }
        Promise("a new count of a request that was closed meanwhile opens no other, and one of an open one is kept") {
            store in
            var asked = try await store.requestApproval(try request(), isAnew: false, by: "carl").request
            asked.reach = 140
            asked.plan = "p1-d1-140"
            let counted = try await store.recountApproval(asked)
            #expect(counted.request.reach == 140 && counted.request.plan == "p1-d1-140")
            _ = try await store.withdrawApproval(asked.id, by: "carl", now: noon)
            await #expect(throws: StoreError.approvalClosed(.withdrawn)) { try await store.recountApproval(asked) }
            #expect(try await store.approvals(in: nil, limit: 9).map(\.request.state) == [.withdrawn])
        }
        Promise("the note of a request is that of the account which asked, whatever others ask") { store in
            var asked = try request()
            asked.note = "before 9, please"
            _ = try await store.requestApproval(asked, isAnew: true, by: "carl")
            var other = try request(askedBy: "os:dora")
            other.note = "carl says it is urgent"
            let again = try await store.requestApproval(other, isAnew: true, by: "dora")
            #expect(again.request.askedBy == "os:carl" && again.request.note == "before 9, please")
            asked.note = "before 10"
            #expect(try await store.requestApproval(asked, isAnew: true, by: "carl").request.note == "before 10")
        }
        Promise("a token's signature on an open request counts while the token may approve, and after it has expired") {
            store in
            func token(_ name: String, _ role: AccessRole, expires seconds: Int? = nil) -> AccessToken {
                AccessToken(
                    id: 0, name: name, role: role, topic: nil, createdAt: noon, createdBy: "a",
                    expiresAt: seconds.map { noon + .seconds($0) }, revokedAt: nil, lastUsedAt: nil)
            }
            for (name, seconds) in [("anna", nil), ("ben", 5), ("dora", nil)] as [(String, Int?)] {
                _ = try await store.createAccessToken(
                    token(name, .approver, expires: seconds), secretHash: name, by: "a")
            }
            let asked = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            func sign(_ identity: String) async throws {
                let signature = ApprovalSignature(identity: identity, name: identity, signedAt: noon, reach: 100)
                _ = try await store.sign(asked.request.id, signature, by: "x")
            }
            for identity in ["token:anna", "token:ben", "os:dora", "token:gone"] { try await sign(identity) }
            func revoked() async throws -> [String] {
                try #require(try await store.approval(.number(asked.request.id))).signatures.filter(\.isRevoked)
                    .map(\.identity)
            }
            #expect(try await revoked().isEmpty)
            _ = try await store.revokeAccessToken("dora", keepsAdmin: false, by: "a", now: noon + .seconds(9))
            #expect(try await revoked().isEmpty)
            _ = try await store.revokeAccessToken("anna", keepsAdmin: false, by: "a", now: noon + .seconds(9))
            #expect(try await revoked() == ["token:anna"])
            let four = ApprovalDemand(
                policy: ApprovalPolicy(rule: .init(above: 10, needs: 4), reach: 100, authors: []), people: People(),
                request: asked.request)
            await #expect(throws: Unapproved.self) { try await start(store, four, "one") }
            let three = ApprovalDemand(
                policy: ApprovalPolicy(rule: .init(above: 10, needs: 3), reach: 100, authors: []), people: People(),
                request: asked.request)
            #expect(try await start(store, three, "one").occurrence == "one")
            // What was used is history.
            #expect(try await revoked().isEmpty)
            let next = try await store.requestApproval(try request(), isAnew: false, by: "carl")
            _ = try await store.createAccessToken(token("eve", .approver), secretHash: "eve", by: "a")
            let signature = ApprovalSignature(identity: "token:eve", name: "eve", signedAt: noon, reach: 100)
            #expect(try await store.sign(next.request.id, signature, by: "x").signatures.allSatisfy { !$0.isRevoked })
            // The last admin of all apps keeps the role, so there is another one.
            _ = try await store.createAccessToken(token("root", .admin), secretHash: "root", by: "a")
            _ = try await store.changeAccessToken("eve", role: .sender, topic: nil, by: "a", now: noon)
            #expect(try await store.approval(.number(next.request.id))?.signatures.map(\.isRevoked) == [true])
            _ = try await store.changeAccessToken("eve", role: .approver, topic: nil, by: "a", now: noon)
            #expect(try await store.approval(.number(next.request.id))?.signatures.map(\.isRevoked) == [false])
            #expect(try await store.verify(budgets: [:], faultsMax: 9)[ApprovalCheck.name]?.faultCount == 0)
        }
        Promise("a request is found again by its number, its plan and its run, with the words of those involved") {
            store in
            var first = try request()
            first.note = "before 9, please"
            let asked = try await store.requestApproval(first, isAnew: false, by: "carl")
            #expect(asked.request.note == "before 9, please")
            // The daemon's own request says nothing, and takes no word away.
            let counted = try await store.requestApproval(try request(reach: 101), isAnew: false, by: "x")
            #expect(counted.request.note == "before 9, please")
            var yes = signature("anna")
            yes.reason = "looks right"
            _ = try await store.sign(asked.request.id, yes, by: "x")
            _ = try await store.sign(asked.request.id, signature("ben"), by: "x")
            let run = try await start(store, demand(asked.request), "one")
            for name in [ApprovalName.number(asked.request.id), .digest("d1"), .run(run.id)] {
                let found = try await store.approval(name)
                #expect(found?.request.id == asked.request.id && found?.request.state == .used)
                #expect(found?.request.note == "before 9, please" && found?.signatures.count == 2)
            }
            #expect(try await store.approval(.number(99)) == nil)
            #expect(try await store.approval(.digest("d")) == nil)
            let events = try await store.events(run: nil, since: nil, limit: 9)
            #expect(events.first { $0.kind == "approval_requested" }?.detail.contains("before 9, please") == true)
            let used = try await store.events(run: run.id, since: nil, limit: 9).first { $0.kind == "approval_used" }
            #expect(used?.detail.contains("signed by anna (looks right), ben") == true, "\(used?.detail ?? "")")
            #expect(used?.detail.contains("note of os:carl: before 9, please") == true)
        }
        Promise("an occurrence that is not sent leaves no plan that waits") { store in
            _ = try await store.requestApproval(try request(occurrence: "mon"), isAnew: false, by: "carl")
            try await store.lapseApprovals(campaign: "new-podcast", occurrence: "mon", now: noon)
            #expect(try await store.approvals(in: nil, limit: 9).map(\.request.state) == [.lapsed])
        }
    }
}
