import CampaignFiles
import Foundation
import Model

/// A campaign file with its templates, found by name or path and free of errors.
struct CheckedCampaign {
    var campaign: Campaign
    var template: Template
    var variantTemplates: [String: Template]
    var warnings: [Diagnostic]
    /// The campaign's file and those of its templates.
    var files: [String]

    /// - Parameter nameOrPath: `new-podcast`, looked up in the configured folder, or the path of a file.
    static func load(_ nameOrPath: String, _ configuration: Configuration) throws -> CheckedCampaign {
        let path = try path(of: nameOrPath, in: configuration.campaigns)
        let checked = CampaignCheck.check(path: path, templatesFolder: configuration.templates)
        guard let campaign = checked.loaded?.campaign, let template = checked.loaded?.template, checked.isRight else {
            throw Failure(.invalidData, checked.diagnostics)
        }
        return CheckedCampaign(
            campaign: campaign, template: template, variantTemplates: checked.loaded?.variantTemplates ?? [:],
            warnings: checked.diagnostics,
            files: [path]
                + Set([campaign.template] + campaign.variants.map(\.template)).sorted().map {
                    CampaignFolder(campaigns: "", templates: configuration.templates).templatePath($0)
                })
    }

    private static func path(of nameOrPath: String, in folder: String) throws -> String {
        if nameOrPath.contains("/") || nameOrPath.hasSuffix(".yaml") || nameOrPath.hasSuffix(".yml") {
            guard FileManager.default.fileExists(atPath: nameOrPath) else {
                throw Failure(.notFound, "no campaign file \(nameOrPath); check the path")
            }
            return nameOrPath
        }
        let path = "\(folder)/\(nameOrPath).yaml"
        if FileManager.default.fileExists(atPath: path) { return path }
        let names = YAMLFolder.files(in: folder).map { ($0 as NSString).lastPathComponent.dropLast(".yaml".count) }
        let suggestion = Suggestion.nearest(to: nameOrPath, among: names.map(String.init))
        throw Failure(
            .notFound,
            "no campaign \"\(nameOrPath)\" in \(folder); "
                + (suggestion.map { "did you mean \"\($0)\"?" } ?? "`fanfare validate` lists what is there"))
    }
}

/// The YAML files of a folder, in the order of their names.
enum YAMLFolder {
    static func files(in folder: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { $0.hasSuffix(".yaml") || $0.hasSuffix(".yml") }.sorted().map { "\(folder)/\($0)" }
    }
}
