/// The rules in force, with their counters. Every rule counts all requests that match its condition, even if another
/// rule decides them. The first rule that picks a request decides. Rules that name the request's token come before the
/// others.
struct FaultScript: Sendable {
    fileprivate struct Rule: Sendable {
        let rule: FaultRule
        var matches = 0
        var fired = 0
        var generator: SplitMix64
    }

    /// A request, or a connect, which has no token.
    struct Event {
        var isConnect: Bool
        var token: UnsafeRawBufferPointer?
        var environment: SimulatorEnvironment
        /// Milliseconds since 1970.
        var nowMs: Int64
    }

    private var rules: [Rule] = []
    /// The rules by token. A script may name thousands of tokens, so rules are looked up instead of tried one by one.
    private var byToken: [[UInt8]: [Int]] = [:]
    private var general: [Int] = []
    private let startedMs: Int64

    /// - Parameter nowMs: the start of the conditions' times.
    init(_ rules: [FaultRule], seed: UInt64, nowMs: Int64) {
        startedMs = nowMs
        for (index, rule) in rules.enumerated() {
            self.rules.append(Rule(rule: rule, generator: SplitMix64(seed: seed &+ UInt64(index) &* 0x9e37_79b9)))
            if let token = rule.when.token { byToken[token, default: []].append(index) } else { general.append(index) }
        }
    }

    var isEmpty: Bool { rules.isEmpty }

    mutating func rule(for event: Event) -> FaultRule? {
        var taken: Int?
        if !byToken.isEmpty, let token = event.token, let indices = byToken[Array(token)] {
            count(event, in: indices, &taken)
        }
        count(event, in: general, &taken)
        guard let taken else { return nil }
        rules[taken].fired += 1
        return rules[taken].rule
    }

    private mutating func count(_ event: Event, in indices: [Int], _ taken: inout Int?) {
        let elapsedMs = event.nowMs - startedMs
        for index in indices where (rules[index].rule.moment == .connect) == event.isConnect {
            let when = rules[index].rule.when
            guard when.environment == nil || when.environment == event.environment else { continue }
            guard when.fromMs.map({ elapsedMs >= $0 }) ?? true, when.untilMs.map({ elapsedMs < $0 }) ?? true else {
                continue
            }
            if rules[index].picks(), taken == nil { taken = index }
        }
    }
}

extension FaultScript.Rule {
    /// Counts a matching request. Returns whether the rule picks it.
    fileprivate mutating func picks() -> Bool {
        matches += 1
        let matches = matches - rule.when.skip
        guard matches > 0 else { return false }
        if let timesMax = rule.when.timesMax, fired >= timesMax { return false }
        return switch rule.when.pick {
        case .every(let count): matches.isMultiple(of: max(1, count))
        case .number(let number): matches == number
        case .rate(let rate): Double(generator.next() >> 11) / Double(1 << 53) < rate
        }
    }
}

/// A small generator with a seed (Vigna's splitmix64), which gives the same faults in every run.
struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
