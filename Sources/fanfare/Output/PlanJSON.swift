import Engine
import Model

/// The stable shape of `plan --json`; keys are written in snake_case.
struct PlanJSON: Encodable {
    struct Block: Encodable {
        var locale: String
        var devices: Int
        var payloadMaxBytes: Int
        var sample: String
    }

    var campaign: String
    var template: String
    var audience: String
    var headers: [String: String]
    var reach: Int
    var byEnvironment: [String: Int]
    var suppressed: [String: Int]
    var texts: [Block]
    var payloadLimitBytes: Int
    /// Guards that would refuse the run, in words.
    var refusals: [String]
    /// Variables that must be given to `run`.
    var unsetVariables: [String]

    init(_ plan: Plan, unset: [String]) {
        campaign = plan.definition.campaign.name
        template = plan.definition.campaign.template
        audience = plan.definition.campaign.audience.source
        headers = Dictionary(plan.headers.map { ($0.name, $0.value) }) { first, _ in first }
        reach = plan.reach.total
        byEnvironment = Dictionary(plan.byEnvironment.map { ($0.environment.rawValue, $0.count) }) { $0 + $1 }
        suppressed = Dictionary(plan.reach.suppressed.map { ($0.key.rawValue, $0.value) }) { $0 + $1 }
        texts = plan.blocks.map {
            Block(
                locale: $0.locale, devices: $0.devices, payloadMaxBytes: $0.payloadMaxBytes, sample: $0.sample)
        }
        payloadLimitBytes = plan.payloadLimitBytes
        refusals = plan.refusals.map(\.description)
        unsetVariables = unset
    }
}
