import CampaignFiles
import Engine
import Model

/// Everything that can be said about a file without a store.
struct CampaignCheck {
    var path: String
    var campaign: Campaign?
    var template: Template?
    var diagnostics: [Diagnostic]
    /// The largest payload of each text; empty where there is none or the files are broken.
    var sizes: [Size] = []

    struct Size {
        var locale: String
        var bytes: Int
        var limit: Int
    }

    /// True when nothing is worse than a warning.
    var isRight: Bool { diagnostics.allSatisfy { $0.severity == .warning } }

    /// Checks a campaign file together with the template it names.
    static func check(path: String, templatesFolder: String) -> CampaignCheck {
        let folder = CampaignFolder(campaigns: "", templates: templatesFolder)
        let (campaign, template, diagnostics) = folder.load(path: path)
        var check = CampaignCheck(path: path, campaign: campaign, template: template, diagnostics: diagnostics)
        check.measure()
        return check
    }

    /// Renders every locale with a long value in place of whatever is not known yet.
    private mutating func measure() {
        guard let campaign, let template else { return }
        let variables = campaign.variables.mapValues {
            $0.isEmpty ? String(repeating: "x", count: Planner.fieldMaxBytes) : $0
        }
        let renderer: PayloadRenderer
        do {
            renderer = try PayloadRenderer(template: template, pushType: campaign.pushType, variables: variables)
        } catch {
            diagnostics.append(Diagnostic(path: path, what: error.description))
            return
        }
        for (index, prototype) in renderer.prototypes.enumerated() {
            let size = Size(
                locale: renderer.localeName(index),
                bytes: prototype.worstCaseByteCount(fieldMaxBytes: Planner.fieldMaxBytes),
                limit: campaign.pushType.payloadMaxBytes)
            sizes.append(size)
            if size.bytes > size.limit { diagnostics.append(tooLarge(size, isCertain: prototype.isCommon)) }
        }
    }

    private func tooLarge(_ size: Size, isCertain: Bool) -> Diagnostic {
        Diagnostic(
            path: path, severity: isCertain ? .error : .warning,
            what: "the payload in \(size.locale) \(isCertain ? "has" : "may reach") \(size.bytes) bytes, "
                + "Apple takes \(size.limit)",
            advice: "shorten the texts or the custom keys of the template")
    }
}
