import Testing

/// Tests that the proof finds the violations that it looks for.
struct `The proof` {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var state = 1
        var doubts = 0
        /// The times at which APNs accepted the push, in milliseconds.
        var accepted = [0]
        var scene = Scene(name: "", devices: 1)
        var isCancelled = false
        var isRight = false
    }

    private static let silent = Scene(name: "", isSilent: true, onUnknown: .skip, devices: 1)
    private static let skip = Scene(name: "", onUnknown: .skip, devices: 1)

    private static let rows = [
        Row(testDescription: "accepted once", isRight: true),
        Row(testDescription: "still pending", state: 0, accepted: []),
        Row(testDescription: "accepted, but never there", accepted: []),
        Row(testDescription: "unknown, and there once", state: 3, doubts: 1, scene: skip, isRight: true),
        Row(testDescription: "unknown, with attempts left", state: 3, doubts: 1),
        Row(
            testDescription: "unknown of a cancelled run, with attempts left", state: 3, doubts: 1, isCancelled: true,
            isRight: true),
        Row(testDescription: "suppressed by a cancellation and there all the same", state: 4, isCancelled: true),
        Row(testDescription: "unknown without a doubt", state: 3, accepted: []),
        Row(testDescription: "suppressed and there all the same", state: 4),
        Row(testDescription: "rejected and there all the same", state: 2),
        Row(testDescription: "there twice after a doubt", doubts: 1, accepted: [0, 1], isRight: true),
        Row(testDescription: "there twice without a doubt", accepted: [0, 1]),
        Row(testDescription: "there twice under skip", doubts: 1, accepted: [0, 1], scene: skip),
        Row(testDescription: "there three times after one doubt", doubts: 1, accepted: [0, 1, 2]),
        Row(testDescription: "three background pushes within the hour", accepted: [0, 1, 2], scene: silent),
    ]

    @Test(arguments: rows) func `tells right from wrong`(row: Row) {
        let delivery = StoreRecord.Delivery(
            run: 1, device: 1, token: "ab", state: row.state, attempts: 1, doubts: row.doubts, id: "x")
        let wire = WireLog(row.accepted.map { WireLog.Entry(time: $0, token: "ab", id: "x", status: 200) })
        let proof = Proof(row.scene, StoreRecord([delivery]), wire, cancelled: row.isCancelled ? [1] : [])
        #expect(proof.violations.isEmpty == row.isRight, "\(proof.violations)")
    }

    @Test func `misses a recipient, and a push of nobody`() {
        #expect(!Proof(Scene(name: "", devices: 1), StoreRecord([]), WireLog([])).violations.isEmpty)
        let stranger = WireLog([WireLog.Entry(time: 0, token: "ab", id: "x", status: 200)])
        #expect(!Proof(Scene(name: "", devices: 0), StoreRecord([]), stranger).violations.isEmpty)
    }

    @Test(arguments: [([5, 6], 5, true), ([6, 5], 6, false), ([5, 6], 7, false)])
    func `finds a stage that was begun too early`(asked: [Int], opened: Int, isRight: Bool) {
        let deliveries = asked.indices.map { number in
            StoreRecord.Delivery(
                run: 1, device: Int64(number), token: "ab", state: 1, stage: number == 0 ? 0 : nil, attempts: 1,
                doubts: 0, id: "\(number)")
        }
        let stages = [
            StoreRecord.Stage(run: 1, stage: 0, openedAt: 4), StoreRecord.Stage(run: 1, stage: 1, openedAt: opened),
        ]
        let wire = WireLog(
            asked.enumerated().map { WireLog.Entry(time: $1, token: "ab", id: "\($0)", status: 200) })
        let proof = Proof(Scene(name: "", devices: 2), StoreRecord(deliveries, stages: stages), wire)
        #expect(proof.violations.isEmpty == isRight, "\(proof.violations)")
    }

    @Test(arguments: [(1, false, 0), (1, true, 1), (2, true, 0)])
    func `counts what is over a cap of a device, and of a user`(limit: Int, isOfUser: Bool, violations: Int) {
        let tokens = ["ab00000002", "ab00000003"]
        let wire = WireLog(tokens.map { WireLog.Entry(time: 0, token: $0, id: $0, status: 200) })
        let cap = Scene.Cap(limit: limit, isOfUser: isOfUser)
        #expect(wire.budgetViolations(limit: limit, windowMs: 1_000, of: cap.subject(of:)) == violations)
    }

    @Test func `counts a push within the window of the budget, and none behind it`() {
        let wire = WireLog([0, 10, 1_009, 1_000].map { WireLog.Entry(time: $0, token: "ab", id: "x", status: 200) })
        // The third push follows the first after 1,000 ms, and the fourth follows the second after 999 ms.
        #expect(wire.budgetViolations(limit: 2, windowMs: 1_000) == 1)
    }
}
