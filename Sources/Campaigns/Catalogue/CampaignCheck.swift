package import CampaignFiles
package import Model
import Rendering

/// The results of all checks of a file that need no store.
package struct CampaignCheck {
    package var path: String
    /// `nil` for files that are not campaigns.
    package var loaded: LoadedCampaign?
    package var diagnostics: [Diagnostic]
    /// The template, if the file is a template without errors.
    package var template: TemplateSource?
    /// The largest payload of each text; empty if there is none or the files have errors.
    package var sizes: [Size] = []
    /// Whether a variable has no value yet, so that the sizes assume one.
    package var assumesValues = false
    /// The languages of the app's devices in which the campaign has no text; `nil` if there are none, or they are
    /// unknown.
    package var fallbackLanguages: [String]?
    /// The languages of the default texts that those devices get.
    package var fallbacks: [String] = []

    package init(path: String, loaded: LoadedCampaign? = nil, diagnostics: [Diagnostic]) {
        self.path = path
        self.loaded = loaded
        self.diagnostics = diagnostics
    }

    package struct Size {
        /// The locale, preceded by the variant's name if there is one.
        package var text: String
        package var bytes: Int
        package var limit: Int
    }

    /// Whether no problem is worse than a warning.
    package var isRight: Bool { diagnostics.allSatisfy { $0.severity == .warning } }

    /// Checks a campaign file together with the templates it names.
    ///
    /// - Parameters:
    ///   - configuration: if given, the campaign's app must be in it, with a suitable credential.
    ///   - usualFeedback: the feedback of campaigns whose file does not say, by app.
    ///   - drafts: texts that are not saved yet, by path.
    package static func check(
        path: String, templatesFolder: String, configuration: Configuration? = nil,
        usualFeedback: [String: CampaignFeedback], drafts: [String: String] = [:]
    ) -> CampaignCheck {
        var folder = CampaignFolder(campaigns: "", templates: templatesFolder, drafts: drafts)
        folder.usualFeedback = usualFeedback
        let loaded = folder.loadWhole(path: path)
        var check = CampaignCheck(path: path, loaded: loaded, diagnostics: loaded.diagnostics)
        if let source = loaded.source {
            check.diagnostics += TemplateLint.check(source, loaded.templates)
            if let configuration {
                check.diagnostics += CredentialRules.check(source, configuration)
                check.diagnostics += CapClassRules.check(source, configuration)
            }
        }
        check.measure()
        return check
    }

    /// Renders every locale of every variant, and records the sizes. A variable without a value counts with 100
    /// bytes.
    private mutating func measure() {
        guard let content = loaded?.content else { return }
        let campaign = content.campaign
        let variables = campaign.variables.mapValues {
            $0.hasVisibleSign ? $0 : String(repeating: "x", count: Planner.fieldMaxBytes)
        }
        assumesValues = campaign.variables.values.contains { !$0.hasVisibleSign }
        let definition = RunDefinition(
            campaign: campaign, template: content.template, variantTemplates: content.variantTemplates,
            variables: variables, plannedAt: Timestamp(milliseconds: 0))
        diagnostics += FeedbackCheck.problems(
            campaign,
            [content.template] + content.variantTemplates.values + [content.correction].compactMap(\.self), path)
        do {
            if let correction = content.correction {
                var corrected = definition
                corrected.template = correction
                corrected.campaign.variants = []
                measure(try VariantRenderers(corrected)[nil], variant: "correction", campaign.pushType)
            }
            let renderers = try VariantRenderers(definition)
            if campaign.variants.isEmpty { return measure(renderers[nil], variant: nil, campaign.pushType) }
            for (index, variant) in campaign.variants.enumerated() {
                measure(renderers[index], variant: variant.name, campaign.pushType)
            }
        } catch {
            diagnostics.append(Diagnostic(path: path, what: error.description))
        }
    }

    private mutating func measure(_ renderer: PayloadRenderer, variant: String?, _ pushType: PushType) {
        for (index, prototype) in renderer.prototypes.enumerated() {
            let locale = renderer.localeName(index)
            let size = Size(
                text: variant.map { "\($0) \(locale)" } ?? locale,
                bytes: prototype.worstCaseByteCount(fieldMaxBytes: Planner.fieldMaxBytes),
                limit: pushType.payloadMaxBytes)
            sizes.append(size)
            if size.bytes > size.limit { diagnostics.append(tooLarge(size, isCertain: prototype.isCommon)) }
        }
    }

    private func tooLarge(_ size: Size, isCertain: Bool) -> Diagnostic {
        Diagnostic(
            path: path, severity: isCertain ? .error : .warning,
            what: "the payload in \(size.text) \(isCertain ? "has" : "may reach") \(size.bytes) bytes, "
                + "Apple accepts \(size.limit)",
            advice: "shorten the texts or the custom keys of the template")
    }
}

/// The sizes of a template's payloads, before a campaign gives the values.
enum TemplateSize {
    /// Returns an error for each language whose smallest payload is too large, and a warning for each language whose
    /// payload may become too large through the values of variables or of device fields.
    static func check(_ source: TemplateSource, limitBytes limit: Int) -> [Diagnostic] {
        guard let least = renderer(source.template, valueBytes: 1),
            let most = renderer(source.template, valueBytes: Planner.fieldMaxBytes)
        else { return [] }
        return least.prototypes.indices.compactMap { index in
            let smallest = least.prototypes[index].leastByteCount
            let largest = most.prototypes[index].worstCaseByteCount(fieldMaxBytes: Planner.fieldMaxBytes)
            guard largest > limit else { return nil }
            let isCertain = smallest > limit
            let locale = least.localeName(index)
            let location =
                source.locations["alert.\(locale).body"] ?? source.locations["alert"] ?? SourceLocation()
            return Diagnostic(
                path: source.path, line: location.line, column: location.column,
                severity: isCertain ? .error : .warning,
                what: "the payload in \(locale) "
                    + (isCertain ? "has at least \(smallest)" : "may reach \(largest)")
                    + " bytes; Apple accepts \(limit)",
                advice: isCertain
                    ? "shorten the texts or the custom keys"
                    : "shorten the texts, or keep the values of the variables short")
        }
    }

    private static func renderer(_ template: Template, valueBytes: Int) -> PayloadRenderer? {
        let value = String(repeating: "x", count: valueBytes)
        return try? PayloadRenderer(
            template: template, pushType: template.likelyPushType,
            variables: Dictionary(uniqueKeysWithValues: template.variables.map { ($0, value) }))
    }
}

extension Template {
    /// The push type of the campaigns that can use the template, as far as the template tells.
    var likelyPushType: PushType { liveActivity != nil ? .liveactivity : alert != nil ? .alert : .background }
}
