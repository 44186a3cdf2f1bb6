/// The rules in force, with their counters. The first rule that takes a request decides.
struct FaultScript: Sendable {
    fileprivate struct Rule: Sendable {
        let rule: FaultRule
        var matches = 0
        var fired = 0
        var chance: SplitMix64
    }

    private var rules: [Rule] = []
    /// A script may name thousands of tokens: its rules are looked up, not tried one by one.
    private var byToken: [[UInt8]: [Int]] = [:]
    private var general: [Int] = []

    init(_ rules: [FaultRule], seed: UInt64) {
        for (index, rule) in rules.enumerated() {
            self.rules.append(Rule(rule: rule, chance: SplitMix64(seed: seed &+ UInt64(index) &* 0x9e37_79b9)))
            if let token = rule.when.token { byToken[token, default: []].append(index) } else { general.append(index) }
        }
    }

    var isEmpty: Bool { rules.isEmpty }

    mutating func action(
        at moment: FaultRule.Moment, token: UnsafeRawBufferPointer?, environment: SimulatorEnvironment
    ) -> FaultAction? {
        if !byToken.isEmpty, let token, let indices = byToken[Array(token)] {
            if let action = first(of: indices, moment, environment) { return action }
        }
        return first(of: general, moment, environment)
    }

    private mutating func first(
        of indices: [Int], _ moment: FaultRule.Moment, _ environment: SimulatorEnvironment
    ) -> FaultAction? {
        for index in indices where rules[index].rule.moment == moment {
            let wanted = rules[index].rule.when.environment
            guard wanted == nil || wanted == environment else { continue }
            if rules[index].takes() { return rules[index].rule.action }
        }
        return nil
    }
}

extension FaultScript.Rule {
    fileprivate mutating func takes() -> Bool {
        matches += 1
        if let timesMax = rule.when.timesMax, fired >= timesMax { return false }
        let isPicked =
            switch rule.when.pick {
            case .every(let count): matches.isMultiple(of: max(1, count))
            case .number(let number): matches == number
            case .rate(let rate): Double(chance.next() >> 11) / Double(1 << 53) < rate
            }
        if isPicked { fired += 1 }
        return isPicked
    }
}

/// A small generator with a seed: the same faults in every run.
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
