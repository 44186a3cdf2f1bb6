import Engine
import Model

/// A plan as a page of text that fits a terminal.
struct PlanText {
    let plan: Plan
    /// Variables that have no value yet, shown in the samples by their names.
    let unset: [String]

    var text: String {
        (heading + [""] + reach + [""] + blocks + [""] + samples + notes).joined(separator: "\n")
    }

    private var heading: [String] {
        let campaign = plan.definition.campaign
        let audience = campaign.audience.source.isEmpty ? "every device of the topic" : campaign.audience.source
        var lines = [
            "Campaign   \(campaign.name)  (template \(campaign.template))",
            "Audience   \(audience.split(whereSeparator: \.isNewline).joined(separator: " "))",
        ]
        lines += plan.headers.map { "\($0.name.padded(to: 18))\($0.value)" }
        return lines
    }

    private var reach: [String] {
        var lines = ["Reach      \(plan.reach.total.grouped) devices"]
        for (environment, count) in plan.byEnvironment where count > 0 {
            lines.append("  \(environment.rawValue.padded(to: 14))\(count.grouped.rightAligned(to: 12))")
        }
        for (reason, count) in plan.reach.suppressed.sorted(by: { $0.key.rawValue < $1.key.rawValue }) where count > 0 {
            lines.append("  left out: \(reason.rawValue.padded(to: 20))\(count.grouped.rightAligned(to: 12))")
        }
        return lines
    }

    private var blocks: [String] {
        ["Text".padded(to: 10) + "devices".rightAligned(to: 12) + "largest payload".rightAligned(to: 24)]
            + plan.blocks.map { block in
                "  " + block.locale.padded(to: 8) + block.devices.grouped.rightAligned(to: 12)
                    + "\(block.payloadMaxBytes) of \(plan.payloadLimitBytes) bytes".rightAligned(to: 24)
            }
    }

    private var samples: [String] {
        ["Sample payloads"] + plan.blocks.map { "  \($0.locale.padded(to: 8)) \($0.sample)" }
    }

    private var notes: [String] {
        var lines = plan.refusals.map { "\nRefused: \($0)" }
        if !unset.isEmpty {
            lines.append("\nTo run it, give: " + unset.map { "--var \($0)=..." }.joined(separator: " "))
        }
        return lines
    }
}
