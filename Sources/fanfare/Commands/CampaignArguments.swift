import ArgumentParser
import CampaignFiles
import Foundation
import Model
import Campaigns

/// The values of a run's variables.
struct VariableArguments: ParsableArguments {
    @Option(name: .customLong("var"), help: "A variable's value, name=value; may be repeated.")
    var variables: [String] = []

    @Option(
        help: "A file with values, one name: value per line (YAML or JSON); --var overrides it.",
        completion: .file(extensions: ["yaml", "yml", "json"]))
    var varsFile: String?

    /// Reads the file, if there is one.
    func values() throws -> [String: String] {
        var values: [String: String] = [:]
        if let varsFile {
            let (found, diagnostics) = VariablesFile.load(path: varsFile)
            guard let found else { throw Failure(.invalidData, diagnostics) }
            values = found
        }
        for entry in variables {
            guard let equals = entry.firstIndex(of: "="), equals != entry.startIndex else {
                throw ValidationError("--var \(entry): write name=value")
            }
            values[String(entry[..<equals])] = String(entry[entry.index(after: equals)...])
        }
        return values
    }
}

/// A campaign and the values of its variables, as `plan`, `render` and `run` take them.
struct CampaignArguments: ParsableArguments {
    @Argument(help: "The campaign's name, or the path of its file.", completion: .custom(CampaignNames.completions))
    var campaign: String

    @OptionGroup var variables: VariableArguments

    /// Reads and checks the files; warnings go to standard error.
    func definition(_ configuration: Configuration, plannedAt: Timestamp) throws -> RunDefinition {
        try Self.definitionWithFiles(campaign, variables, configuration, plannedAt: plannedAt).definition
    }

    /// The same with the hashes of the files, for the record.
    static func definitionWithFiles(
        _ campaign: String, _ variables: VariableArguments, _ configuration: Configuration, plannedAt: Timestamp
    ) throws -> (definition: RunDefinition, files: [String: String]) {
        let source = try CheckedCampaign.load(campaign, configuration)
        for warning in source.warnings { Console.note(warning.description) }
        let definition = RunDefinition(
            campaign: source.campaign, template: source.template, variantTemplates: source.variantTemplates,
            variables: try RunVariables.merged(source.campaign, with: try variables.values()), plannedAt: plannedAt)
        return (definition, try FileHash.hashes(of: source.files))
    }
}

/// For the shell: what there is to complete, without a word when there is nothing.
enum CampaignNames {
    @Sendable static func completions(words: [String], index: Int, prefix: String) -> [String] {
        let folder = Settings.completing(words).configurationIfAny()?.campaigns ?? "campaigns"
        return YAMLFolder.files(in: folder).map {
            (($0 as NSString).lastPathComponent as NSString).deletingPathExtension
        }
        .filter { $0.hasPrefix(prefix) }
    }
}

extension Campaign {
    /// The variant that was asked for on the command line; nil when none was.
    func variantIndex(named name: String?) throws -> Int? {
        guard let name else { return nil }
        if let index = variants.firstIndex(where: { $0.name == name }) { return index }
        let names = variants.map(\.name)
        let advice =
            Suggestion.nearest(to: name, among: names).map { "did you mean \"\($0)\"?" }
            ?? (names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))")
        throw Failure(.notFound, "campaign \(self.name) has no variant \"\(name)\"; \(advice)")
    }
}

extension RunDefinition {
    /// Variables the templates use that have no value yet, and the definition with their names in angle brackets
    /// in their place, to look at.
    func filledForShow() -> (definition: RunDefinition, unset: [String]) {
        let used = ([template] + variantTemplates.values).reduce(into: Set()) { $0.formUnion($1.variables) }
        let unset = used.filter { variables[$0, default: ""].isEmpty }.sorted()
        var definition = self
        for name in unset { definition.variables[name] = "<\(name)>" }
        return (definition, unset)
    }
}
