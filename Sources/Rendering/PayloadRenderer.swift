package import Model

/// A template with the run's variables filled in: one prototype per locale, created once per run.
package struct PayloadRenderer: Sendable {
    /// The locales of ``prototypes``. Empty if nothing is localized: then there is one prototype.
    package let locales: [LocaleTag]
    package let prototypes: [PayloadPrototype]
    /// The device fields that the prototypes refer to, by index.
    package let fields: [AudienceField]
    /// The number added to each device's badge count. 0 means that the badge count does not change.
    package let badgeIncrement: Int
    private let template: Template

    package enum RenderError: Error, Hashable, CustomStringConvertible {
        case variablesMissing([String])

        package var description: String {
            switch self {
            case .variablesMissing(let names):
                let given = names.map { "--var \($0)=..." }.joined(separator: " ")
                return "no value for \(names.map { "{{\($0)}}" }.joined(separator: ", ")); add \(given)"
            }
        }
    }

    /// Throws if a placeholder of the template has no value, or a value without visible characters.
    ///
    /// - Parameters:
    ///   - plannedAt: the time used in the payload of a Live Activity if no moment of sending is given. `nil` means
    ///     1970.
    ///   - fields: the device fields in the order of their values, including all fields of the template. `nil` means
    ///     exactly the fields of the template.
    ///   - hasReference: whether each push carries the reference for feedback.
    package init(
        template: Template, pushType: PushType, variables: [String: String], plannedAt: Timestamp? = nil,
        fields: [AudienceField]? = nil, hasReference: Bool = false
    ) throws(RenderError) {
        let missing = template.unset(in: variables)
        guard missing.isEmpty else { throw .variablesMissing(missing) }
        self.template = template
        locales = template.locales
        self.fields = fields ?? Self.fields(of: [template])
        badgeIncrement = if case .increment(let step) = template.badge { step } else { 0 }
        let blocks: [Int?] = locales.isEmpty ? [nil] : locales.indices.map(\.self)
        prototypes = blocks.map { [fields = self.fields] block in
            var writer = PayloadWriter(variables: variables, fields: fields)
            writer.write(template, pushType, localeIndex: block, hasReference: hasReference)
            return writer.finish(plannedSeconds: plannedAt?.seconds ?? 0)
        }
    }

    /// Returns the device fields of these templates, each once and in a fixed order. Leaves out the badge, because
    /// every delivery has it.
    static func fields(of templates: [Template]) -> [AudienceField] {
        templates.reduce(into: Set()) { $0.formUnion($1.deviceFields) }.filter { $0 != .badge }
            .sorted { $0.name < $1.name }
    }

    /// Returns the prototype that a device with this locale gets, and the locale's index for the record.
    package func choice(forLocale text: String?) -> (prototype: Int, localeIndex: Int?) {
        let index = template.localeChoice(for: text.flatMap { LocaleTag($0) })?.index
        return (index ?? 0, index)
    }

    /// Returns whether a device with this locale gets text in its language. Returns `true` if nothing is localized.
    package func covers(_ locale: String?) -> Bool {
        template.localeChoice(for: locale.flatMap { LocaleTag($0) })?.fit != .fallback
    }

    /// Returns the name of a prototype's locale for people, or `all` if nothing is localized.
    package func localeName(_ prototype: Int) -> String {
        locales.isEmpty ? "all" : locales[prototype].description
    }
}

extension PayloadRenderer {
    /// Creates the renderer of the campaign's own template. For a campaign with variants see ``VariantRenderers``.
    package init(_ definition: RunDefinition) throws(RenderError) {
        try self.init(
            template: definition.template, pushType: definition.campaign.pushType, variables: definition.variables,
            plannedAt: definition.plannedAt, hasReference: definition.campaign.feedback != nil)
    }
}

/// The renderers of a run, one per variant. All of them read the device values in the same order. A run without
/// variants has one renderer.
package struct VariantRenderers: Sendable {
    /// The renderers, in the order of the campaign's variants. Never empty.
    package let renderers: [PayloadRenderer]
    /// The device fields of all variants, by the index that the renderers use.
    package let fields: [AudienceField]
    /// The number added to each device's badge count, the same in every variant. 0 means no change.
    package let badgeIncrement: Int

    /// Throws if a placeholder of any template has no value. A variant without its own template uses the campaign's.
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
                    plannedAt: definition.plannedAt, fields: fields,
                    hasReference: definition.campaign.feedback != nil))
        }
        badgeIncrement = renderers.map(\.badgeIncrement).max() ?? 0
        self.renderers = renderers
    }

    /// - Parameter variant: an index into the campaign's variants. `nil` if the campaign has none.
    package subscript(variant: Int?) -> PayloadRenderer { renderers[variant ?? 0] }
}
