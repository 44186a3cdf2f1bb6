import Model
import Store

/// The stable shape of a plan to be approved, beside what its campaign sent the last time; keys are written in snake_case.
package struct ApprovalDetailResult: Codable, Hashable, Sendable {
    /// Something that a person looks at before they sign.
    package struct Fact: Codable, Hashable, Sendable {
        /// `devices`, `audience`, `text de body`.
        package var name: String
        /// Absent: there is none any more.
        package var now: String?
        /// Of the last run; absent: it had none, or there was no run.
        package var before: String?
        /// From the last run. False where there was none.
        package var differs: Bool
    }

    package var approval: ApprovalResult
    /// The environments that it would reach now, in words: `PRODUCTION: 18,812 devices`; empty for nobody.
    package var sentTo: String
    /// The campaign's last run that was carried to its end.
    package var sinceRun: Int64?
    package var facts: [Fact]

    init(_ approval: ApprovalResult, _ definition: RunDefinition, sentTo: String, previous: PreviousRun?) {
        self.approval = approval
        self.sentTo = sentTo
        sinceRun = previous?.run.id
        let now = ApprovalFacts(definition, reach: approval.reach, occurrence: approval.occurrence)
        let before = previous.map {
            ApprovalFacts($0.run.definition, reach: $0.reach, occurrence: $0.run.occurrence)
        }
        let values = before.map { Dictionary($0.all) { first, _ in first } } ?? [:]
        facts = now.all.map { name, value in
            Fact(
                name: name, now: value, before: values[name],
                differs: before != nil && values[name] != value && name != ApprovalFacts.occurrence)
        }
        let names = Set(now.all.map(\.0))
        facts += (before?.all ?? []).filter { !names.contains($0.0) }.map { name, value in
            Fact(name: name, now: nil, before: value, differs: true)
        }
    }
}

/// A plan in words, as whoever signs it reads it.
private struct ApprovalFacts {
    static let occurrence = "occurrence"

    private(set) var all: [(String, String)] = []

    init(_ definition: RunDefinition, reach: Int, occurrence: String?) {
        let campaign = definition.campaign
        add("devices", reach.grouped)
        add("audience", campaign.audienceSQL ?? campaign.audience.source)
        add(Self.occurrence, occurrence)
        add("stages", campaign.stages?.map(\.words).joined(separator: "; "))
        add("push type", "\(campaign.pushType.rawValue), priority \(campaign.priority.rawValue)")
        add("expires after", campaign.expiresAfter.map(WrittenDuration.text))
        for (name, value) in definition.variables.sorted(by: { $0.key < $1.key }) { add("variable \(name)", value) }
        if campaign.variants.isEmpty { add(definition.template, nil, definition.variables) }
        for variant in campaign.variants {
            let template = definition.variantTemplates[variant.name] ?? definition.template
            add(template, variant.name, definition.variables)
        }
    }

    private mutating func add(_ name: String, _ value: String?) {
        guard let value, !value.isEmpty else { return }
        all.append((name, value))
    }

    private mutating func add(_ template: Template, _ variant: String?, _ variables: [String: String]) {
        guard case .localized(let alerts) = template.alert else { return }
        for alert in alerts {
            let name = [variant, alert.locale.description].compactMap(\.self).joined(separator: " ")
            for (part, text) in [("title", alert.title), ("subtitle", alert.subtitle), ("body", alert.body)] {
                add("text \(name) \(part)", text?.filled(variables))
            }
        }
    }
}

extension TemplateText {
    /// With the variables that are given; what a device fills in stays as it is written.
    fileprivate func filled(_ variables: [String: String]) -> String {
        parts.map { part in
            switch part {
            case .literal(let text): text
            case .variable(let name): variables[name] ?? "{{\(name)}}"
            case .device(let field): "{{device.\(field)}}"
            }
        }.joined()
    }
}
