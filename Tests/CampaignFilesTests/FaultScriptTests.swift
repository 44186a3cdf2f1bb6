import CampaignFiles
import Model
import Testing

struct FaultScriptTests {
    private static let token = String(repeating: "ab", count: 32)

    private func rules(_ lines: String) throws -> [ScriptedFault] {
        let (rules, diagnostics) = FaultScriptFile.read(text: "faults:\n" + lines, path: "faults.yaml")
        #expect(diagnostics.isEmpty, "\(diagnostics)")
        return try #require(rules)
    }

    private func problems(_ line: String) -> [String] {
        let (rules, diagnostics) = FaultScriptFile.read(text: "faults:\n  - \(line)\n", path: "faults.yaml")
        #expect(rules == nil)
        return diagnostics.map(\.description)
    }

    @Test func `a rule says which requests it takes`() throws {
        let rule = try #require(
            try rules(
                "  - {token: \(Self.token), environment: sandbox, every: 10, after: 100, times: 3, from: 2s, "
                    + "until: 1m, close: true}"
            ).first)
        #expect(rule.token == DeviceToken(hex: Self.token))
        #expect(rule.environment == .sandbox && rule.pick == .every(10) && rule.skip == 100 && rule.timesMax == 3)
        #expect(rule.from == .seconds(2) && rule.until == .seconds(60) && rule.action == .close)
        let picks = try rules("  - {number: 7, close: true}\n  - {rate: 0.5%, close: true}\n  - {close: true}")
        #expect(picks.map(\.pick) == [.number(7), .rate(0.005), .every(1)])
    }

    @Test func `every fault can be written`() throws {
        let actions = try rules(
            """
              - answer: {status: 410, reason: Unregistered, timestamp: 1700000000000}
              - {answer: {status: 502, body: <html>}}
              - answer_lost: silent_connection
              - delay: 20ms
              - silence: connection
              - reset: refused_stream
              - cut_answer: true
              - goaway: {last_stream: middle, reason: Shutdown, twice: true, closes: true}
              - {goaway: {last_stream: none, text: bye}}
              - stream_limit: {streams: 1, for: 2s}
              - outage: 500ms
              - connect: drop
              - answer: {status: 503, reason: Shutdown, retry_after: 120}
            """
        ).map(\.action)
        try #require(actions.count == 13)
        guard case .answer(let gone) = actions[0], case .answer(let page) = actions[1],
            case .goAway(let middle) = actions[7], case .goAway(let none) = actions[8]
        else {
            Issue.record("\(actions)")
            return
        }
        #expect(gone.status == 410 && gone.reason == "Unregistered" && gone.timestamp == 1_700_000_000_000)
        #expect(page.status == 502 && page.body == "<html>")
        #expect(
            Array(actions[2...6]) == [
                .answerLost(.silentConnection), .delay(.milliseconds(20)), .silence(.connection),
                .reset(.refusedStream), .cutAnswer,
            ])
        #expect(middle.lastStream == .middle && middle.reason == "Shutdown" && middle.isTwice && middle.closes)
        #expect(none.lastStream == .none && none.text == "bye" && !none.isTwice && !none.closes)
        #expect(
            Array(actions[9...11]) == [.streamLimit(1, for: .seconds(2)), .outage(.milliseconds(500)), .connect(.drop)])
        #expect(
            actions[12] == .answer(ScriptedFault.Response(status: 503, reason: "Shutdown", retryAfter: "120")))
    }

    @Test(arguments: [
        ("{answer_last: close}", "2:6: error: fault: unknown key \"answer_last\"; did you mean \"answer_lost\"?"),
        ("{every: 10}", "2:5: error: a fault without an action; add one of answer, answer_lost"),
        ("{close: true, outage: 2s}", "2:19: error: a fault with close and outage; keep one"),
        ("{every: 2, rate: 1%, close: true}", "2:16: error: a fault with every and rate; keep one of them"),
        ("{token: xyz, close: true}", "2:13: error: \"token\": expected a device token in hex"),
        ("{reset: refuse_stream}", "2:13: error: \"reset\": expected one of"),
        ("{close: false}", "2:13: error: \"close\" is false; remove the rule"),
        ("{connect: drop, token: \(token)}", "2:21: error: a rule for connect cannot select a token; remove it"),
        ("{answer: {status: 99}}", "2:23: error: \"status\": expected a whole number from 200 to 599"),
        ("{goaway: {reason: Shutdown}}", "2:14: error: goaway: the key \"last_stream\" is missing"),
        ("{answer: {status: 500, reason: A, body: B}}", "2:39: error: a response has a reason or a body, not both"),
    ])
    func `a wrong rule says what is wrong, and where`(line: String, message: String) throws {
        let problems = problems(line)
        #expect(problems.count == 1, "\(problems)")
        #expect(problems.first?.hasPrefix("faults.yaml:" + message) == true, "\(problems)")
    }

    @Test func `one rule can stand alone, for a command line`() throws {
        let (rule, _) = FaultScriptFile.read(rule: "{rate: 1%, answer_lost: close}", source: "--fault")
        #expect(rule?.action == .answerLost(.close) && rule?.pick == .rate(0.01))
        let (none, diagnostics) = FaultScriptFile.read(rule: "{close: 1}", source: "--fault")
        #expect(none == nil)
        #expect(diagnostics.first?.description.hasPrefix("--fault:1:9: error:") == true, "\(diagnostics)")
        #expect(FaultScriptFile.read(rule: "", source: "--fault").1.count == 1)
        #expect(FaultScriptFile.read(text: "", path: "f").1.map(\.description).first?.contains("empty") == true)
    }
}
