package import Model

/// The renderers of a run, one per variant, all reading device values in one order. A run without variants has one.
package struct VariantRenderers: Sendable {
    /// In the order of the campaign's variants; never empty.
    package let renderers: [PayloadRenderer]
    /// The device fields of all variants, by the index the renderers use.
    package let fields: [AudienceField]
    /// What is added to each device's badge count, the same in every variant; 0: nothing.
    package let badgeIncrement: Int

    /// Throws when a placeholder of any template has no value. A variant without a template of its own gets the
    /// campaign's.
    package init(_ definition: RunDefinition) throws(PayloadRenderer.RenderError) {
        let variants = definition.campaign.variants
        let templates =
            variants.isEmpty
            ? [definition.template] : variants.map { definition.variantTemplates[$0.name] ?? definition.template }
        fields = PayloadRenderer.fields(of: templates)
        var renderers: [PayloadRenderer] = []
        for template in templates {
            renderers.append(
                try PayloadRenderer(
                    template: template, pushType: definition.campaign.pushType, variables: definition.variables,
                    plannedAt: definition.plannedAt, fields: fields))
        }
        badgeIncrement = renderers.map(\.badgeIncrement).max() ?? 0
        self.renderers = renderers
    }

    /// - Parameter variant: an index into the campaign's variants; nil when it has none.
    package subscript(variant: Int?) -> PayloadRenderer { renderers[variant ?? 0] }
}
