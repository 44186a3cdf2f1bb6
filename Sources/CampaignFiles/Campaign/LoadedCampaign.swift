package import Model

/// A campaign with all its templates, and everything there is to say about the files. The values are there only when
/// nothing is an error.
package struct LoadedCampaign: Sendable {
    /// With the places of its keys, for checks against a configuration or a store; there as soon as the campaign file
    /// itself is right.
    package var source: CampaignSource?
    package var campaign: Campaign?
    package var template: Template?
    /// By variant's name, one for every variant; empty when the campaign has none.
    package var variantTemplates: [String: Template] = [:]
    package var diagnostics: [Diagnostic] = []
}
