import FoundationEssentials

extension FaultRule {
    /// A line of a fault file.
    private struct Line: Decodable {
        struct Answer: Decodable {
            var status: Int
            var reason: String
        }

        struct GoAway: Decodable {
            var last_stream: String
            var reason: String?
        }

        var token: String?
        var environment: SimulatorEnvironment?
        var number: Int?
        var every: Int?
        var rate: Double?
        var times: Int?
        var after_checks: Bool?
        var answer: Answer?
        var delay_ms: Int?
        var silence: Bool?
        var reset: UInt32?
        var goaway: GoAway?
        var close: Bool?
    }

    /// Reads JSON Lines, a rule each. For which requests: `token` (hex), `environment`, one of `number`, `every`, `rate`,
    /// and `times`; when: `"after_checks":true`; what, exactly one of: `"answer":{"status":503,"reason":"Shutdown"}`,
    /// `"delay_ms":50`, `"silence":true`, `"reset":7`, `"goaway":{"last_stream":"none|before|this|all","reason":"..."}`,
    /// `"close":true`.
    package static func load(_ path: String) throws -> [FaultRule] {
        var rules: [FaultRule] = []
        let decoder = JSONDecoder()
        try LineReader.forEachLine(of: path) { number, bytes in
            do {
                rules.append(try FaultRule(try decoder.decode(Line.self, from: Data(bytes))))
            } catch let fault as LineFault {
                throw SimulatorError.malformedLine(path: path, line: number, reason: fault.reason)
            } catch {
                throw SimulatorError.malformedLine(path: path, line: number, reason: "not a fault rule")
            }
        }
        return rules
    }

    private struct LineFault: Error {
        let reason: String
    }

    private init(_ line: Line) throws {
        var condition = FaultCondition(environment: line.environment, timesMax: line.times)
        if let text = line.token {
            guard let token = Hex.bytes(of: text) else { throw LineFault(reason: "the token is not hex") }
            condition.token = token
        }
        let picks = [
            line.number.map { FaultCondition.Pick.number($0) }, line.every.map { .every($0) },
            line.rate.map { .rate($0) },
        ].compactMap(\.self)
        guard picks.count <= 1 else { throw LineFault(reason: "only one of number, every, rate may be given") }
        condition.pick = picks.first ?? .every(1)
        let actions = try Self.actions(line)
        guard actions.count == 1 else {
            throw LineFault(reason: "exactly one of answer, delay_ms, silence, reset, goaway, close must be given")
        }
        self.init(when: condition, moment: line.after_checks == true ? .afterChecks : .beforeChecks, action: actions[0])
    }

    private static func actions(_ line: Line) throws -> [FaultAction] {
        var actions: [FaultAction] = []
        if let answer = line.answer {
            guard (200...599).contains(answer.status) else { throw LineFault(reason: "the status is not in 200...599") }
            actions.append(.answer(status: answer.status, reason: answer.reason))
        }
        if let delay = line.delay_ms { actions.append(.delay(milliseconds: delay)) }
        if line.silence == true { actions.append(.silence) }
        if let code = line.reset { actions.append(.reset(code: code)) }
        if line.close == true { actions.append(.close) }
        if let goAway = line.goaway {
            guard let last = FaultAction.LastStream(rawValue: goAway.last_stream) else {
                throw LineFault(reason: "last_stream is one of none, before, this, all")
            }
            actions.append(.goAway(lastStream: last, reason: goAway.reason))
        }
        return actions
    }
}
