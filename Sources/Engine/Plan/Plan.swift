package import Model

/// What a run would do if it started now.
package struct Plan: Hashable, Sendable {
    /// One text the template can render, who gets it, and how large it is.
    package struct Block: Hashable, Sendable {
        /// The locale's tag, `all` when nothing is localized.
        package var locale: String
        package var devices: Int
        /// The largest payload this text can make, with long device fields.
        package var payloadMaxBytes: Int
        package var sample: String
    }

    package var definition: RunDefinition
    package var reach: Reach
    package var blocks: [Block]
    package var payloadLimitBytes: Int
    package var headers: [Header]
    /// Why `run` would refuse, in words.
    package var refusals: [GuardRefusal]

    package struct Header: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package var byEnvironment: [(environment: PushEnvironment, count: Int)] {
        PushEnvironment.allCases.map { environment in
            (environment, reach.slices.filter { $0.environment == environment }.reduce(0) { $0 + $1.count })
        }
    }
}

/// A guard of the campaign that says no.
package enum GuardRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    case maxReach(reach: Int, limit: Int)
    case minReach(reach: Int, limit: Int)

    package var description: String {
        switch self {
        case .maxReach(let reach, let limit):
            "the audience is \(reach) devices, guards.max_reach is \(limit); "
                + "narrow the audience, or raise max_reach if this is meant"
        case .minReach(let reach, let limit):
            "the audience is \(reach) devices, guards.min_reach is \(limit); "
                + "check the audience expression, the topic and the segments"
        }
    }

    static func check(_ guards: Campaign.Guards, reach: Int) -> [GuardRefusal] {
        var refusals: [GuardRefusal] = []
        if let limit = guards.maxReach, reach > limit { refusals.append(.maxReach(reach: reach, limit: limit)) }
        if let limit = guards.minReach, reach < limit { refusals.append(.minReach(reach: reach, limit: limit)) }
        return refusals
    }
}
