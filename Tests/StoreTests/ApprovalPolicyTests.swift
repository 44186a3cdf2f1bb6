import Model
import Store
import Testing

/// Who may sign what, until when and for how many. Hours count from noon; a signature lapses after 24 of them.
struct ApprovalPolicyTests {
    struct Sign: Sendable {
        var identity: String
        var at = 0
        /// The latest that the store has seen since.
        var seenAt: Int?
        var reach = 1000
        var isRejection = false
        var uid: Int64?
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var signs: [Sign]
        var reach = 1000
        var now = 1
        var notByAuthor = true
        /// Of each signature; nil: it counts.
        var faults: [ApprovalPolicy.Fault?]
        var isApproved = false
    }

    static let rows: [Row] = [
        Row(testDescription: "nobody", signs: [], faults: []),
        Row(testDescription: "one of two", signs: [Sign(identity: "os:anna")], faults: [nil]),
        Row(
            testDescription: "two people", signs: [Sign(identity: "os:anna"), Sign(identity: "os:ben")],
            faults: [nil, nil], isApproved: true),
        Row(
            testDescription: "one person with two accounts",
            signs: [Sign(identity: "os:anna"), Sign(identity: "token:anna-mac")], faults: [nil, .samePerson("anna")]),
        Row(
            testDescription: "two names of one uid",
            signs: [
                Sign(identity: "os:anna", uid: 7), Sign(identity: "os:ben", uid: 7), Sign(identity: "os:dora", uid: 8),
            ], faults: [nil, .samePerson("ben"), nil], isApproved: true),
        Row(
            testDescription: "an author's other account",
            signs: [Sign(identity: "os:ben"), Sign(identity: "git:carl@x")],
            faults: [nil, .byAuthor]),
        Row(
            testDescription: "an author, where that is allowed",
            signs: [Sign(identity: "os:ben"), Sign(identity: "os:carl")], notByAuthor: false, faults: [nil, nil],
            isApproved: true),
        Row(
            testDescription: "a day later", signs: [Sign(identity: "os:anna"), Sign(identity: "os:ben", at: 24)],
            now: 24,
            faults: [nil, nil], isApproved: true),
        Row(
            testDescription: "more than a day later",
            signs: [Sign(identity: "os:anna"), Sign(identity: "os:ben", at: 24)], now: 25, faults: [.lapsed, nil]),
        Row(
            testDescription: "lapsed, and then the clock was set back",
            signs: [Sign(identity: "os:anna", seenAt: 30), Sign(identity: "os:ben")], now: 2, faults: [.lapsed, nil]),
        Row(
            testDescription: "signed by a clock that ran ahead",
            signs: [Sign(identity: "os:anna", at: 9), Sign(identity: "os:ben")], now: 2, faults: [.fromFuture, nil]),
        Row(
            testDescription: "a reach at the edge of the drift",
            signs: [Sign(identity: "os:anna"), Sign(identity: "os:ben")],
            reach: 1050, faults: [nil, nil], isApproved: true),
        Row(
            testDescription: "a reach beyond it",
            signs: [Sign(identity: "os:anna"), Sign(identity: "os:ben", reach: 1051)], reach: 1051,
            faults: [.drifted(reach: 1000), nil]),
        Row(
            testDescription: "a reach that has shrunk", signs: [Sign(identity: "os:anna"), Sign(identity: "os:ben")],
            reach: 949, faults: [.drifted(reach: 1000), .drifted(reach: 1000)]),
        Row(
            testDescription: "an account that nobody named",
            signs: [Sign(identity: "os:eve"), Sign(identity: "os:ben")],
            faults: [.unknownAccount(account: "os:eve"), nil]),
        Row(
            testDescription: "a key that is nobody's any more",
            signs: [Sign(identity: "ed25519:AAAA"), Sign(identity: "os:ben")],
            faults: [.unknownAccount(account: "ed25519:AAAA"), nil]),
        Row(
            testDescription: "mail and proxy in other letters",
            signs: [Sign(identity: "git:Carl@X"), Sign(identity: "proxy:anna"), Sign(identity: "os:anna")],
            faults: [.byAuthor, nil, .samePerson("anna")]),
        Row(
            testDescription: "a second account counts where the first has lapsed",
            signs: [
                Sign(identity: "os:anna"), Sign(identity: "token:anna-mac", at: 20), Sign(identity: "os:ben", at: 20),
            ], now: 30, faults: [.lapsed, nil, nil], isApproved: true),
    ]

    private static let people = People([
        "anna": ["os:anna", "token:anna-mac", "proxy:Anna"], "ben": ["os:ben"], "carl": ["os:carl", "git:carl@x"],
        "dora": ["os:dora"],
    ])

    private static func at(_ hour: Int) -> Timestamp {
        Timestamp(milliseconds: 1_800_000_000_000) + .seconds(hour * 3600)
    }

    private static func signatures(_ signs: [Sign]) -> [ApprovalSignature] {
        signs.map { sign in
            ApprovalSignature(
                identity: sign.identity, name: sign.identity, signedAt: at(sign.at), seenAt: sign.seenAt.map(at),
                reach: sign.reach, isRejection: sign.isRejection, uid: sign.uid)
        }
    }

    private static func policy(_ row: Row) -> ApprovalPolicy {
        let rule = ApprovalRules.Rule(above: 10, needs: 2, notByAuthor: row.notByAuthor)
        return ApprovalPolicy(rule: rule, reach: row.reach, authors: ["carl"])
    }

    @Test(arguments: rows) func `a signature counts, or says why not`(row: Row) {
        let policy = Self.policy(row)
        let signatures = Self.signatures(row.signs)
        #expect(policy.judged(signatures, Self.people, now: Self.at(row.now)).map(\.fault) == row.faults)
        let decision = policy.decision(signatures, Self.people, now: Self.at(row.now))
        if case .approved(let counted) = decision {
            #expect(row.isApproved && counted.count == 2)
        } else {
            #expect(!row.isApproved)
        }
    }

    @Test func `the signature of a revoked token does not count, another of the person does, a rejection stays`() {
        var signatures = Self.signatures([
            Sign(identity: "token:anna-mac"), Sign(identity: "os:ben"), Sign(identity: "os:anna"),
        ])
        signatures[0].isRevoked = true
        let policy = Self.policy(Row(testDescription: "", signs: [], faults: []))
        #expect(policy.judged(signatures, Self.people, now: Self.at(1)).map(\.fault) == [.revoked, nil, nil])
        guard case .approved(let counted) = policy.decision(signatures, Self.people, now: Self.at(1)) else {
            Issue.record("two people have signed")
            return
        }
        #expect(counted.map(\.signature.identity) == ["os:ben", "os:anna"])
        signatures[0].isRejection = true
        #expect(policy.decision(signatures, Self.people, now: Self.at(1)) == .rejected(signatures[0]))
    }

    @Test func `without people each account stands for itself, and no key for anybody`() {
        let signatures = Self.signatures([
            Sign(identity: "os:eve"), Sign(identity: "proxy:Eve"), Sign(identity: "proxy:eve"),
            Sign(identity: "ed25519:AAAA"),
        ])
        let policy = Self.policy(Row(testDescription: "", signs: [], faults: []))
        #expect(
            policy.judged(signatures, People(), now: Self.at(1)).map(\.fault)
                == [nil, nil, .samePerson("proxy:eve"), .unknownAccount(account: "ed25519:AAAA")])
    }

    @Test func `an author who is found at the start alone is one, and so is one of the request`() throws {
        let row = Row(testDescription: "", signs: [], faults: [])
        let definition = RunDefinition(
            campaign: Campaign(name: "c", topic: "t", pushType: .alert, template: "t"), template: Template(name: "t"),
            variables: [:], plannedAt: Self.at(0))
        let request = ApprovalRequest(
            definition: definition, occurrence: "", plan: "p", digest: "d", reach: 1000, needs: 2,
            authors: ["os:dora"], askedBy: "os:dora", askedAt: Self.at(0))
        let demand = ApprovalDemand(policy: Self.policy(row), people: Self.people, request: request)
        func faults(_ identities: String...) -> [ApprovalPolicy.Fault?] {
            let record = ApprovalRecord(request, Self.signatures(identities.map { Sign(identity: $0) }))
            do {
                _ = try demand.evidence(record, now: Self.at(1))
                return []
            } catch let error as Unapproved {
                guard case .waits(let judged) = error.cause else { return [] }
                return judged.map(\.fault)
            } catch {
                return []
            }
        }
        #expect(faults("os:ben", "os:carl") == [nil, .byAuthor])
        #expect(faults("os:ben", "os:dora") == [nil, .byAuthor])
        #expect(faults("os:ben", "os:anna") == [])
    }

    @Test func `a rejection outweighs every signature`() {
        let row = Row(testDescription: "", signs: [], faults: [])
        let signs = [
            Sign(identity: "os:anna"), Sign(identity: "os:ben"), Sign(identity: "os:dora", isRejection: true),
        ]
        let signatures = Self.signatures(signs)
        #expect(
            Self.policy(row).decision(signatures, Self.people, now: Self.at(1)) == .rejected(signatures[2]))
    }

    @Test(arguments: [(10, nil), (11, 1), (100, 1), (101, 3)])
    func `the strictest of the rules that apply decides`(reach: Int, needs: Int?) {
        let rules = ApprovalRules(rules: [
            ApprovalRules.Rule(above: 10, needs: 1, within: .seconds(60), driftPercent: 9),
            ApprovalRules.Rule(above: 100, needs: 3, notByAuthor: false, driftPercent: 1),
        ])
        let rule = rules.rule(forReach: reach)
        #expect(rule?.needs == needs)
        if needs == 3 {
            #expect(rule?.within == .seconds(60) && rule?.driftPercent == 1 && rule?.notByAuthor == true)
            // Above 10 alone, one signature is enough.
            #expect(
                rules.summary(forReach: reach)?.hasPrefix(
                    "a plan for more than 100 devices needs the signatures of 3 people") == true)
        }
    }

    @Test func `people who signed another plan of the same occurrence are named`() {
        let rule = ApprovalRules.Rule(above: 10, needs: 2)
        var refusal = Unapproved(campaign: "c", plan: "p1", reach: 11, rule: rule, cause: .waits([]))
        #expect(refusal.description.contains("0 of 2 signed. "))
        refusal.signersOfOthers = ["anna", "ben"]
        #expect(
            refusal.description.contains("0 of 2 signed; anna, ben signed another plan of the run: its texts, values, ")
        )
    }

    @Test func `what let a run through is found wrong once it is changed`() throws {
        let signatures = Self.signatures([Sign(identity: "os:anna"), Sign(identity: "os:ben")])
        let row = Row(testDescription: "", signs: [], faults: [])
        let people = ["os:anna": "anna", "os:ben": "ben"]
        let definition = RunDefinition(
            campaign: Campaign(name: "c", topic: "t", pushType: .alert, template: "t"), template: Template(name: "t"),
            variables: [:], plannedAt: Self.at(0))
        let request = ApprovalRequest(
            definition: definition, occurrence: "", plan: "p", digest: "d", reach: 1000, needs: 2, authors: [],
            askedBy: "os:carl", askedAt: Self.at(0), state: .used, run: 7)
        var evidence = ApprovalEvidence(
            policy: Self.policy(row), decidedAt: Self.at(1), people: people, signatures: signatures,
            emergencyOverride: nil)
        let record = ApprovalRecord(request, signatures)
        #expect(ApprovalCheck.faults(run: 7, evidence, record).isEmpty)
        #expect(ApprovalCheck.faults(run: 7, evidence, ApprovalRecord(request, [signatures[0]])).count == 1)
        evidence.people = ["os:anna": "anna", "os:ben": "anna"]
        #expect(ApprovalCheck.faults(run: 7, evidence, record).count == 1)
    }
}
