package import Model

/// What has changed since the campaign's last finished run.
package struct RunDifference: Hashable, Sendable {
    /// A text or setting of a template: `de.title`, `sound`, `custom.link_url`.
    package struct Change: Hashable, Sendable {
        package enum Kind: String, Hashable, Sendable {
            case added, removed, changed
        }

        /// Nil in a campaign without variants.
        package var variant: String?
        /// Nil for what does not depend on the language.
        package var locale: String?
        /// Nil when a language came or went as a whole.
        package var key: String?
        package var kind: Kind
    }

    package var run: Run
    package var reachBefore: Int
    package var reachNow: Int
    package var texts: [Change]
    /// Names of variables with another value.
    package var variables: [String]
    /// Keys of the campaign file with another value.
    package var keys: [String]

    init(from previous: PreviousRun, to definition: RunDefinition, reach: Int) throws {
        run = previous.run
        reachBefore = previous.reach
        reachNow = reach
        let before = previous.run.definition
        texts = try Self.templates(before, definition).flatMap { variant, old, new in
            try TemplateOutline.changes(from: TemplateOutline(old), to: TemplateOutline(new), variant: variant)
        }
        variables = Set(before.variables.keys).union(definition.variables.keys)
            .filter { before.variables[$0] != definition.variables[$0] }.sorted()
        keys = try CampaignOutline.changedKeys(before.campaign, definition.campaign)
    }

    /// Which template to compare with which; those of variants that came or went count as a changed key.
    private static func templates(
        _ before: RunDefinition, _ now: RunDefinition
    ) -> [(variant: String?, old: Template, new: Template)] {
        let common = now.campaign.variants.map(\.name).filter { name in
            before.campaign.variants.contains { $0.name == name }
        }
        guard !common.isEmpty else { return [(nil, before.template, now.template)] }
        return common.map { name in
            (name, before.variantTemplates[name] ?? before.template, now.variantTemplates[name] ?? now.template)
        }
    }
}
