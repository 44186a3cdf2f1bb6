import ArgumentParser
import Engine
import Foundation
import Model

/// A campaign and the values of its variables, as `plan`, `render` and `run` take them.
struct CampaignArguments: ParsableArguments {
    @Argument(help: "The campaign's name, or the path of its file.") var campaign: String

    @Option(name: .customLong("var"), help: "A variable's value, name=value; may be repeated.")
    var variables: [String] = []

    func values() throws -> [String: String] {
        var values: [String: String] = [:]
        for entry in variables {
            guard let equals = entry.firstIndex(of: "="), equals != entry.startIndex else {
                throw ValidationError("--var \(entry): write name=value")
            }
            values[String(entry[..<equals])] = String(entry[entry.index(after: equals)...])
        }
        return values
    }

    /// Reads and checks the files; warnings go to standard error.
    func definition(_ configuration: Configuration, plannedAt: Timestamp) throws -> RunDefinition {
        let source = try CheckedCampaign.load(campaign, configuration)
        for warning in source.warnings { Console.note(warning.description) }
        return RunDefinition(
            campaign: source.campaign, template: source.template,
            variables: try RunVariables.merged(source.campaign, with: try values()), plannedAt: plannedAt)
    }
}

extension RunDefinition {
    /// Variables the template uses that have no value yet, and the definition with their names in angle brackets
    /// in their place, to look at.
    func filledForShow() -> (definition: RunDefinition, unset: [String]) {
        let unset = template.variables.filter { variables[$0, default: ""].isEmpty }.sorted()
        var definition = self
        for name in unset { definition.variables[name] = "<\(name)>" }
        return (definition, unset)
    }
}
