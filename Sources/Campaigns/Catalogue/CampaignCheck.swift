package import CampaignFiles
package import Model
import Sending

/// Everything that can be said about a file without a store.
package struct CampaignCheck {
    package var path: String
    /// Nil for files that are no campaigns.
    package var loaded: LoadedCampaign?
    package var diagnostics: [Diagnostic]
    /// The largest payload of each text; empty where there is none or the files are broken.
    package var sizes: [Size] = []

    package init(path: String, loaded: LoadedCampaign? = nil, diagnostics: [Diagnostic]) {
        self.path = path
        self.loaded = loaded
        self.diagnostics = diagnostics
    }

    package struct Size {
        /// The locale, behind the variant's name if there is one.
        package var text: String
        package var bytes: Int
        package var limit: Int
    }

    /// True when nothing is worse than a warning.
    package var isRight: Bool { diagnostics.allSatisfy { $0.severity == .warning } }

    /// Checks a campaign file together with the templates it names.
    ///
    /// - Parameter configuration: given to check that the campaign's app is in it, with a credential that will do.
    package static func check(
        path: String, templatesFolder: String, configuration: Configuration? = nil
    ) -> CampaignCheck {
        let loaded = CampaignFolder(campaigns: "", templates: templatesFolder).loadWhole(path: path)
        var check = CampaignCheck(path: path, loaded: loaded, diagnostics: loaded.diagnostics)
        if let configuration, let source = loaded.source {
            check.diagnostics += CredentialRules.check(source, configuration)
        }
        check.measure()
        return check
    }

    /// Renders every locale of every variant with a long value in place of whatever is not known yet.
    private mutating func measure() {
        guard let campaign = loaded?.campaign, let template = loaded?.template else { return }
        let variables = campaign.variables.mapValues {
            $0.isEmpty ? String(repeating: "x", count: Planner.fieldMaxBytes) : $0
        }
        let definition = RunDefinition(
            campaign: campaign, template: template, variantTemplates: loaded?.variantTemplates ?? [:],
            variables: variables, plannedAt: Timestamp(milliseconds: 0))
        do {
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
                + "Apple takes \(size.limit)",
            advice: "shorten the texts or the custom keys of the template")
    }
}
